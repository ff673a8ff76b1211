import Foundation
import TestSupport
import Testing

@Suite("Broadcasts", .blocking)
struct BroadcastTests {
  @Test(
    "a broadcast that is impossible for iPhones is one dead letter for all of them; they count as failed, and Android devices get it"
  )
  func untranslatable() throws {
    let site = try Site()
    try site.startFleet(settings: "fanOut: { pageSize: 3 },")
    let fcm = try site.startFCM()
    try site.configureFleet("sqlite:registry.db", settings: "fanOut: { pageSize: 3 },", apps: fcm)
    // Some pages have no iPhone, one has both kinds.
    for number in 0..<4 {
      let row = try site.write(#"{"platform":"fcm","token":"android-\#(number)","topics":["all"]}"#, to: "android.ndjson")
      #expect(try site.run(["devices", "import", "--config", site.file("pushfleet.json5"), row]).status == 0)
    }
    try site.importDevices(0..<7, #""topics":["all"]"#)
    try site.publish([(["to": "/topics/all", "data": ["aps": "x"]], ["message_id": "b"])])
    try site.drain()
    let letters = try site.take("dead")
    #expect(letters.count == 1 && letters.first?.id == "b" && letters.first?.json["to"] as? String == "/topics/all")
    #expect(letters.first?.header("x-push-error") == "InvalidDataKey")
    #expect(letters.first?.header("x-push-reason")?.hasPrefix("for every APNs device of the broadcast: ") == true)
    let result = try site.results()["b"]
    #expect(result?.success == 4 && result?.failure == 7 && result?.count == 1)
    #expect(try site.pushes().isEmpty)
    let campaign = try site.campaigns()["b"]
    #expect(campaign?["sent"] as? Int == 4 && campaign?["failed"] as? Int == 7, "\(campaign ?? [:])")
  }

  @Test("two workers share a broadcast about evenly, and one result counts everything", arguments: RegistryKind.all)
  func twoWorkers(_ kind: RegistryKind) throws {
    let devices = 5_000
    let site = try Site()
    try site.startFleet(try kind.make(), script: ["*": ["delay_ms": 2]], settings: "fanOut: { pageSize: 100 },")
    try site.importDevices(0..<devices, #""topics":["all"]"#)
    let workers = [try site.startWorker(), try site.startWorker()]
    try site.broadcast("b")
    #expect(try eventually(seconds: 60) { try site.depths(["results"]) == [1] })
    for worker in workers { worker.signal(15) }
    for worker in workers { #expect(worker.wait() == 0) }
    #expect(try site.deliveries(of: "b") == Dictionary(uniqueKeysWithValues: (0..<devices).map { (token($0), 1) }))
    #expect(try site.results()["b"]! == (devices, 0, 1))
    let shares = Dictionary(grouping: try site.pushes(), by: \.connection).mapValues(\.count)
    #expect(shares.count >= 2 && (shares.values.max() ?? devices) < devices * 2 / 3, "\(shares)")
    let campaign = try #require(try site.campaigns()["b"])
    #expect(
      campaign["state"] as? String == "completed" && campaign["sent"] as? Int == devices && campaign["pages"] as? Int == 50)
    #expect(try site.depths(["dead", "feedback", "fanout.normal", "send.normal"]) == [0, 0, 0, 0])
  }

  @Test("kill -9 of one of two workers in the middle of a broadcast")
  func workerKilled() throws { try workerKilled(.sqlite, devices: 12_000, page: 100, chains: 1) }

  @Test("kill -9 of one of two workers in the middle of a broadcast of several chains", arguments: RegistryKind.all)
  func workerOfChainsKilled(_ kind: RegistryKind) throws { try workerKilled(kind, devices: 3_400, page: 4, chains: 4) }

  /// Every device is reached, at most the pages in flight repeat, all count in one result.
  private func workerKilled(_ kind: RegistryKind, devices: Int, page: Int, chains: Int) throws {
    let prefetch = 2
    let site = try Site()
    try site.startFleet(
      try kind.make(), script: ["*": ["delay_ms": 5]], settings: "fanOut: { pageSize: \(page), prefetch: \(prefetch) },")
    try site.importDevices(0..<devices, #""topics":["all"]"#)
    let journal = try site.followJournal()
    let workers = [try site.startWorker(), try site.startWorker()]
    try site.broadcast("b")
    for (worker, moment) in zip(workers, [devices / 4, devices / 2]) {
      #expect(journal.waitForLines(moment, seconds: 60))
      worker.end()
      if worker === workers[0] { _ = try site.startWorker() }
    }
    #expect(try eventually(seconds: 60) { try site.depths(["results"]) == [1] })
    let deliveries = try site.deliveries(of: "b")
    #expect(deliveries.count == devices)
    let doubled = deliveries.values.reduce(0) { $0 + $1 - 1 }
    print("two workers killed in a broadcast to \(devices): \(doubled) pushes doubled")
    // Each worker had so many pages in hand.
    #expect(doubled <= 2 * prefetch * page, "\(doubled)")
    try site.drain()
    #expect(try site.results()["b"]! == (devices, 0, 1))
    #expect(try site.depths(["dead", "feedback", "fanout.normal", "send.normal"]) == [0, 0, 0, 0])
    let campaign = try #require(try site.campaigns()["b"])
    #expect(campaign["state"] as? String == "completed" && campaign["sent"] as? Int == devices)
    #expect(campaign["pages"] as? Int == (devices / chains + page - 1) / page * chains, "each chain has a last page")
  }

  @Test("a worker that is stopped in the middle of a page hands the rest on: nothing repeats, all count")
  func workerStopped() throws {
    let devices = 600
    let site = try Site()
    try site.startFleet(
      script: ["*": ["delay_ms": 30]], options: ["--streams", "8"], settings: "fanOut: { pageSize: 200, prefetch: 2 },")
    try site.importDevices(0..<devices, #""topics":["all"]"#)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    try site.broadcast("b")
    #expect(journal.waitForLines(60, seconds: 60))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().count < devices)
    try site.drain()
    #expect(try site.deliveries(of: "b") == Dictionary(uniqueKeysWithValues: (0..<devices).map { (token($0), 1) }))
    #expect(try site.results()["b"]! == (devices, 0, 1))
  }

  @Test("pushes that the provider can't accept now are retried, and each device is counted once")
  func retries() throws {
    let site = try Site()
    var script: [String: Any] = [:]
    for number in 0..<30 {
      script[token(number)] = [["status": 429, "reason": "TooManyRequests", "retry_after": 1], ["status": 200]]
    }
    for number in 30..<40 { script[token(number)] = ["status": 410, "reason": "Unregistered"] }
    for number in 40..<50 { script[token(number)] = ["status": 400, "reason": "BadCollapseId"] }
    try site.startFleet(script: script, settings: "fanOut: { pageSize: 40 }, breaker: { percent: 90, sample: 1000 },")
    try site.importDevices(0..<200, #""topics":["all"]"#)
    try site.broadcast("b")
    try site.drain()
    #expect(try site.results()["b"]! == (180, 20, 1))
    #expect(try site.pushes().count == 230)
    let dead = try site.take("dead")
    #expect(dead.count == 10 && dead.allSatisfy { ($0.json["to"] as? String)?.hasPrefix("pf1r~") == true })
    #expect(try site.take("feedback").count == 10)
  }

  @Test("a request published twice is one broadcast; the same id with another body is another one")
  func duplicates() throws {
    let site = try Site()
    try site.startFleet(settings: "fanOut: { pageSize: 20 },")
    try site.importDevices(0..<50, #""topics":["all","some"]"#)
    for _ in 0..<3 { try site.broadcast("b") }
    try site.drain()
    try site.broadcast("b")
    try site.drain()
    #expect(try site.pushes().count == 50)
    try site.broadcast("b", to: ["to": "/topics/some"])
    try site.publish([(["to": "/topics/all", "data": ["m": "unnamed"]], [:])])
    try site.drain()
    #expect(try site.deliveries(of: "b").values.allSatisfy { $0 == 2 })
    #expect(try site.deliveries(of: "unnamed").count == 50)
    let results = try site.results()
    #expect(results.count == 2 && results["b"]! == (50, 0, 2))
  }

  @Test("a high-priority push overtakes a running broadcast")
  func overtaking() throws {
    // Fifty pushes a second, with four pages in hand: pushes queued behind those would need 40 seconds. The test counts the
    // pushes that come before, because their time depends on the machine.
    let (devices, inHand) = (3_000, 2_000)
    let site = try Site()
    try site.startFleet(
      script: ["*": ["delay_ms": 200]], options: ["--streams", "10"], settings: "fanOut: { pageSize: \(inHand / 4) },")
    try site.importDevices(0..<devices, #""topics":["all"]"#)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    try site.broadcast("b")
    #expect(journal.waitForLines(30, seconds: 60))
    let times = try site.publishTimed((0..<5).map { ["to": token(1_000_000 + $0), "data": ["m": "single"]] }, to: "high")
    #expect(try eventually { try site.arrivals(of: "single").count == 5 })
    let (first, last) = (try #require(times.first), try #require(try site.arrivals(of: "single").last))
    let before = try site.arrivals(of: "b").count { $0 > first && $0 < last }
    print("\(before) pushes of a broadcast came while five of high priority were on their way, for \(last - first) ms")
    #expect(before < inHand / 10)
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("a worker whose rights end with the fleet's prefix can send broadcasts")
  func rights() throws {
    let site = try Site()
    try site.startFleet(settings: "fanOut: { pageSize: 20 },")
    try site.importDevices(0..<50, #""topics":["all"]"#)
    let user = "u\(site.prefix)"
    let own = "^\(site.prefix)"
    try site.broker.addUser(user, password: "secret", configure: own, write: own, read: own)
    site.brokerURI = "amqp://\(user):secret@127.0.0.1:\(site.broker.port)"
    try site.configureFleet("sqlite:registry.db", settings: "fanOut: { pageSize: 20 },")
    try site.broadcast("b")
    try site.publish([(["to": "/topics/all", "data": ["m": "unnamed"]], [:])])
    try site.drain()
    #expect(try site.deliveries(of: "b").count == 50 && site.deliveries(of: "unnamed").count == 50)
  }

  @Test("a copy that arrives after its time to live is the broadcast that began in time")
  func lateCopy() throws {
    let site = try Site()
    try site.startFleet()
    try site.importDevices(0..<20, #""topics":["all"]"#)
    let now = Int(Date().timeIntervalSince1970)
    // The same bytes each time: another body would be another broadcast.
    let body = #"{"to":"/topics/all","time_to_live":100,"data":{"m":"b"}}"#
    for ages in [[0], [200, 300]] {
      try site.publish(ages.map { (body, ["message_id": "b", "timestamp": now - $0]) })
      try site.drain()
    }
    #expect(try site.deliveries(of: "b").count == 20)
    let results = try site.results()["b"]!
    #expect(results == (20, 0, 1), "\(results)")
  }

  @Test(
    "a page with too many waiting devices begins again without settled ones, once the registry has them"
  )
  func grownPage() throws {
    let (devices, atOnce) = (6_000, 500)
    func short(_ number: Int) -> String { String(0x1000_0000 + number, radix: 16) }
    let site = try Site()
    var script: [String: Any] = [short(0): [["delay_ms": 3_000], ["status": 200]]]
    for number in 1..<devices {
      let refused: [String: Any] = ["status": 429, "reason": "TooManyRequests", "delay_ms": 30]
      // Refusals are never so frequent that they would open the breaker.
      let isTaken = number <= atOnce || number.isMultiple(of: 20)
      script[short(number)] = isTaken ? [["status": 200, "delay_ms": 30]] : [refused, ["status": 200]]
    }
    try site.startFleet(script: script, options: ["--streams", "50"])
    try site.importDevices(0..<devices, #""locale":"de""#, token: short)
    try site.importDevices([0, devices - 1], #""topics":["all"]"#, token: short)
    try site.broadcast("b")
    let worker = try site.startWorker()
    let pages = """
      import sqlite3
      print(sqlite3.connect("\(site.file("registry.db"))").execute("SELECT count(*) FROM campaign_pages").fetchone()[0])
      """
    #expect(try eventually { try site.foreign(["/usr/bin/python3", "-c", pages]).hasPrefix("1") })
    worker.end()
    try site.importDevices(1..<devices - 1, #""topics":["all"]"#, token: short)
    let journal = try site.followJournal()
    let second = try site.startWorker()
    #expect(journal.waitForLines(500, seconds: 60))
    let holder = try LockHolder(site.file("registry.db"), "IMMEDIATE")
    #expect(second.waitForOutput("the registry can't be written to", seconds: 60))
    holder.end()
    #expect(try eventually(seconds: 60) { try site.depths(["results"]) == [1] }, "\(second.outputSoFar)")
    second.signal(15)
    #expect(second.wait() == 0)
    #expect(try site.results()["b"]! == (devices, 0, 1))
    let reached = try site.deliveries(of: "b")
    // The first worker may have reached the first device.
    #expect(reached.count == devices && reached.allSatisfy { $0.value == 1 || $0.key == short(0) })
  }
}
