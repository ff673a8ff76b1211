import Foundation
import TestSupport
import Testing

/// FCM and its token endpoint by Python's h2, which checks assertions with OpenSSL and messages against the schema (`fcm_server.py`).
@Suite("An FCM that shares no code with pushfleet")
struct ForeignFCMTests {
  @Test("gets GCM's fixtures as v1 messages, with one access token, on connections as wide as SETTINGS allow")
  func fixtures() throws {
    let site = try Site()
    let server = try site.startForeignFCM(script: [:], ["--streams", "3"], settings: #"results: "all","#)
    try site.declareTopology()
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../Fixtures/requests")
    var names = ForeignClientTests.fixtures.map(\.name)
    try site.publish(
      try names.map { name in
        let text = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
        return (text.replacing(/"to": "[^"]*"/, with: #""to": "fcm:\#(name)""#), ["message_id": name])
      })
    for number in 0..<20 { names.append("more:\(number)") }
    try site.send(lines: (0..<20).map { #"{"to":"more:\#($0)","data":{"n":\#($0),"b":true},"time_to_live":0}"# })
    try site.drain()

    let (sends, tokens) = split(server)
    #expect(tokens.count == 1 && tokens.allSatisfy { $0["answer"] as? Int == 200 })
    #expect(Set(sends.compactMap { $0["token"] as? String }) == Set(names) && sends.count == names.count)
    for send in sends { #expect(send["answer"] as? Int == 200 && send["faults"] == nil && send["protocol"] as? String == "h2") }
    let results = try site.take("results").map(\.json)
    #expect(results.count == names.count && results.allSatisfy { $0["success"] as? Int == 1 })
    let ids = results.compactMap { ($0["results"] as? [[String: String]])?.first?["message_id"] }
    #expect(Set(ids).count == names.count && ids.allSatisfy { $0.hasPrefix("projects/example-project/messages/") })

    let both = try #require(message(sends, "seed004-both-systems.json"))
    let shown = (both["android"] as? [String: Any])?["notification"] as? [String: Any]
    #expect(shown?["body_loc_key"] as? String == "r_rcv" && shown?["body_loc_args"] as? [String] == ["雑談部屋", "2"])
    #expect(shown?["title_loc_args"] == nil && shown?["badge"] == nil && shown?["click_action"] as? String == "N")
    #expect(both["data"] as? [String: String] == ["type": "r", "rid": "300"])
    let aps = ((both["apns"] as? [String: Any])?["payload"] as? [String: Any])?["aps"] as? [String: Any]
    #expect(aps?["badge"] as? Int == 2 && aps?["category"] as? String == "N")
    let last = try #require(message(sends, "more:19"))
    #expect(last["data"] as? [String: String] == ["n": "19", "b": "true"])
    #expect((last["android"] as? [String: Any])?["ttl"] as? String == "0s")
  }

  @Test("has its errors read by FcmError, status and fields, and is not asked again within ten seconds")
  func errors() throws {
    let site = try Site()
    let server = try site.startForeignFCM(
      script: [
        "gone": [["status": 404, "word": "NOT_FOUND", "code": "UNREGISTERED"]],
        "bare": [["status": 404, "word": "NOT_FOUND"]],
        "sender": [["status": 403, "word": "PERMISSION_DENIED", "code": "SENDER_ID_MISMATCH"]],
        "field": [["status": 400, "word": "INVALID_ARGUMENT", "field": "message.android.ttl"]],
        "token": [
          [
            "status": 400, "word": "INVALID_ARGUMENT", "code": "INVALID_ARGUMENT",
            "text": "The registration token is not a valid FCM registration token",
          ]
        ],
        "third": [["status": 401, "word": "UNAUTHENTICATED", "code": "THIRD_PARTY_AUTH_ERROR"]],
        "stale": [["status": 401, "word": "UNAUTHENTICATED", "forget": true]],
        "busy": [["status": 503, "word": "UNAVAILABLE", "code": "UNAVAILABLE"]],
      ], settings: #"results: "all","#)
    try site.declareTopology()
    let tokens = ["gone", "bare", "sender", "field", "token", "third", "stale", "busy"]
    try site.publish(
      tokens.map { (["to": "fcm:\($0)", "notification": ["body": "Hello"]] as [String: Any], ["message_id": $0]) })
    try site.drain()

    var outcomes: [String: String] = [:]
    for result in try site.take("results") {
      outcomes[result.id] = (result.json["results"] as? [[String: String]])?.first.map { $0["error"] ?? "delivered" }
    }
    #expect(
      outcomes == [
        "gone": "NotRegistered", "bare": "InternalServerError", "sender": "MismatchSenderId", "field": "InvalidParameters",
        "token": "InvalidRegistration", "third": "InvalidApnsCredential", "stale": "delivered", "busy": "delivered",
      ])
    let events = try site.take("feedback").map { "\($0.json["event"] ?? "") \($0.json["token"] ?? "")" }
    #expect(Set(events) == ["NotRegistered gone", "MismatchSenderId sender", "InvalidRegistration token"])
    #expect(Set(try site.take("dead").map(\.id)) == ["bare", "sender", "field", "token", "third"])

    let (sends, fetches) = split(server)
    #expect(fetches.count == 2 && fetches.allSatisfy { $0["answer"] as? Int == 200 })
    let times = sends.filter { $0["token"] as? String == "busy" }.compactMap { $0["time"] as? Double }
    #expect(times.count == 2 && times[1] - times[0] >= 10)
  }

  private func split(_ server: ChildProcess) -> (sends: [[String: Any]], tokens: [[String: Any]]) {
    let requests = Site.objects(server.outputSoFar).filter { $0["event"] as? String == "request" }
    let isFetch: ([String: Any]) -> Bool = { request in
      (request["headers"] as? [[String]])?.contains([":path", "/token"]) == true
    }
    return (requests.filter { !isFetch($0) }, requests.filter(isFetch))
  }

  private func message(_ sends: [[String: Any]], _ token: String) -> [String: Any]? {
    sends.first { $0["token"] as? String == token }?["message"] as? [String: Any]
  }
}
