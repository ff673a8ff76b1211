import Foundation
import TestSupport
import Testing

@Suite("Requests with a collapse key, while their provider is in trouble", .blocking)
struct CollapseTests {
  private static let troubled = "com.example.troubled"

  /// Two applications, so that waiting requests are held at once; the provider of one is down.
  private func prepare(_ registry: String?, pageSize: Int = 4, settings: String = "") throws -> (Site, port: Int) {
    let site = try Site()
    try site.startSimulator()
    let (simulator, port) = try site.startAPNs("troubled")
    simulator.end()
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", \(Site.retries) fanOut: { pageSize: \(pageSize) }, \(settings)
        \(registry.map { "registry: \"\($0)\"," } ?? "")
        apps: {
          "\(Site.app)": { apns: \(site.apns()) },
          "\(Self.troubled)": { apns: \(site.apns(topic: Self.troubled, port: port)) },
        },
      }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    return (site, port)
  }

  private typealias Message = (body: Any, properties: [String: Any])

  private static func message(_ id: String, _ key: String?, to target: Any, at second: Int) -> Message {
    var body: [String: Any] = ["data": ["m": id]]
    body["collapse_key"] = key
    if let list = target as? [String] { body["registration_ids"] = list } else { body["to"] = target }
    return (body, ["message_id": id, "app_id": troubled, "timestamp": second])
  }

  private func waitUntilHeld(_ site: Site, _ count: Int, workers: Int) throws {
    #expect(
      try eventually { try site.depths(["send.normal"]) == [0] && site.held(Self.troubled) >= count - 8 * workers - 1 })
  }

  /// The messages of each device, in order of their names.
  private func received(_ site: Site) throws -> [String: [String]] {
    let journal = try String(contentsOfFile: site.file("troubled.ndjson"), encoding: .utf8)
    var got: [String: [String]] = [:]
    for line in Site.objects(journal) {
      guard let token = line["token"] as? String, let payload = line["payload"] as? [String: Any] else { continue }
      got[token, default: []].append(payload["m"] as? String ?? "")
    }
    return got.mapValues { $0.sorted() }
  }

  /// Without a registry a worker knows only its own requests, while it lives.
  @Test(
    "only the newest for each device and key, from all workers, and every request without a key is sent when the provider is back",
    arguments: [nil] + RegistryKind.all)
  func newest(_ registry: RegistryKind?) throws {
    let (site, port) = try prepare(try registry?.make())
    let count = registry == nil ? 1 : 2
    var workers = try (0..<count).map { _ in try site.startWorker() }
    let now = Int(Date().timeIntervalSince1970) - 1_000
    // One request for both devices of a user, which the registry has to look up.
    let isRegistered = registry != nil
    func user(_ id: String, at second: Int) -> [Message] {
      isRegistered ? [Self.message(id, "k", to: "/users/anna", at: second)] : []
    }
    if isRegistered {
      _ = try site.change([5, 6].map { ["app": Self.troubled, "platform": "apns", "token": token($0), "user": "anna"] })
    }
    let more = isRegistered ? 3 : 0
    let old = (0..<30).map { Self.message("old-\($0)", "k", to: "apns:" + token(1), at: now + $0) }
    let plain = (0..<3).map { Self.message("plain-\($0)", nil, to: token(1), at: now) }
    try site.publish(
      old + plain + [Self.message("list", "k", to: [token(1), token(3)], at: now + 100)] + user("user-old", at: now)
        + user("user-late", at: now - 1))
    try waitUntilHeld(site, 34 + max(0, more - 1), workers: count)
    if registry != nil {
      for worker in workers { worker.signal(SIGKILL) }
      for worker in workers { _ = worker.wait() }
      workers = try (0..<count).map { _ in try site.startWorker() }
    }
    try site.publish(
      [
        Self.message("other", "k2", to: token(1), at: now + 200), Self.message("new", "k", to: token(1), at: now + 300),
        // Published before the others, although it arrives late.
        Self.message("late", "k", to: token(1), at: now + 50),
      ] + user("user-new", at: now + 300))
    try waitUntilHeld(site, 37 + more, workers: count)
    _ = try site.startAPNs("troubled", port: port)
    var results: [String: [String]] = [:]
    var repeated = 0
    let isComplete = try eventually {
      for message in try site.take("results") {
        if message.id.hasPrefix("user-") {
          #expect(message.json["success"] as? Int == (message.id == "user-new" ? 2 : 0), "\(message.json)")
        }
        let result = (message.json["results"] as? [[String: Any]])?.map { $0["error"] as? String ?? "sent" }
        if results.updateValue(result ?? [], forKey: message.id) != nil { repeated += 1 }
      }
      return try results.count == 37 + more && site.depths(["send.normal"]) == [0] && site.held(Self.troubled) == 0
    }
    #expect(isComplete, "\(results)")
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(worker.wait() == 0) }
    // A worker that is killed between a copy's confirm and the acknowledgement of its original leaves both.
    #expect(isRegistered || repeated == 0)
    let got = try received(site).mapValues { isRegistered ? Set($0).sorted() : $0 }
    #expect(got[token(3)] == ["list"])
    #expect([token(5), token(6)].map { got[$0] } == (isRegistered ? [["user-new"], ["user-new"]] : [nil, nil]))
    #expect(got[token(1)] == ["new", "other", "plain-0", "plain-1", "plain-2"])
    #expect(try site.depths(["dead"]) == [0])
    #expect(results["list"] == ["Collapsed", "sent"] && results["new"] == ["sent"] && results["late"] == ["Collapsed"])
    #expect((0..<30).allSatisfy { results["old-\($0)"] == ["Collapsed"] }, "\(results)")
  }

  /// By message: how many devices were reached, and how many were not.
  private func counts(_ site: Site) throws -> [String: [Int]] {
    let results = try site.take("results").map {
      ($0.id, [$0.json["success"] as? Int ?? -1, $0.json["failure"] as? Int ?? -1])
    }
    return Dictionary(uniqueKeysWithValues: results)
  }

  @Test(
    "of waiting broadcasts only the newest to each audience is sent when the provider is back, and every device is counted once",
    arguments: RegistryKind.all)
  func broadcasts(_ registry: RegistryKind) throws {
    let (site, port) = try prepare(try registry.make())
    let workers = try (0..<2).map { _ in try site.startWorker() }
    let now = Int(Date().timeIntervalSince1970) - 1_000
    let devices = 1...10
    _ = try site.change(
      devices.map { ["app": Self.troubled, "platform": "apns", "token": token($0), "topics": ["all"]] as [String: Any] })
    let sent: [(id: String, key: String?, to: String, second: Int)] = [
      ("old", "k", "/topics/all", 0), ("new", "k", "/topics/all", 100), ("late", "k", "/topics/all", 50),
      ("plain", nil, "/topics/all", 0), ("other", "k2", "/topics/all", 0), ("everybody", "k", "/all", 0),
    ]
    for (number, message) in sent.enumerated() {
      try site.publish([Self.message(message.id, message.key, to: message.to, at: now + message.second)])
      #expect(try eventually { try site.campaigns().count == number + 1 })
    }
    // Three pages each, of which every worker may have eight in hand.
    #expect(
      try eventually { try site.depths(["send.normal", "fanout.normal"]) == [0, 0] && site.held(Self.troubled) >= 2 })
    _ = try site.startAPNs("troubled", port: port)
    #expect(try eventually { try site.depths(["results"]) == [sent.count] })
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(worker.wait() == 0) }
    let all = devices.count
    let expected = [
      "old": [0, all], "late": [0, all], "new": [all, 0], "plain": [all, 0], "other": [all, 0], "everybody": [all, 0],
    ]
    #expect(try counts(site) == expected)
    let got = try received(site)
    #expect(devices.allSatisfy { got[token($0)] == ["everybody", "new", "other", "plain"] }, "\(got)")
    for (id, campaign) in try site.campaigns() {
      let counted = [campaign["sent"], campaign["failed"]].map { $0 as? Int }
      #expect(campaign["state"] as? String == "completed" && counted == expected[id], "\(campaign)")
    }
    #expect(try site.depths(["send.normal", "fanout.normal", "dead"]) == [0, 0, 0] && site.held(Self.troubled) == 0)
  }

  @Test("of requests to a user with more than a thousand devices only the newest is sent when the provider is back")
  func crowd() throws {
    let (site, port) = try prepare("sqlite:registry.db", pageSize: 400, settings: "registryLimits: { devicesPerUser: 2000 },")
    let devices = 1...1_001
    try site.importDevices(devices, #""app":"\#(Self.troubled)","user":"crowd""#)
    let worker = try site.startWorker()
    let now = Int(Date().timeIntervalSince1970) - 1_000
    for (id, second) in [("old", 0), ("new", 100)] {
      try site.publish([Self.message(id, "k", to: "/users/crowd", at: now + second)])
      #expect(try eventually { try site.campaigns()[id] != nil })
    }
    #expect(try eventually { try site.depths(["send.normal", "fanout.normal"]) == [0, 0] })
    _ = try site.startAPNs("troubled", port: port)
    #expect(try eventually { try site.depths(["results"]) == [2] })
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try counts(site) == ["old": [0, devices.count], "new": [devices.count, 0]])
    let got = try received(site)
    #expect(devices.allSatisfy { got[token($0)] == ["new"] } && got.count == devices.count)
    #expect(try site.depths(["send.normal", "fanout.normal", "dead"]) == [0, 0, 0] && site.held(Self.troubled) == 0)
  }

  @Test("the rest of a user's devices isn't sent to when it comes back from the ladder after a newer request")
  func ladderOfUser() throws {
    let site = try Site()
    try site.startFleet(
      script: [token(1): ["status": 429, "reason": "TooManyRequests", "retry_after": 2, "times": 1] as [String: Any]])
    try site.importDevices(1...2, #""user":"anna""#)
    let worker = try site.startWorker()
    for (id, count) in [("first", 2), ("second", 4)] {
      try site.publish([(["to": "/users/anna", "collapse_key": "k", "data": ["m": id]], ["message_id": id])])
      #expect(try eventually { try site.pushes().count == count })
    }
    #expect(try eventually { try site.depths(["results"]) == [2] })
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().filter { $0.token == token(1) }.compactMap { $0.payload["m"] as? String } == ["first", "second"])
    let results = Dictionary(try site.take("results").map { ($0.id, $0.json) }) { first, _ in first }
    #expect(results["first"]?["success"] as? Int == 1 && results["first"]?["failure"] as? Int == 1)
    #expect(results["second"]?["success"] as? Int == 2)
    #expect(try site.depths(["dead"]) == [0])
  }

  @Test("a push to a Live Activity isn't replaced by one to another activity of its device, or by an alert to the device")
  func activities() throws {
    let site = try Site()
    let trouble: [String: Any] = ["status": 429, "reason": "TooManyRequests", "retry_after": 2, "times": 1]
    try site.startFleet(script: [token(0xac1): trouble])
    let worker = try site.startWorker()
    func publish(_ id: String, activity: Int?) throws {
      var body: [String: Any] = ["to": token(1), "collapse_key": "k"]
      if let activity {
        body["apns"] = LiveActivityTests.update("end", token: token(activity))
      } else {
        body["data"] = ["m": id]
      }
      try site.publish([(body, ["message_id": id])])
    }
    try publish("first", activity: 0xac1)
    #expect(try eventually { try site.pushes().count == 1 })
    try publish("other", activity: 0xac2)
    try publish("alert", activity: nil)
    #expect(try eventually { try site.depths(["results"]) == [3] })
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    let results = try site.take("results")
    #expect(results.allSatisfy { $0.json["success"] as? Int == 1 }, "\(results.map(\.json))")
    #expect(try site.pushes().map(\.token).sorted() == [token(1), token(0xac1), token(0xac1), token(0xac2)].sorted())
  }

  @Test("a request from the ladder isn't sent if a later one has been delivered")
  func ladder() throws {
    let site = try Site()
    try site.startFleet(
      script: [token(1): ["status": 429, "reason": "TooManyRequests", "retry_after": 2, "times": 1] as [String: Any]])
    let worker = try site.startWorker()
    try site.publish([(["to": token(1), "collapse_key": "k", "data": ["m": "first"]], ["message_id": "first"])])
    #expect(try eventually { try site.pushes().count == 1 })
    try site.publish([(["to": token(1), "collapse_key": "k", "data": ["m": "second"]], ["message_id": "second"])])
    try site.publish([(["to": token(1), "collapse_key": "K", "data": ["m": "third"]], ["message_id": "third"])])
    #expect(try eventually { try site.depths(["results"]) == [3] })
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().compactMap { $0.payload["m"] as? String } == ["first", "second", "third"])
    let first = try #require(try site.take("results").first { $0.id == "first" })
    #expect((first.json["results"] as? [[String: String]]) == [["error": "Collapsed"]])
    #expect(try site.depths(["dead"]) == [0])
  }
}
