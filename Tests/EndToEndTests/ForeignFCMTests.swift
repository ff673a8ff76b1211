import Foundation
import TestSupport
import Testing

/// FCM and its token endpoint by Python's h2, which checks assertions with OpenSSL and messages against the schema (`fcm_server.py`).
@Suite("An independent FCM implementation", .blocking)
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

  static let fid = "cXyZ0123456789_-AbCdEf"

  @Test("gets installations, its own topics and conditions over them in the right fields, and each has its outcome")
  func addresses() throws {
    let site = try Site()
    let installations = (0..<4).map { "fid:d\($0)yZ0123456789_-AbCdEf" }
    let server = try site.startForeignFCM(
      script: [
        installations[1]: [["status": 404, "word": "NOT_FOUND", "code": "UNREGISTERED"]],
        installations[2]: [["status": 400, "word": "INVALID_ARGUMENT", "field": "message.fid"]],
        "/topics/gone": [["status": 404, "word": "NOT_FOUND", "code": "UNREGISTERED"]],
        "/topics/wrong": [["status": 400, "word": "INVALID_ARGUMENT", "code": "INVALID_ARGUMENT", "field": "message.topic"]],
      ], settings: #"results: "all","#)
    try site.declareTopology()
    let condition = "'a' in topics && !('b' in topics)"
    let sent: [(String, String)] = [
      ("v1", #"{"message": {"fid": "\#(installations[0].dropFirst(4))", "notification": {"title": "t"}}}"#),
      ("list", #"{"registration_ids": ["a:b", "\#(installations.joined(separator: #"", ""#))", "fcm:/topics/news"]}"#),
      ("gone", #"{"to": "\#(installations[3])", "data": {"k": "v"}}"#),
      (
        "large",
        #"{"registration_ids": ["a:b", "fcm:/topics/small"], "data": {"k": "\#(String(repeating: "x", count: 2048))"}}"#
      ),
      ("topic", #"{"to": "fcm:/topics/news", "data": {"k": "v"}}"#),
      ("condition", #"{"to": "fcm:\#(condition)", "data": {"k": "v"}}"#),
      ("nobody", #"{"to": "fcm:/topics/gone"}"#), ("wrong", #"{"message": {"token": "fcm:/topics/wrong"}}"#),
    ]
    try site.publish(sent.map { ($1, ["message_id": $0]) })
    let figures = try site.drain()

    let (sends, _) = split(server)
    #expect(sends.allSatisfy { $0["faults"] == nil })
    let members = ["token", "fid", "topic", "condition"].map { name in
      Set(sends.compactMap { ($0["message"] as? [String: Any])?[name] as? String })
    }
    #expect(
      members == [["a:b"], Set(installations.map { String($0.dropFirst(4)) }), ["news", "gone", "wrong"], [condition]])

    var outcomes: [String: [String]] = [:]
    for result in try site.take("results") {
      outcomes[result.id] = (result.json["results"] as? [[String: String]])?.map {
        $0["error"] ?? $0["message_id"].map { $0.hasPrefix("projects/example-project/messages/0:") ? "named" : $0 } ?? "nothing"
      }
    }
    #expect(
      outcomes == [
        "v1": ["named"], "list": ["named", "named", "NotRegistered", "InvalidRegistration", "named", "named"],
        "gone": ["named"],
        "large": ["named", "MessageTooBig"], "topic": ["named"], "condition": ["named"], "nobody": ["NotRegistered"],
        "wrong": ["InvalidParameters"],
      ])
    // FCM's answers about a topic concern no token.
    let events = try site.take("feedback").map {
      "\($0.json["event"] ?? "") \($0.json["platform"] ?? "") \($0.json["token"] ?? "")"
    }
    #expect(
      Set(events) == ["NotRegistered fcm \(installations[1])", "InvalidRegistration fcm \(installations[2])"]
        && events.count == 2)
    let letters = Dictionary(try site.take("dead").map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    #expect(Set(letters.keys) == ["list", "nobody", "wrong", "large"])
    #expect(letters["large"]?.json["to"] as? String == "fcm:/topics/small")
    #expect(letters["list"]?.json["to"] as? String == installations[2] && letters["list"]?.json["registration_ids"] == nil)
    #expect(figures["delivered"] as? Int == 9)
  }

  @Test("validates a dry run's FCM tokens, and its answer is the result")
  func dryRun() throws {
    let site = try Site()
    let fid = "fid:\(Self.fid)"
    let server = try site.startForeignFCM(
      script: [
        "gone": [["status": 404, "word": "NOT_FOUND", "code": "UNREGISTERED"]],
        fid: [["status": 429, "word": "RESOURCE_EXHAUSTED", "code": "QUOTA_EXCEEDED", "retry-after": 1]],
        "field": [["status": 400, "word": "INVALID_ARGUMENT", "field": "message.android.ttl"]],
      ], settings: #"results: "all", retry: { steps: ["1s", "10s"] },"#)
    try site.declareTopology()
    let sent: [(String, String)] = [
      ("good", #"{"to": "fcm:good", "dry_run": true, "notification": {"title": "t", "badge": 1}}"#),
      ("v1", #"{"validate_only": true, "message": {"token": "good", "data": {"k": "v"}}}"#),
      (
        "list", #"{"registration_ids": ["gone", "\#(fid)", "field", "fcm:/topics/news", "fcm:'a' in topics"], "dry_run": true}"#
      ),
      ("audience", #"{"to": "/users/anna", "dry_run": true}"#),
    ]
    try site.publish(sent.map { ($1, ["message_id": $0]) })
    let figures = try site.drain()

    let (sends, _) = split(server)
    #expect(sends.count == 8 && sends.allSatisfy { $0["faults"] == nil && $0["validate_only"] as? Bool == true })
    let results = Dictionary(try site.take("results").map { ($0.id, $0.json) }, uniquingKeysWith: { first, _ in first })
    let validated = "projects/example-project/messages/fake_message_id"
    func outcomes(_ id: String) -> [String]? {
      (results[id]?["results"] as? [[String: String]])?.compactMap { $0["error"] ?? $0["message_id"] }
    }
    #expect(outcomes("good") == [validated] && outcomes("v1") == [validated])
    #expect(outcomes("list") == ["NotRegistered", validated, "InvalidParameters", validated, validated])
    #expect(outcomes("audience") == ["dry_run"])
    let losses = (results["good"]?["report"] as? [String: [[String: String]]])?["fcm"]
    #expect(losses?.contains { $0["field"] == "notification.badge" } == true)
    #expect(try site.take("feedback").map { "\($0.json["event"] ?? "") \($0.json["token"] ?? "")" } == ["NotRegistered gone"])
    #expect(try site.take("dead").map { $0.json["to"] as? String } == ["fcm:field"])
    #expect(figures["delivered"] as? Int == 0 && figures["feedback"] as? Int == 1)
  }

  @Test("gets android_v2 instead of android, merged with GCM's keys")
  func androidV2() throws {
    let site = try Site()
    let server = try site.startForeignFCM(script: [:], settings: #"results: "all","#)
    try site.declareTopology()
    let sent: [(String, String)] = [
      (
        "merged",
        #"""
        {"to": "merged", "collapse_key": "k", "priority": "high", "notification": {"title": "t", "tag": "t1", "icon": "i"},
         "android_v2": {"remote_notification": {"mutable_content": true, "notification": {"tag": "t2", "id": -7, "image": "https://x/i"}},
           "direct_boot_ok": true}}
        """#
      ),
      ("sync", #"{"to": "sync", "data": {"k": "v"}, "android_v2": {"background_sync": {}, "data": {"only": "android"}}}"#),
      (
        "v1",
        #"{"message": {"fid": "\#(Self.fid)", "androidV2": {"ttl": "0s", "remoteNotification": {"useAsV1DataMessage": true}}}}"#
      ),
      ("both", #"{"to": "both", "android": {}, "android_v2": {"background_sync": {}}}"#),
    ]
    try site.publish(sent.map { ($1, ["message_id": $0]) })
    try site.drain()

    let (sends, _) = split(server)
    #expect(sends.count == 3 && sends.allSatisfy { $0["faults"] == nil && $0["answer"] as? Int == 200 })
    func block(_ token: String) -> [String: Any]? { message(sends, token)?["android_v2"] as? [String: Any] }
    let remote = block("merged")?["remote_notification"] as? [String: Any]
    let shown = remote?["notification"] as? [String: Any]
    #expect(shown?["title"] as? String == "t" && shown?["icon"] as? String == "i" && shown?["tag"] as? String == "t2")
    #expect(shown?["id"] as? Int == -7 && remote?["mutable_content"] as? Bool == true)
    #expect(block("merged")?["collapse_key"] as? String == "k" && block("merged")?["direct_boot_ok"] as? Bool == true)
    #expect((block("sync")?["background_sync"] as? [String: Any])?.isEmpty == true)
    #expect(block("sync")?["data"] as? [String: String] == ["only": "android"])
    #expect(message(sends, "sync")?["data"] as? [String: String] == ["k": "v"])
    #expect(block("fid:\(Self.fid)")?["ttl"] as? String == "0s")
    let letter = try #require(try site.take("dead").first)
    #expect(letter.id == "both" && letter.header("x-push-error") == "InvalidParameters")
    #expect(letter.header("x-push-reason")?.hasPrefix("android_v2: beside android") == true)
  }

  @Test("gets an activity's token beside the device's own, and counted badges, with mps for iPhones")
  func activitiesAndCounters() throws {
    let site = try Site()
    let server = try site.startForeignFCM(script: [:], settings: Site.retries + #"registry: "sqlite:registry.db","#)
    let settings = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    try site.write(settings.replacing("{ fcm: {", with: "{ upmc: true, fcm: {"), to: "pushfleet.json5")
    try site.declareTopology()
    let worker = try site.startWorker()
    let device = try #require(
      try site.change([["platform": "fcm", "token": "robot"]]).first?["registration"] as? String)
    try site.publish([
      (["to": "fcm:behind", "apns": LiveActivityTests.update(token: token(9))], ["message_id": "activity"])
    ])
    for number in 1...2 {
      try site.publish([(["to": device, "notification": ["body": "b", "badge": "auto"]], ["message_id": "m\(number)"])])
    }
    #expect(try site.take("results", count: 3).allSatisfy { $0.json["success"] as? Int == 1 })
    worker.signal(15)
    #expect(worker.wait() == 0)

    let (sends, _) = split(server)
    #expect(sends.count == 3 && sends.allSatisfy { $0["faults"] == nil && $0["answer"] as? Int == 200 }, "\(sends)")
    let activity = message(sends, "behind")?["apns"] as? [String: Any]
    #expect(activity?["live_activity_token"] as? String == token(9))
    let state = ((activity?["payload"] as? [String: Any])?["aps"] as? [String: Any])?["content-state"] as? [String: Int]
    #expect(state == ["score": 1])
    let counted = sends.compactMap { $0["message"] as? [String: Any] }.filter { $0["token"] as? String == "robot" }
    let onAndroid = counted.compactMap { ($0["android"] as? [String: Any])?["notification"] as? [String: Any] }
    #expect(Set(onAndroid.compactMap { $0["notification_count"] as? Int }) == [1, 2], "\(counted)")
    let onPhones = counted.compactMap { ($0["apns"] as? [String: Any])?["payload"] as? [String: [String: Any]] }
    #expect(Set(onPhones.compactMap { $0["aps"]?["badge"] as? Int }) == [1, 2], "\(counted)")
    #expect(Set(onPhones.compactMap { $0["mps"]?["pushkey"] as? String }).count == 2, "\(counted)")
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
