import Foundation
import TestSupport
import Testing

@Suite("The main path", .blocking)
struct MainPathTests {
  @Test("a request published by pika becomes a push, and its result comes back")
  func requestToPush() throws {
    let site = try Site()
    try site.startSimulator(settings: #"results: "all","#)
    try site.declareTopology()
    let request: [String: Any] = [
      "to": token(1), "priority": "high", "collapse_key": "score",
      "notification": ["title": "Portugal vs. Denmark", "body": "great match!", "badge": "2"], "data": ["Nick": "Mario"],
    ]
    try site.publish([
      (
        request,
        ["message_id": "m-1", "app_id": Site.app, "correlation_id": "c-1", "headers": ["traceparent": "00-abc-def-01"]]
      )
    ])
    try site.drain()

    let push = try #require(try site.pushes().first)
    #expect(push.token == token(1) && push.status == 200)
    #expect(push.headers["apns-topic"] == Site.app)
    #expect(push.headers["apns-push-type"] == "alert")
    #expect(push.headers["apns-priority"] == "10")
    #expect(push.headers["apns-collapse-id"] == "score")
    let aps = try #require(push.payload["aps"] as? [String: Any])
    #expect((aps["alert"] as? [String: String]) == ["title": "Portugal vs. Denmark", "body": "great match!"])
    #expect(aps["badge"] as? Int == 2)
    #expect(push.payload["Nick"] as? String == "Mario")

    let result = try #require(try site.take("results").first)
    #expect(result.json["message_id"] as? String == "m-1")
    #expect(result.json["success"] as? Int == 1 && result.json["failure"] as? Int == 0)
    #expect((result.json["results"] as? [[String: String]])?.first?["message_id"] == push.headers["apns-id"])
    #expect(result.properties["correlation_id"] as? String == "c-1")
    #expect(result.header("traceparent") == "00-abc-def-01")
  }
}
