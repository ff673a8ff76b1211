import Foundation
import TestSupport
import Testing

@Suite("Control of broadcasts", .blocking)
struct SteeringTests {
  /// A slow broadcast with 40 pages of 20 devices.
  private func slowSite(
    _ kind: RegistryKind = .sqlite, script: [String: Any] = ["*": ["delay_ms": 30]], pageSize: Int = 20, settings: String = ""
  ) throws -> Site {
    let site = try Site()
    try site.startFleet(
      try kind.make(), script: script, options: ["--streams", "10"],
      settings: "fanOut: { pageSize: \(pageSize), prefetch: 2 }, \(settings)")
    try site.importDevices(0..<Self.devices, #""topics":["all"]"#)
    return site
  }

  private static let devices = 800

  /// Waits until nothing has been sent for a while: the pages go round on the ladder.
  private func hasComeToRest(_ site: Site) throws -> Bool {
    try eventually {
      let last = try #require(try site.arrivals(of: "b").max())
      return Int(Date().timeIntervalSince1970 * 1_000) > last + 1_500
    }
  }

  @Test("pause stops every worker within its pages, resume continues, each device gets it once", arguments: RegistryKind.all)
  func pause(_ kind: RegistryKind) throws {
    let site = try slowSite(kind)
    let journal = try site.followJournal()
    let workers = [try site.startWorker(), try site.startWorker()]
    try site.broadcast("b")
    #expect(journal.waitForLines(100, seconds: 60))
    try site.steer("pause", "b")
    #expect(try hasComeToRest(site))
    #expect(try site.campaigns()["b"]?["state"] as? String == "paused")
    // The command may take its time to start.
    #expect(try site.pushes().count < Self.devices - 100)
    for words in ["campaign begins", "campaign waits"] {
      #expect(eventually { workers.contains { $0.outputSoFar.contains(words) } }, "\(words)")
    }
    try site.steer("resume", "b")
    #expect(try eventually { try site.depths(["results"]) == [1] })
    for worker in workers { worker.signal(15) }
    for worker in workers { #expect(worker.wait() == 0) }
    #expect(try site.deliveries(of: "b") == Dictionary(uniqueKeysWithValues: (0..<Self.devices).map { (token($0), 1) }))
    #expect(try site.results()["b"]! == (Self.devices, 0, 1))
  }

  @Test("cancel ends it: one result counts everything sent, and waiting retries are not sent")
  func cancel() throws {
    // The very first device must be retried later.
    let site = try slowSite(script: [
      "*": ["delay_ms": 30], token(0): [["status": 429, "reason": "TooManyRequests", "retry_after": 2], ["status": 200]],
    ])
    let journal = try site.followJournal()
    let workers = [try site.startWorker(), try site.startWorker()]
    try site.broadcast("b")
    #expect(journal.waitForLines(100, seconds: 60))
    try site.steer("cancel", "b")
    #expect(try eventually { try site.depths(["results"]) == [1] })
    for worker in workers { worker.signal(15) }
    for worker in workers { #expect(worker.wait() == 0) }
    try site.drain()
    let deliveries = try site.deliveries(of: "b")
    #expect(deliveries[token(0)] == nil && deliveries.count < Self.devices / 2 && deliveries.values.allSatisfy { $0 == 1 })
    #expect(try site.results()["b"]! == (deliveries.count, 0, 1))
    #expect(try site.campaigns()["b"]?["state"] as? String == "cancelled")
    #expect(try site.depths(["dead", "fanout.normal"]) == [0, 0])
  }

  @Test("pause and cancel stop a page that is being sent: each device gets it at most once, and none is unknown")
  func stopsWithinPage() throws {
    let site = try slowSite(script: ["*": ["delay_ms": 200]], pageSize: 1_000)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    try site.broadcast("b")
    #expect(journal.waitForLines(50, seconds: 60))
    try site.steer("pause", "b")
    #expect(worker.waitForOutput("campaign waits", seconds: 60))
    let sent = try site.pushes().count
    #expect(sent < Self.devices / 2)
    try site.steer("resume", "b")
    #expect(journal.waitForLines(sent + 50, seconds: 60))
    try site.steer("cancel", "b")
    #expect(try eventually { try site.depths(["results"]) == [1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    let deliveries = try site.deliveries(of: "b")
    #expect(deliveries.count < Self.devices && deliveries.values.allSatisfy { $0 == 1 })
    #expect(try expectTrueResult(site) == 0)
  }

  @Test("cancelled after kill -9, its result has the number of unknown devices, and misses no reached one")
  func cancelledAfterKill() throws {
    let site = try slowSite()
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    try site.broadcast("b")
    #expect(journal.waitForLines(110, seconds: 60))
    worker.end()
    try site.steer("cancel", "b")
    try site.drain()
    #expect(try expectTrueResult(site) > 0)
  }

  @Test("cancelled after a worker lost its connections, its result misses no reached device")
  func cancelledAfterLoss() throws {
    let site = try slowSite(script: ["*": ["delay_ms": 300]])
    let journal = try site.followJournal()
    let workers = [try site.startWorker(), try site.startWorker()]
    try site.broadcast("b")
    #expect(journal.waitForLines(100, seconds: 60))
    try site.broker.closeConnections(named: ":\(workers[0].pid),")
    try site.steer("cancel", "b")
    #expect(try eventually { try site.depths(["results"]) == [1] })
    #expect(workers[0].outputSoFar.contains("broker connection ended"))
    for worker in workers {
      worker.signal(15)
      #expect(worker.wait() == 0)
    }
    try site.drain()
    try expectTrueResult(site)
  }

  /// - Returns: the number of unknown devices in the single result.
  @discardableResult
  private func expectTrueResult(_ site: Site) throws -> Int {
    let reached = try site.deliveries(of: "b").count
    let results = try site.take("results")
    let counts = ["success", "failure", "unknown"].map { results.first?.json[$0] as? Int ?? 0 }
    print("a broadcast cancelled after a loss: \(reached) devices reached, success, failure and unknown \(counts)")
    #expect(results.count == 1 && counts[1] == 0 && reached < Self.devices)
    #expect(counts[0] <= reached && reached <= counts[0] + counts[2])
    #expect(try site.campaigns()["b"]?["state"] as? String == "cancelled")
    #expect(try site.depths(["dead", "fanout.normal"]) == [0, 0])
    return counts[2]
  }

  @Test("a broadcast whose time to live passes while it is paused ends as expired, device by device")
  func expiredWhilePaused() throws {
    // An attempt at one device counts for no other one.
    let script: [String: Any] = [
      "*": ["delay_ms": 200], token(0): ["status": 429, "reason": "TooManyRequests", "retry_after": 1],
    ]
    let site = try slowSite(script: script, pageSize: 1_000)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    try site.broadcast("b", to: ["to": "/topics/all", "time_to_live": 8])
    #expect(journal.waitForLines(100, seconds: 60))
    try site.steer("pause", "b")
    #expect(try hasComeToRest(site))
    let sent = try site.deliveries(of: "b").count
    let begun = try #require(try site.arrivals(of: "b").first)
    #expect(eventually { Int(Date().timeIntervalSince1970 * 1000) > begun + 8_500 })
    try site.steer("resume", "b")
    #expect(try eventually { try site.depths(["results"]) == [1] })
    #expect(try site.results()["b"]! == (sent, Self.devices - sent, 1))
    #expect(try site.deliveries(of: "b").count == sent && site.depths(["dead"]) == [0])
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("too many refused tokens hold the broadcast and mark no device; resumed, it runs to its end")
  func breaker() throws {
    let site = try slowSite(
      script: ["*": ["status": 400, "reason": "BadDeviceToken"]], settings: "breaker: { percent: 50, sample: 60 },")
    let worker = try site.startWorker()
    try site.broadcast("b")
    #expect(worker.waitForOutput("an abnormal share of tokens is refused", seconds: 60))
    #expect(worker.waitForOutput("the campaign is held", seconds: 60))
    #expect(try hasComeToRest(site))
    #expect(try site.campaigns()["b"]?["state"] as? String == "held")
    #expect(try site.pushes().count < 200)
    try site.steer("resume", "b")
    #expect(worker.waitForOutput("campaign ended", seconds: 60))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.results()["b"]! == (0, Self.devices, 1))
    #expect(try site.pushes().count == Self.devices)
    let export = try site.run(["devices", "export", "--config", site.file("pushfleet.json5"), "--format", "ndjson"])
    let suspects = Site.objects(export.output).filter { $0["state"] as? String == "suspect" }
    #expect(suspects.count < 200, "\(suspects.count)")
    #expect(try site.take("feedback").count == Self.devices && site.take("dead").count == Self.devices)
  }
}
