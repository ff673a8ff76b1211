import Foundation
import TestSupport
import Testing

/// RabbitMQ checks the size of a message's headers when it is published. Later additions (`x-delivery-count`, `x-death`) can make their
/// frame larger than the connection's limit.
@Suite("Headers that fill a frame", .blocking)
struct FullHeadersTests {
  /// A message whose content header has 131,060 bytes, of the 131,064 that fit a frame of 128 KiB.
  private func full(
    _ id: String, _ body: [String: Any], exchange: String, key: String, properties: [String: Any] = [:]
  ) -> [String: Any] {
    let others = properties.values.reduce(0) { $0 + 1 + (($1 as? String)?.utf8.count ?? 0) }
    let filler = 131_060 - 14 - 13 - 1 - (1 + id.utf8.count) - others
    let own: [String: Any] = ["message_id": id, "headers": ["own": String(repeating: "h", count: filler)]]
    return ["body": body, "exchange": exchange, "routing_key": key, "properties": own.merging(properties) { $1 }]
  }

  private func push(_ number: Int) -> [String: Any] { ["to": token(number), "data": ["k": "v"]] }

  /// Acts like a worker that dies: the broker takes the message back and counts that.
  private func giveBack(_ site: Site, _ queue: String, _ count: Int) throws {
    try site.peer(["consume", "\(site.prefix).\(queue)", "--give-back", "--count", "\(count)", "--wait", "20"])
    #expect(try eventually { try site.depths([queue]) == [count] })
  }

  private func expectRefused(_ letters: [Site.Message], _ ids: Set<String>) {
    #expect(Set(letters.map(\.id)) == ids && letters.count == ids.count, "\(letters.map(\.id))")
    for letter in letters {
      #expect(letter.header("x-push-error") == "InvalidParameters" && letter.headers["own"] == nil)
      #expect(letter.header("x-push-reason")?.contains("the limit is 16384") == true, "\(letter.header("x-push-reason") ?? "")")
    }
  }

  @Test("make requests dead letters, returned before or not, and all others are sent on the same connection")
  func requests() throws {
    let site = try Site()
    try site.startSimulator(
      script: [token(900): ["status": 429, "reason": "TooManyRequests", "retry_after": 1]], settings: #"results: "failures","#)
    try site.declareTopology()
    let send = "\(site.prefix).send"
    try site.publish(lines: (0..<3).map { full("returned \($0)", push(800 + $0), exchange: send, key: "normal") })
    try giveBack(site, "send.normal", 3)
    try giveBack(site, "send.normal", 3)
    try site.publish(
      lines: (0..<5).map { full("fresh \($0)", push(900), exchange: send, key: "normal", properties: ["app_id": Site.app]) }
        + (0..<30).map { ["body": push($0), "exchange": send, "routing_key": "normal"] })
    let worker = try site.startWorker()
    #expect(try eventually(seconds: 30) { try site.depths(["send.normal", "dead", "retry.1s"]) == [0, 8, 0] })
    #expect(try eventually { try site.deliveries().count == 30 })
    worker.signal(15)
    #expect(worker.wait() == 0 && !worker.outputSoFar.contains("broker connection ended"), "\(worker.outputSoFar)")
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: (0..<30).map { (token($0), 1) }))
    expectRefused(try site.take("dead"), Set((0..<3).map { "returned \($0)" } + (0..<5).map { "fresh \($0)" }))
    #expect(try site.take("results").count == 8)
  }

  @Test("make changes and acknowledgements dead letters, and later ones are applied")
  func changes() throws {
    let site = try Site()
    try site.startFleet()
    let device: [String: Any] = ["platform": "fcm", "token": "full", "installation": "full"]
    try site.publish(lines: [
      full("change", device, exchange: "\(site.prefix).registry", key: "change"),
      full("ack", ["op": "read", "installation": "i", "message_id": "m"], exchange: "\(site.prefix).acks", key: "ack"),
    ])
    try giveBack(site, "registry", 1)
    try giveBack(site, "acks", 1)
    try site.publishChanges([(["platform": "fcm", "token": "good", "installation": "good"], [:])])
    let worker = try site.startWorker()
    #expect(try eventually(seconds: 30) { try site.depths(["registry", "acks", "dead"]) == [0, 0, 2] })
    worker.signal(15)
    #expect(worker.wait() == 0 && !worker.outputSoFar.contains("broker connection ended"), "\(worker.outputSoFar)")
    expectRefused(try site.take("dead"), ["change", "ack"])
    let devices = Site.objects(try site.run(["devices", "export", "--config", site.file("pushfleet.json5")]).output)
    #expect(devices.compactMap { $0["token"] as? String } == ["good"])
  }

  @Test("on dead letters don't prevent listing, showing, replaying without them and dropping, even repeatedly")
  func deadLetters() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    func dead(_ words: String...) throws -> Site.Ended {
      let ended = try site.run(["dead"] + words + ["--config", site.file("pushfleet.json5")])
      #expect(ended.status == 0, "\(words): \(ended.output.prefix(300))")
      return ended
    }
    let send = "\(site.prefix).send"
    let headers = ["x-push-sender": Site.app, "own": String(repeating: "h", count: 130_800)]
    try site.publish(lines: [
      full("stray", push(1), exchange: send, key: "urgent"),
      full("expired", push(2), exchange: send, key: "normal", properties: ["expiration": "1"]),
      full("dropped", push(3), exchange: send, key: "urgent"),
      [
        "body": push(4), "exchange": send, "routing_key": "urgent",
        "properties": ["message_id": "sender", "headers": headers] as [String: Any],
      ],
    ])
    #expect(try eventually { try site.depths(["dead"]) == [4] })
    for _ in 0..<2 {
      let groups = Site.objects(try dead("list", "--json").output)
      #expect(groups.reduce(0) { $0 + ($1["count"] as? Int ?? 0) } == 4)
    }
    #expect(try Site.objects(dead("show", "--json").output).count == 4)
    #expect(try dead("show", "stray").output.contains("stray"))
    #expect(try dead("replay", "stray", "expired", "sender", "--json").output.contains(#""replayed":3"#))
    #expect(try dead("drop", "--yes", "--json").output.contains(#"{"dropped":1}"#))
    let copies = try site.take("send.normal")
    #expect(copies.map(\.id).sorted() == ["expired", "sender", "stray"] && copies.allSatisfy { $0.headers["own"] == nil })
    #expect(copies.first { $0.id == "sender" }?.header("x-push-sender") == Site.app)
    #expect(try site.depths(["dead"]) == [0])
  }

  @Test("on feedback events don't prevent printing")
  func feedback() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    try site.publish(lines: [full("event", ["event": "NotRegistered"], exchange: "\(site.prefix).events", key: "feedback.a")])
    try giveBack(site, "feedback", 1)
    let ended = try site.run(["feedback", "--config", site.file("pushfleet.json5")])
    #expect(ended.status == 0 && ended.output.contains("NotRegistered"), "\(ended.output)")
    #expect(try site.depths(["feedback"]) == [0])
  }

  @Test("don't end the reading of the trace, which finds the requests around them")
  func trace() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    func send(_ id: String, to device: Int) throws {
      try site.publish(lines: [
        [
          "body": push(device), "exchange": "\(site.prefix).send", "routing_key": "normal",
          "properties": ["message_id": id],
        ]
      ])
      try site.drain()
    }
    try send("before", to: 1)
    let foreign = full("foreign", ["message_id": "foreign"], exchange: "\(site.prefix).trace", key: "request")
    try site.publish(lines: [foreign, foreign])
    try send("behind", to: 2)
    for id in ["before", "behind"] {
      let ended = try site.run(["trace", id, "--config", site.file("pushfleet.json5"), "--json"])
      #expect(ended.status == 0, "\(id): \(ended.output.prefix(300))")
      #expect(Site.objects(ended.output).map { $0["message_id"] as? String } == [id], "\(ended.output.prefix(300))")
    }
  }

  @Test("on feedback events don't keep them from the list of APNs' feedback service")
  func feedbackList() throws {
    let site = try Site()
    let door = try OldDoor(site)
    try site.declareTopology()
    func event(_ device: Int) -> [String: Any] {
      ["event": "NotRegistered", "platform": "apns", "token": token(device), "invalid_since": "2023-11-14T22:13:20.000Z"]
    }
    let exchange = "\(site.prefix).events"
    try site.publish(lines: [
      full("event", event(1), exchange: exchange, key: "feedback.\(Site.app)"),
      ["body": event(2), "exchange": exchange, "routing_key": "feedback.\(Site.app)"],
    ])
    try giveBack(site, "feedback.binary.\(Site.app)", 2)
    #expect(Set(try door.feedback().compactMap { $0["token"] as? String }) == [token(1), token(2)])
    #expect(try site.depths(["feedback.binary.\(Site.app)"]) == [0])
    #expect(!door.gateway.outputSoFar.contains("broker connection ended"), "\(door.gateway.outputSoFar)")
  }
}
