import Foundation
import HTTP2
import Reactor
import TLS
import TestSupport
import Testing

@testable import Simulator

@Suite struct FCMServiceTests {
  @Test("An assertion buys an access token, and that sends a message")
  func sends() throws {
    let talk = try FCMTalk()
    try talk.authorize()
    #expect(talk.json(-1)["token_type"] as? String == "Bearer")
    #expect(talk.json(-1)["expires_in"] as? Int == 3599)
    talk.send(0, #"{"message":{"token":"abc:DEF_-9","data":{"k":"v"},"android":{"ttl":"0s","priority":"high"}}}"#)
    #expect(talk.answers[0]?.status == 200)
    #expect((talk.json()["name"] as? String)?.hasPrefix("projects/demo/messages/0:") == true)
    let entries = talk.service.journal.entries
    #expect(entries.map(\.tokenText) == ["", "abc:DEF_-9"])
    #expect(entries[0].payload.isEmpty)
    #expect(entries[0].authorization?.issuer == Array("push@demo.iam.example".utf8))
    #expect(entries.allSatisfy { $0.violations.isEmpty && $0.header("authorization") == nil })
    let lines = try entries.map { entry in
      try #require(JSONSerialization.jsonObject(with: Data(entry.json.line)) as? [String: Any])
    }
    // Each line has it; the assertion, a credential, isn't shown.
    #expect(lines[0]["payload"] is NSNull && lines[1]["payload"] is [String: Any])
  }

  @Test("validate_only sends nothing and is told by its name")
  func validateOnly() throws {
    let talk = try FCMTalk()
    try talk.authorize()
    talk.send(0, #"{"validateOnly":true,"message":{"topic":"news"}}"#)
    #expect(talk.json()["name"] as? String == "projects/demo/messages/fake_message_id")
    #expect(talk.service.journal.entries[1].tokenText == "/topics/news")
  }

  @Test("Access tokens end, and only those issued here count")
  func accessTokens() throws {
    var configuration = FCMConfiguration()
    configuration.tokenLifetime = 60
    let talk = try FCMTalk(configuration)
    try talk.authorize()
    let body = #"{"message":{"token":"abc"}}"#
    talk.send(0, body)
    talk.send(1, body, authorization: "Bearer ya29.forged")
    talk.send(2, body, authorization: nil)
    talk.send(4, body, authorization: "BEARER \(talk.accessToken)")
    talk.clock.milliseconds += 60_000
    talk.send(3, body)
    let refused = "401 UNAUTHENTICATED"
    #expect((0..<5).map { talk.outcome($0) } == ["200", refused, refused, refused, "200"])
  }

  @Test("What is wrong with an assertion is refused in OAuth's words")
  func assertions() throws {
    var configuration = FCMConfiguration()
    configuration.clientEmail = "push@demo.iam.example"
    let talk = try FCMTalk(configuration)
    let now = talk.clock.milliseconds / 1000
    let wrong: [[String: Any]] = [
      ["iss": "other@demo.iam.example"], ["exp": now + 3601], ["exp": now - 1], ["iat": now - 4000, "exp": now - 400],
      ["iat": now + 900, "exp": now + 1000],
      ["aud": ""], ["scope": "https://www.googleapis.com/auth/drive"], ["iat": Int64.min], ["exp": "soon"],
    ]
    for (tag, changes) in wrong.enumerated() { try talk.requestToken(tag, claims: talk.claims(changes)) }
    try talk.requestToken(100, claims: talk.claims(), algorithm: "HS256")
    talk.submit(
      101, path: "/token", body: "grant_type=password", authorization: nil, contentType: "application/x-www-form-urlencoded")
    talk.pair.exchange()
    let errors = (Array(0..<wrong.count) + [100, 101]).map {
      "\(talk.answers[$0]?.status ?? 0) \(talk.json($0)["error"] ?? "none")"
    }
    #expect(
      errors == [String](repeating: "400 invalid_grant", count: 6) + [
        "400 invalid_scope", "400 invalid_grant", "400 invalid_grant", "400 invalid_grant", "400 unsupported_grant_type",
      ])
  }

  @Test("With the account's key, only assertions that it signed pass")
  func signatures() throws {
    let certificates = try TestCertificates.make()
    var configuration = FCMConfiguration()
    configuration.accountKey = try Array(Data(contentsOf: URL(fileURLWithPath: certificates.rsaKey)))
    let talk = try FCMTalk(configuration)
    try talk.requestToken(0, claims: talk.claims())
    try talk.requestToken(1, claims: talk.claims(), key: SigningKey(path: certificates.rsaKey))
    #expect(talk.answers[0]?.status == 400)
    #expect(talk.answers[1]?.status == 200)
  }

  @Test("Messages are checked field by field", arguments: badMessages)
  func checked(_ message: String, _ expected: String) throws {
    let talk = try FCMTalk()
    try talk.authorize()
    talk.send(0, message)
    #expect(talk.outcome() == expected)
    #expect(!talk.service.journal.entries[1].violations.isEmpty || expected.hasSuffix("INVALID_ARGUMENT INVALID_ARGUMENT"))
  }

  @Test("Every field of the schema passes, in either spelling")
  func everyField() throws {
    let talk = try FCMTalk()
    try talk.authorize()
    talk.send(
      0,
      #"""
      {"validate_only": false, "message": {"token": "a", "data": {"a": "b"}, "notification": {"title": "t", "body": "b", "image": "i"},
       "android": {"collapseKey": "c", "priority": "HIGH", "ttl": "3.5s", "restricted_package_name": "p", "direct_boot_ok": true,
        "notification": {"title_loc_args": ["x"], "event_time": "2026-11-20T21:22:00Z", "vibrate_timings": ["1s", "0.5s"],
         "notification_count": 3, "visibility": "PUBLIC", "light_settings": {"color": {"red": 0.5}, "light_on_duration": "1s"}}},
       "apns": {"headers": {"apns-priority": "5"}, "payload": {"aps": {"badge": 1}}}, "webpush": {"notification": {"any": [1]}, "fcm_options": {"link": "l"}},
       "fcm_options": {"analytics_label": "l"}, "condition": null}}
      """#)
    #expect(talk.outcome() == "200")
  }

  @Test("Installations, android_v2 and its fields pass, and a script names an installation with or without its prefix")
  func installations() throws {
    let fid = "cXyZ0123456789_-AbCdEf"
    for name in [fid, "fid:\(fid)"] {
      var configuration = FCMConfiguration()
      configuration.script = try Script(parsing: Array(#"{"\#(name)": [{"status": 404}]}"#.utf8))
      let talk = try FCMTalk(configuration)
      try talk.authorize()
      for tag in 0..<2 {
        talk.send(
          tag,
          #"""
          {"message": {"fid": "\#(fid)", "android_v2": {"collapseKey": "c", "ttl": "3.5s", "restricted_package_name": "p", "data": {"a": "b"},
            "direct_boot_ok": true, "bandwidth_constrained_ok": true, "restricted_satellite_ok": true,
            "fcm_options": {"analytics_label": "l"}, "remote_notification": {"mutable_content": true, "use_as_v1_data_message": true,
              "notification": {"title": "t", "id": -1, "tag": "t"}}}}}
          """#)
      }
      #expect(talk.outcome(0) == "404 NOT_FOUND UNREGISTERED")
      #expect(talk.outcome(1) == "200")
      #expect(talk.service.journal.entries.map(\.tokenText) == ["", "fid:\(fid)", "fid:\(fid)"])
      talk.send(2, #"{"message":{"fid":"\#(fid)","android_v2":{"background_sync":{}}}}"#)
      #expect(talk.outcome(2) == "200")
    }
  }

  @Test("Sizes: 4,096 bytes to a token, 2,048 to a topic", arguments: [("token", 4096), ("topic", 2048)])
  func sizes(_ target: String, _ limit: Int) throws {
    let talk = try FCMTalk()
    try talk.authorize()
    for (tag, size) in [limit, limit + 1].enumerated() {
      talk.send(tag, #"{"message":{"\#(target)":"a","data":{"k":"\#(String(repeating: "x", count: size - 1))"}}}"#)
    }
    #expect(talk.outcome(0) == "200")
    #expect(talk.outcome(1) == "400 INVALID_ARGUMENT INVALID_ARGUMENT message")
  }

  @Test(
    "The error table, by script",
    arguments: [
      (#"{"status": 404}"#, "404 NOT_FOUND UNREGISTERED"), (#"{"reason": "UNREGISTERED"}"#, "404 NOT_FOUND UNREGISTERED"),
      (#"{"reason": "NOT_FOUND"}"#, "404 NOT_FOUND"), (#"{"status": 400}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT"),
      (#"{"reason": "BAD_REQUEST"}"#, "400 INVALID_ARGUMENT message.android.ttl"),
      (#"{"reason": "SENDER_ID_MISMATCH"}"#, "403 PERMISSION_DENIED SENDER_ID_MISMATCH"),
      (#"{"reason": "PERMISSION_DENIED"}"#, "403 PERMISSION_DENIED"),
      (#"{"reason": "THIRD_PARTY_AUTH_ERROR"}"#, "401 UNAUTHENTICATED THIRD_PARTY_AUTH_ERROR"),
      (#"{"status": 401}"#, "401 UNAUTHENTICATED"),
      (#"{"status": 429, "retry_after": 9}"#, "429 RESOURCE_EXHAUSTED QUOTA_EXCEEDED"),
      (#"{"status": 500}"#, "500 INTERNAL INTERNAL"), (#"{"status": 503}"#, "503 UNAVAILABLE UNAVAILABLE"),
      (#"{"reason": "NEW_REASON", "status": 418}"#, "418 UNKNOWN NEW_REASON"), (#"{"status": 200}"#, "200"),
    ])
  func errorTable(_ step: String, _ expected: String) throws {
    var configuration = FCMConfiguration()
    configuration.script = try Script(parsing: Array(#"{"abc": \#(step)}"#.utf8))
    let talk = try FCMTalk(configuration)
    try talk.authorize()
    talk.send(0, #"{"message":{"token":"abc"}}"#)
    #expect(talk.outcome() == expected)
  }

  @Test("The token endpoint is scripted under its path")
  func scriptedTokenEndpoint() throws {
    var configuration = FCMConfiguration()
    configuration.script = try Script(
      parsing: Array(#"{"/token": [{"status": 503, "body": "<html>"}, {"status": 400, "reason": "invalid_grant"}]}"#.utf8))
    let talk = try FCMTalk(configuration)
    for tag in 0..<3 { try talk.requestToken(tag, claims: talk.claims()) }
    #expect((0..<3).map { talk.answers[$0]?.status } == [503, 400, 200])
    #expect(talk.answers[0]?.body == Array("<html>".utf8))
    #expect(talk.json(1)["error"] as? String == "invalid_grant")
  }

  @Test("A wrong project or path is a bare 404, which says nothing of the token")
  func wrongProject() throws {
    var configuration = FCMConfiguration()
    configuration.project = "demo"
    let talk = try FCMTalk(configuration)
    try talk.authorize()
    let body = #"{"message":{"token":"abc"}}"#
    talk.send(0, body)
    talk.send(1, body, project: "other")
    talk.send(2, body, project: "demo/x")
    #expect((0..<3).map { talk.outcome($0) } == ["200", "404 NOT_FOUND", "404 NOT_FOUND"])
  }

  @Test("The 101st stream ends the connection with the words of the real service")
  func tooManyStreams() throws {
    var configuration = FCMConfiguration()
    configuration.script = try Script(parsing: Array(#"{"abc": {"stall": true}}"#.utf8))
    let talk = try FCMTalk(configuration)
    try talk.authorize()
    for tag in 0..<100 { talk.send(tag, #"{"message":{"token":"abc"}}"#) }
    #expect(talk.client.availableStreams == 0)
    talk.pair.inject(toServer: [0, 0, 1, 1, 5, 0, 0, 0, 203, 0x83])
    #expect(talk.goAways.map(\.code) == [.protocolError])
    #expect(talk.goAways.map { String(decoding: $0.debugData, as: UTF8.self) } == ["exceeded_max_concurrent_streams"])
    #expect(talk.failures.count == 100)
  }
}

private let badMessages: [(String, String)] = [
  (#"{"message":{"token":"abc"},"priority":"high"}"#, "400 INVALID_ARGUMENT "),
  (#"{"message":{"token":"abc","priority":"high"}}"#, "400 INVALID_ARGUMENT message"),
  (#"{"message":{"token":"abc","data":{"a":"b","n":1}}}"#, "400 INVALID_ARGUMENT message.data[1].value"),
  (#"{"message":{"token":"abc","data":{"o":{}}}}"#, "400 INVALID_ARGUMENT message.data[0].value"),
  (#"{"message":{"token":"abc","android":{"ttl":600}}}"#, "400 INVALID_ARGUMENT message.android.ttl"),
  (#"{"message":{"token":"abc","android":{"ttl":"600"}}}"#, "400 INVALID_ARGUMENT message.android.ttl"),
  (#"{"message":{"token":"abc","android":{"ttl":"-1s"}}}"#, "400 INVALID_ARGUMENT message.android.ttl"),
  (#"{"message":{"token":"abc","android":{"ttl":"2419201s"}}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.android.ttl"),
  (#"{"message":{"token":"abc","android":{"priority":"URGENT"}}}"#, "400 INVALID_ARGUMENT message.android.priority"),
  (
    #"{"message":{"token":"abc","android":{"notification":{"body_loc_args":["a",1]}}}}"#,
    "400 INVALID_ARGUMENT message.android.notification.body_loc_args[1]"
  ),
  (#"{"message":{"token":"abc","data":{"google.x":"1"}}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.data"),
  (#"{"message":{"token":"abc","data":{"from":"1"}}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.data"),
  (#"{"message":{}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message"),
  (#"{"message":{"token":"abc","topic":"x"}}"#, "400 INVALID_ARGUMENT message"),
  (#"{"message":{"topic":"/topics/x"}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.topic"),
  (
    #"{"message":{"topic":"\#(String(repeating: "t", count: 901))"}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.topic"
  ),
  (#"{"message":{"condition":""}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.condition"),
  (#"{"message":{"condition":"'a' in topic"}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.condition"),
  (#"{"message":{"fid":"cXyZ0123456789_-AbCdE"}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.fid"),
  (#"{"message":{"fid":"bXyZ0123456789_-AbCdEf"}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.fid"),
  (#"{"message":{"fid":"fid:cXyZ0123456789_-AbCdEf"}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.fid"),
  (#"{"message":{"fid":7}}"#, "400 INVALID_ARGUMENT message.fid"),
  (#"{"message":{"fid":"cXyZ0123456789_-AbCdEf","token":"abc"}}"#, "400 INVALID_ARGUMENT message"),
  (
    #"{"message":{"token":"abc","android":{},"android_v2":{"background_sync":{}}}}"#,
    "400 INVALID_ARGUMENT INVALID_ARGUMENT message.android_v2"
  ),
  (
    #"{"message":{"token":"abc","android_v2":{"background_sync":{},"remote_notification":{}}}}"#,
    "400 INVALID_ARGUMENT message.android_v2"
  ),
  (#"{"message":{"token":"abc","android_v2":{}}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message.android_v2"),
  (
    #"{"message":{"token":"abc","android_v2":{"background_sync":{},"priority":"HIGH"}}}"#,
    "400 INVALID_ARGUMENT message.android_v2"
  ),
  (
    #"{"message":{"token":"abc","android_v2":{"background_sync":{"x":1}}}}"#,
    "400 INVALID_ARGUMENT message.android_v2.background_sync"
  ),
  (
    #"{"message":{"token":"abc","android_v2":{"background_sync":{},"ttl":"2419201s"}}}"#,
    "400 INVALID_ARGUMENT INVALID_ARGUMENT message.android_v2.ttl"
  ),
  (
    #"{"message":{"token":"abc","android_v2":{"remote_notification":{"notification":{"proxy":"ALLOW"}}}}}"#,
    "400 INVALID_ARGUMENT message.android_v2.remote_notification.notification"
  ),
  (#"{"message":{"token":"not a token"}}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT"),
  (#"{"message":{"token":"abc","collapse_key":"a"}}"#, "400 INVALID_ARGUMENT message"),
  (
    #"{"message":{"token":"abc","android":{"collapse_key":"a","collapseKey":"b"}}}"#,
    "400 INVALID_ARGUMENT message.android.collapse_key"
  ),
  (#"{"message":{"token":"abc"}"#, "400 INVALID_ARGUMENT "),
  (#"{"validate_only":true}"#, "400 INVALID_ARGUMENT INVALID_ARGUMENT message"),
]
