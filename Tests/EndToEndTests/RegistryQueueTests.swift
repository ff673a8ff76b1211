import Foundation
import TestSupport
import Testing

@Suite("Changes through the registry's queue", .blocking)
struct RegistryQueueTests {
  private func export(_ site: Site) throws -> [[String: Any]] {
    Site.objects(try site.run(["devices", "export", "--config", site.file("pushfleet.json5")]).output)
  }

  @Test("with any number of workers, the last registration wins")
  func order() throws {
    let site = try Site()
    try site.startFleet(settings: "shards: 2,")
    let workers = [try site.startWorker(), try site.startWorker()]
    let installations = 300
    try site.publishChanges(
      (0..<installations).flatMap { number in
        ["old", "new"].map { (["platform": "fcm", "token": "\($0)\(number)", "installation": "i\(number)"], [:]) }
      })
    #expect(try eventually { try site.depths(["registry"]) == [0] })
    for worker in workers { worker.signal(15) }
    for worker in workers { #expect(worker.wait() == 0) }
    let tokens = try export(site).compactMap { $0["token"] as? String }
    #expect(tokens.count == installations)
    #expect(tokens.filter { $0.hasPrefix("old") } == [])
  }

  @Test("a refused change without its reply queue is a dead letter")
  func answerWithoutQueue() throws {
    let site = try Site()
    try site.startFleet()
    let worker = try site.startWorker()
    try site.publishChanges([
      (["platform": "apns", "token": "no token"], ["reply_to": "gone", "message_id": "refused"]),
      (["platform": "fcm", "token": "good"], ["reply_to": "gone", "message_id": "taken"]),
    ])
    #expect(try eventually { try site.depths(["registry", "dead"]) == [0, 1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let letter = try #require(try site.take("dead").first)
    #expect(letter.id == "refused" && letter.header("x-push-error") == "InvalidRegistration", "\(letter)")
    #expect(try export(site).compactMap { $0["token"] as? String } == ["good"])
  }

  @Test("a worker that stops while the registry is locked leaves its changes to another one, in order")
  func stopWhileLocked() throws {
    let site = try Site()
    try site.startFleet(settings: "prefetch: 100, drainTimeout: 2,")
    let first = try site.startWorker()
    let holder = try LockHolder(site.file("registry.db"))
    let installations = 60
    try site.publishChanges(
      ["old", "new"].flatMap { word in
        (0..<installations).map { (["platform": "fcm", "token": "\(word)\($0)", "installation": "i\($0)"], [:]) }
      })
    #expect(first.waitForOutput("the registry can't be written to", seconds: 90))
    let second = try site.startWorker()
    #expect(second.waitForOutput("consuming", seconds: 90))
    first.signal(15)
    #expect(first.wait() == 0)
    holder.end()
    #expect(try eventually { try site.depths(["registry"]) == [0] && export(site).count == installations })
    second.signal(15)
    #expect(second.wait() == 0)
    #expect(try export(site).compactMap { $0["token"] as? String }.filter { $0.hasPrefix("old") } == [])
  }

  @Test(
    "a group's creation and end are answered with its key even if the worker died before the acknowledgement",
    arguments: RegistryKind.all)
  func repeated(_ registry: RegistryKind) throws {
    let site = try Site()
    try site.startFleet(try registry.make())
    try site.importDevices(1...2, #""user":"u""#)
    let members = [token(1), token(2)]
    func command(_ words: [String]) throws -> String {
      let ended = try site.run(["groups"] + words + ["--config", site.file("pushfleet.json5")])
      guard ended.status == 0 else { throw Broken("groups: \(ended.output)") }
      return ended.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
    /// The answer to a change that was applied before, but not acknowledged.
    func answer(_ change: [String: Any]) throws -> [String: Any] {
      try site.askForChanges([change])
      try site.peer(["consume", "\(site.prefix).registry", "--count", "1", "--wait", "30", "--give-back"])
      let worker = try site.startWorker()
      let answers = try site.takeAll(from: "\(site.prefix).answers", count: 1)
      worker.signal(15)
      #expect(worker.wait() == 0)
      return answers[0].json
    }
    let key = try command(["create", "home"] + members)
    let create: [String: Any] = ["op": "group_create", "notification_key_name": "home", "registration_ids": members]
    #expect(try answer(create)["notification_key"] as? String == key)
    _ = try command(["remove", key] + members)
    #expect(
      try answer(["op": "group_remove", "notification_key": key, "registration_ids": members])["notification_key"] as? String
        == key)
  }

  @Test("a change of two megabytes is stored, one of more than four is refused as too large")
  func large() throws {
    let site = try Site()
    try site.startFleet()
    func padded(_ token: String, _ bytes: Int) -> [String: Any] {
      [
        "body": #"{"platform":"fcm","token":"\#(token)"\#(String(repeating: " ", count: bytes))}"#,
        "properties": [String: Any](),
        "exchange": "", "routing_key": "\(site.prefix).registry",
      ]
    }
    try site.publish(lines: [padded("two", 2 << 20), padded("five", 5 << 20)])
    let worker = try site.startWorker()
    #expect(try eventually { try site.depths(["registry", "dead"]) == [0, 1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try export(site).map { $0["token"] as? String } == ["two"])
    let letter = try #require(try site.take("dead").first)
    #expect(letter.header("x-push-reason")?.hasPrefix("too large: ") == true && letter.body.hasPrefix(#"{"platform""#))
    #expect(Int(letter.header("x-push-truncated-from") ?? "") ?? 0 > 5 << 20)
  }

  @Test("changes beyond a shard's memory are stored in order, and requests beside them are sent")
  func largeInOrder() throws {
    let site = try Site()
    try site.startFleet()
    let first = try site.startWorker()
    _ = try site.change([["platform": "fcm", "token": "before"]])
    let holder = try LockHolder(site.file("registry.db"))
    let padding = String(repeating: " ", count: 1 << 20)
    try site.publish(
      lines: ["old", "new"].flatMap { word in
        (0..<20).map {
          [
            "body": #"{"platform":"fcm","token":"\#(word)\#($0)","installation":"i\#($0)"\#(padding)}"#,
            "properties": [String: Any](),
            "exchange": "", "routing_key": "\(site.prefix).registry",
          ]
        }
      })
    #expect(first.waitForOutput("the registry can't be written to", seconds: 90), "\(first.outputSoFar)")
    try site.send(tokens: (0..<20).map { token($0) })
    #expect(try eventually { try site.deliveries().count == 20 })
    holder.end()
    let latest = Set(["before"] + (0..<20).map { "new\($0)" })
    #expect(try eventually { try Set(export(site).compactMap { $0["token"] as? String }) == latest })
    first.signal(15)
    #expect(first.wait() == 0)
    #expect(try site.depths(["registry", "dead"]) == [0, 0] && site.deliveries().values.allSatisfy { $0 == 1 })
  }

  @Test("a change without an application is for the only one; invalid ids and unknown tokens are refused")
  func unanswered() throws {
    let site = try Site()
    try site.startFleet()
    try site.publishChanges(
      [
        (["platform": "fcm", "token": "t1"], ["app_id": ""]),
        (["platform": "fcm", "token": "t2"], ["app_id": "x\u{1}\n\u{1B}[31m", "message_id": "odd"]),
        (["op": "subscribe", "topic": "news", "tokens": ["t1", "nobody"]], ["message_id": "partly"]),
      ])
    let worker = try site.startWorker()
    #expect(try eventually { try site.depths(["registry", "dead"]) == [0, 2] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let devices = try export(site)
    #expect(devices.map { $0["app"] as? String } == [Site.app])
    #expect(devices.first?["topics"] as? [String] == ["news"])
    let dead = Dictionary(try site.take("dead").map { ($0.id, $0.header("x-push-reason") ?? "") }) { first, _ in first }
    #expect(dead["odd"]?.contains("control character") == true && dead["partly"]?.contains("tokens[1]: NOT_FOUND") == true)
  }

  @Test(
    "a device that is gone is NotRegistered, and its token in the same request is sent to", arguments: [false, true])
  func goneBesideItsToken(isTokenFirst: Bool) throws {
    let site = try Site()
    try site.startFleet()
    let worker = try site.startWorker()
    let answers = try site.change([
      ["platform": "apns", "token": token(5)], ["op": "unregister", "token": token(5)],
    ])
    let registration = try #require(answers[0]["registration"] as? String)
    try site.broadcast("list", to: ["registration_ids": isTokenFirst ? [token(5), registration] : [registration, token(5)]])
    #expect(try eventually { try site.depths(["results"]) == [1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let results = try site.take("results").first?.json["results"] as? [[String: String]] ?? []
    let errors = results.map { $0["error"] }
    #expect(errors == (isTokenFirst ? [nil, "NotRegistered"] : ["NotRegistered", nil]))
    #expect(try site.deliveries(of: "list") == [token(5): 1])
  }
}
