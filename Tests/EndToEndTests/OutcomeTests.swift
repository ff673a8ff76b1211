import Foundation
import TestSupport
import Testing

@Suite("The outcomes of requests", .blocking)
struct OutcomeTests {
  static let gone = token(0xdead)
  static let bad = token(0xbad)
  static let foreign = token(0xf0e)
  static let large = token(0x413)
  static let good = token(1)

  static let script: [String: [String: any Sendable]] = [
    gone: ["status": 410, "reason": "Unregistered", "timestamp": 1_732_137_600_000],
    bad: ["status": 400, "reason": "BadDeviceToken"],
    foreign: ["status": 400, "reason": "DeviceTokenNotForTopic"],
    large: ["status": 413, "reason": "PayloadTooLarge"],
  ]

  @Test("feedback, dead letters and results say what docs/asyncapi.yaml says, for one device and for lists")
  func outcomes() throws {
    let site = try Site()
    try site.startSimulator(script: Self.script, settings: #"results: "all","#)
    try site.declareTopology()
    let replies = "\(site.prefix).replies"
    try site.peer(["declare", replies])
    let list: [String: Any] = [
      "registration_ids": [Self.good, Self.gone, Self.good, Self.bad, "apns:\(token(2).uppercased())", Self.gone, "../x"],
      "data": ["k": "v"],
    ]
    try site.publish([
      (request(Self.gone), properties("gone", replies)), (request(Self.bad), properties("bad", replies)),
      (request("apns:" + Self.foreign), properties("foreign")), (request(Self.large), properties("large")),
      (request(Self.good), properties("good", replies)), (list, properties("list", replies)),
    ])
    let figures = try site.drain()
    #expect(figures["delivered"] as? Int == 3 && figures["failed"] as? Int == 7)

    try checkFeedback(site)
    try checkDeadLetters(site)
    try checkResults(site, replies)
    #expect(try site.deliveries() == [Self.good: 2, token(2): 1])
  }

  private func checkFeedback(_ site: Site) throws {
    let ended = try site.run(["feedback", "--config", site.file("pushfleet.json5")])
    #expect(ended.status == 0)
    let events = Site.objects(ended.output)
    let facts = events.map { event in
      ["event", "token", "reason", "status", "invalid_since", "message_id"].map { "\(event[$0] ?? "?")" }.joined(separator: " ")
    }
    let since = "2024-11-20T21:20:00.000Z"
    #expect(
      Set(facts) == [
        "NotRegistered \(Self.gone) Unregistered 410 \(since) gone",
        "NotRegistered \(Self.gone) Unregistered 410 \(since) list",
        "InvalidRegistration \(Self.bad) BadDeviceToken 400 <null> bad",
        "InvalidRegistration \(Self.bad) BadDeviceToken 400 <null> list",
        "InvalidRegistration \(Self.foreign) DeviceTokenNotForTopic 400 <null> foreign",
      ])
    #expect(facts.count == 5)
    for event in events {
      #expect(Set(event.keys).count == 13 && event["registration"] is NSNull)
      #expect(event["environment"] as? String == "production" && event["kind"] as? String == "alert")
      #expect(event["app"] as? String == Site.app && event["platform"] as? String == "apns")
      #expect((event["observed_at"] as? String)?.wholeMatch(of: Self.time) != nil)
    }
    let ids = try site.pushes().map { $0.headers["apns-id"] ?? "" }
    #expect(events.allSatisfy { ids.contains($0["apns_id"] as? String ?? "none") })
    #expect(try site.depths(["feedback"]) == [0])
  }

  private func checkDeadLetters(_ site: Site) throws {
    let letters = try site.take("dead")
    let facts = letters.map { letter in
      "\(letter.id) "
        + ["error", "reason", "status", "attempts"].map { letter.header("x-push-\($0)") ?? "-" }.joined(separator: " ")
        .replacing(/\ at\ byte\ \d+/, with: "")
    }
    #expect(
      Set(facts) == [
        "bad InvalidRegistration BadDeviceToken 400 1", "foreign InvalidRegistration DeviceTokenNotForTopic 400 1",
        "large MessageTooBig PayloadTooLarge 413 1", "list InvalidRegistration BadDeviceToken 400 1",
        "list InvalidRegistration \(Self.listReason) - 0",
      ])
    #expect(facts.count == 5)
    for letter in letters {
      #expect(letter.header("x-push-failed-at")?.wholeMatch(of: Self.time) != nil)
      #expect(letter.properties["app_id"] as? String == Site.app)
      #expect(letter.properties["correlation_id"] as? String == "c-\(letter.id)")
      #expect(letter.properties["delivery_mode"] as? Int == 2)
      #expect(letter.header("x-own") == "kept" && letter.header("traceparent") == "00-0af7651916cd43dd8448eb211c80319c-01")
    }
    let single = try #require(letters.first { $0.id == "foreign" })
    #expect(single.body == #"{"to": "apns:\#(Self.foreign)", "notification": {"body": "Hello"}}"#)
    let ofList = letters.filter { $0.id == "list" }
    #expect(Set(ofList.compactMap { $0.json["to"] as? String }) == ["apns:\(Self.bad)", "../x"])
    #expect(ofList.allSatisfy { $0.json["registration_ids"] == nil && $0.json["data"] as? [String: String] == ["k": "v"] })
  }

  private static let listReason = "registration_ids[6]: a token has a byte beyond a-z A-Z 0-9 _ : . % -"
  private static var time: Regex<Substring> { /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/ }

  private func checkResults(_ site: Site, _ replies: String) throws {
    let results = try site.take("results")
    #expect(Set(results.map(\.id)) == ["gone", "bad", "foreign", "large", "good", "list"] && results.count == 6)
    let answers = try site.takeAll(from: replies)
    #expect(Set(answers.map(\.id)) == ["gone", "bad", "good", "list"] && answers.count == 4)
    for answer in results + answers {
      #expect(answer.properties["correlation_id"] as? String == "c-\(answer.id)")
      #expect(answer.properties["content_type"] as? String == "application/json")
      #expect(answer.json["message_id"] as? String == answer.id && answer.json["app"] as? String == Site.app)
    }
    let ids = try site.pushes().reduce(into: [:]) { ids, push in ids[push.headers["apns-id"] ?? ""] = push.token }
    let whole = try #require(answers.first { $0.id == "list" })
    #expect(
      whole.json["success"] as? Int == 3 && whole.json["failure"] as? Int == 4 && whole.json["canonical_ids"] as? Int == 0)
    let targets = (whole.json["results"] as? [[String: String]] ?? []).map { $0["error"] ?? ids[$0["message_id"] ?? ""] ?? "?" }
    #expect(
      targets == [
        Self.good, "NotRegistered", Self.good, "InvalidRegistration", token(2), "NotRegistered", "InvalidRegistration",
      ])
  }

  private func request(_ target: String) -> String { #"{"to": "\#(target)", "notification": {"body": "Hello"}}"# }

  private func properties(_ id: String, _ replies: String? = nil) -> [String: Any] {
    var properties: [String: Any] = [
      "message_id": id, "correlation_id": "c-\(id)", "app_id": Site.app,
      "headers": ["x-own": "kept", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-01", "x-push-forged": "not kept"],
    ]
    properties["reply_to"] = replies
    return properties
  }

  @Test("results are published as the setting says", arguments: [("none", 0), ("failures", 1), ("all", 2)])
  func resultsSetting(_ setting: String, _ count: Int) throws {
    let site = try Site()
    try site.startSimulator(script: Self.script, settings: #"results: "\#(setting)","#)
    try site.declareTopology()
    try site.publish([(request(Self.good), properties("good")), (request(Self.gone), properties("gone"))])
    try site.drain()
    #expect(try site.depths(["results"]) == [count])
  }

  @Test("a dry_run request is checked and sent to no device")
  func dryRun() throws {
    let site = try Site()
    try site.startSimulator(settings: #"results: "all","#)
    try site.declareTopology()
    try site.publish([(#"{"to": "\#(Self.good)", "dry_run": true, "notification": {"body": "Hello"}}"#, properties("dry"))])
    try site.drain()
    #expect(try site.pushes().isEmpty)
    #expect(try site.take("results").first?.json["success"] as? Int == 1)
  }
}
