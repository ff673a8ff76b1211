import Foundation
import TestSupport
import Testing

@Suite("Duplicates", .blocking)
struct DuplicateTests {
  @Test("a producer's retransmission is sent once, in a list as well; another body or id is another request")
  func retransmission() throws {
    let site = try Site()
    try site.startSimulator(script: [token(9): ["status": 410, "reason": "Unregistered"]])
    try site.declareTopology()
    func request(_ number: Int, _ value: String) -> String { #"{"to":"\#(token(number))","data":{"k":"\#(value)"}}"# }
    let list = #"{"registration_ids":["\#(token(5))","\#(token(9))"]}"#
    try site.publish([
      (request(1, "a"), ["message_id": "one"]), (request(1, "a"), ["message_id": "one"]),
      (request(1, "b"), ["message_id": "one"]),
      (request(1, "a"), ["message_id": "other"]), (request(2, "a"), [:]), (request(2, "a"), [:]),
      (list, ["message_id": "list"]), (request(1, "a"), ["message_id": "one"]), (list, ["message_id": "list"]),
    ])
    let figures = try site.drain()
    #expect(figures["duplicates_suppressed"] as? Int == 3)
    #expect(try site.deliveries() == [token(1): 3, token(2): 2, token(5): 1])
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
  }

  @Test("a retransmission of a request on the ladder is not sent; after its final failure, a replay is sent")
  func retransmissionOfWhatWaits() throws {
    let site = try Site()
    let busy: [String: Any] = ["status": 429, "reason": "TooManyRequests", "times": 1]
    try site.startSimulator(
      script: [token(1): busy, token(2): ["refuse": true, "times": 6]],
      settings: #"retry: { steps: ["5s"], attempts: 2 },"#)
    try site.declareTopology()
    func request(_ number: Int) -> String { #"{"to":"\#(token(number))"}"# }
    let worker = try site.startWorker()
    try site.publish([(request(1), ["message_id": "one"])])
    #expect(try eventually { try site.depths(["retry.5s"]) == [1] })
    try site.publish([(request(1), ["message_id": "one"]), (request(2), ["message_id": "two"])])
    #expect(try eventually(seconds: 90) { try site.deliveries() == [token(1): 1] && site.depths(["dead"]) == [1] })
    let replay = try site.run(["dead", "replay", "--config", site.file("pushfleet.json5")])
    #expect(replay.status == 0, "\(replay.output)")
    #expect(try eventually { try site.deliveries()[token(2)] == 1 })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1, token(2): 1])
  }

  @Test("the same id and body for another application, or by another sender, is another request")
  func otherAddressees() throws {
    let site = try Site()
    try site.startSimulator()
    func app(_ id: String, _ more: String = "") -> String { #""\#(id)": { apns: \#(site.apns(topic: id)), \#(more) }"# }
    let senders = #"senders: { "1001": { apns: \#(site.apns(topic: "com.example.sender")) } }"#
    try site.write(
      """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db",
        apps: { \(app("com.example.one", senders)), \(app("com.example.two")) } }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    let device = token(1)
    let topics = ["com.example.one", "com.example.two", "com.example.sender"]
    for topic in topics {
      let fields = topic == topics[2] ? (app: topics[0], sender: "1001") : (app: topic, sender: nil)
      try site.importDevices(
        2..<3, #""app":"\#(fields.app)","topics":["all"]\#(fields.sender.map { #","sender":"\#($0)""# } ?? "")"#,
        token: { token($0 + 10 * topics.firstIndex(of: topic)!) })
    }
    let properties: [[String: Any]] = [
      ["app_id": topics[0]], ["app_id": topics[1]], ["app_id": topics[0], "headers": ["x-push-sender": 1001]],
    ]
    // Each is retransmitted too, and sent once.
    for body in [["to": device], ["to": "/topics/all"]] {
      try site.publish((properties + properties).map { (body, $0.merging(["message_id": "one"]) { $1 }) })
    }
    try site.drain()
    let pushes = try site.pushes()
    let direct = pushes.filter { $0.token == device }.compactMap { $0.headers["apns-topic"] }
    #expect(direct.sorted() == topics.sorted())
    let broadcast = Dictionary(grouping: pushes.filter { $0.token != device }, by: \.token).mapValues(\.count)
    // The first application's own devices are reached by both of its broadcasts: they were registered without a sender, or with the
    // sender that the second one names.
    #expect(broadcast == [token(2): 2, token(12): 1, token(22): 2])
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
  }

  @Test("a failed request may be sent again under the same id")
  func replay() throws {
    let site = try Site()
    try site.startSimulator(script: [token(1): [["status": 400, "reason": "DeviceTokenNotForTopic"]]])
    try site.declareTopology()
    let worker = try site.startWorker()
    let request: (body: Any, properties: [String: Any]) = (#"{"to":"\#(token(1))"}"#, ["message_id": "one"])
    try site.publish([request])
    let letter = try #require(try site.take("dead", count: 1).first)
    let journal = try site.followJournal()
    try site.publish([(letter.body, ["message_id": letter.id, "headers": letter.headers])])
    #expect(journal.waitForLines(2, seconds: 90))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1])
  }
}
