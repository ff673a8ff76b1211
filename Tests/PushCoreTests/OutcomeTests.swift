import Foundation
import Testing

@testable import PushCore

@Suite struct OutcomeTests {
  static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  @Test("a feedback event is written exactly as docs/asyncapi.yaml says")
  func feedback() {
    let event = FeedbackEvent(
      event: .notRegistered, app: Array("com.example.app".utf8), platform: .apns, token: Array("abcd".utf8),
      reason: "Unregistered", status: 410, invalidSince: 1_795_209_720_000, messageID: Array("m-1".utf8),
      observedAt: 1_795_209_720_123)
    #expect(
      Self.text(event.json())
        == #"{"event":"NotRegistered","app":"com.example.app","platform":"apns","token":"abcd","registration":null,"reason":"Unregistered","status":410,"invalid_since":"2026-11-20T21:22:00.000Z","message_id":"m-1","observed_at":"2026-11-20T21:22:00.123Z"}"#
    )
  }

  @Test("known facts about a token are included, unknown ones are left out")
  func feedbackDetails() {
    var event = FeedbackEvent(
      event: .moved, app: [], platform: .apns, token: Array("ab".utf8), newToken: Array("cd".utf8), reason: "replaced",
      status: 0,
      messageID: [], observedAt: 0)
    event.details = .init(
      environment: "sandbox", sender: Array("7".utf8), installation: Array("i".utf8), user: Array("u".utf8),
      apnsID: Array("id".utf8),
      kind: "voip")
    #expect(
      Self.text(event.json())
        == #"{"event":"Moved","app":"","platform":"apns","token":"ab","new_token":"cd","registration":null,"reason":"replaced","status":0,"invalid_since":null,"message_id":"","observed_at":"1970-01-01T00:00:00.000Z","environment":"sandbox","sender":"7","installation":"i","user":"u","apns_id":"id","kind":"voip"}"#
    )
  }

  @Test("registration and platform are included, and a missing time is null")
  func feedbackOfFCM() throws {
    let event = FeedbackEvent(
      event: .mismatchSenderID, app: [], platform: .fcm, token: Array("t:1".utf8), registration: Array("pf-r-1".utf8),
      reason: "SENDER_ID_MISMATCH", status: 403, messageID: [], observedAt: 0)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(event.json())) as? [String: Any])
    #expect(object["platform"] as? String == "fcm")
    #expect(object["registration"] as? String == "pf-r-1")
    #expect(object["invalid_since"] is NSNull)
    #expect(object["event"] as? String == "MismatchSenderId")
    #expect(object.count == 10)
  }

  @Test("a browser's subscription is named by its endpoint, never with its secret")
  func feedbackOfWebPush() throws {
    let subscription = try SubscriptionSupport.subscription()
    var event = FeedbackEvent(
      event: .moved, app: Array("a".utf8), platform: .webpush, token: subscription.token(), newToken: subscription.token(),
      reason: "replaced", status: 0, messageID: [], observedAt: 0, details: .init(kind: "alert"))
    #expect(
      Self.text(event.json())
        == #"{"event":"Moved","app":"a","platform":"webpush","token":"https://push.example.net/p/1","new_token":"https://push.example.net/p/1","registration":null,"reason":"replaced","status":0,"invalid_since":null,"message_id":"","observed_at":"1970-01-01T00:00:00.000Z","kind":"webpush"}"#
    )
    event.details.kind = nil
    #expect(Self.text(event.json()).hasSuffix(#","kind":"webpush"}"#))
    // An installation that had a token of another platform.
    (event.platform, event.token) = (.fcm, Array("t:1".utf8))
    #expect(Self.text(event.json()).contains(#""token":"t:1","new_token":"https://push.example.net/p/1","registration""#))
  }

  @Test("an answer makes a feedback event exactly when it is a verdict against the token")
  func feedbackFromAnswer() {
    for row in APNsReply.rows {
      let meaning = APNsReply.interpret(status: row.status, body: Array(#"{"reason":"\#(row.reason)"}"#.utf8))
      let event = FeedbackEvent(
        meaning, app: [], platform: .apns, token: [], registration: nil, messageID: [], observedAt: 0)
      let expected: Set = ["BadDeviceToken", "DeviceTokenNotForTopic", "Unregistered", "ExpiredToken"]
      #expect((event != nil) == expected.contains(row.reason), "\(row.reason)")
    }
  }

  @Test("only an answer about the token is feedback")
  func whatIsFeedback() {
    #expect(Reaction.gone(.notRegistered).isFeedback && Reaction.suspect(.invalidRegistration).isFeedback)
    #expect(!Reaction.drop(.messageTooBig).isFeedback && !Reaction.retry(.outage, .unavailable).isFeedback)
    #expect(!Reaction.delivered.isFeedback && !Reaction.credential(.invalidAPNsCredential).isFeedback)
  }

  @Test("a result is written in GCM's shape, in the order of the targets")
  func result() {
    let result = SendResult(
      messageID: Array("m-1".utf8), app: Array("a".utf8),
      targets: [
        .accepted(id: Array("id-1".utf8)), .failed(.notRegistered),
        .accepted(id: Array("id-2".utf8), registration: Array("new".utf8)),
      ])
    #expect(
      Self.text(result.json())
        == #"{"message_id":"m-1","app":"a","success":2,"failure":1,"canonical_ids":1,"results":[{"message_id":"id-1"},{"error":"NotRegistered"},{"message_id":"id-2","registration_id":"new"}]}"#
    )
    let refused = SendResult(
      messageID: [], app: [],
      targets: [.failed(.invalidParameters, reason: "\u{7}a \"b\"" + String(repeating: "é", count: 600))])
    #expect(
      Self.text(refused.json()).hasSuffix(
        ##"[{"error":"InvalidParameters","reason":" a \"b\""## + String(repeating: "é", count: 253) + #""}]}"#))
    #expect(
      Self.text(SendResult(messageID: [], app: [], targets: []).json())
        == #"{"message_id":"","app":"","success":0,"failure":0,"canonical_ids":0,"results":[]}"#)
  }

  @Test("a topic's result only has counts")
  func fanOut() {
    #expect(
      Self.text(SendResult.fanOut(messageID: Array("m".utf8), success: 1_000_000, failure: 3))
        == #"{"message_id":"m","success":1000000,"failure":3}"#)
    #expect(
      Self.text(
        SendResult.fanOut(
          messageID: [], success: 1, failure: 3,
          failures: [
            .init(platform: .apns, error: .messageTooBig, devices: 2), .init(platform: nil, error: .expired, devices: 1),
          ]))
        == #"{"message_id":"","success":1,"failure":3,"failures":[{"error":"MessageTooBig","platform":"apns","count":2},"#
        + #"{"error":"Expired","count":1}]}"#)
    #expect(
      Self.text(SendResult.fanOut(messageID: [], success: 1, failure: 2, failed: [Array("a".utf8), Array("b".utf8)]))
        == #"{"message_id":"","success":1,"failure":2,"failed_registration_ids":["a","b"]}"#)
  }

  @Test("a dry run's result has the changes by translation for each platform")
  func report() throws {
    var losses = LossReport()
    losses.add("GS-072", "delay_while_idle", .emulated, "no counterpart, sent with priority 5")
    var report = DryRunReport()
    report[.apns] = losses
    report[.fcm] = LossReport()
    let json = SendResult(messageID: [], app: [], targets: []).json(report: report)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
    #expect(
      object["report"] as? [String: [[String: String]]] == [
        "apns": [
          [
            "rule": "GS-072", "field": "delay_while_idle", "action": "emulated",
            "words": "no counterpart, sent with priority 5",
          ]
        ], "fcm": [],
      ])
    report[.fcm] = nil
    #expect(Self.text(SendResult(messageID: [], app: [], targets: []).json(report: report)).hasSuffix("]}}"))
    #expect(
      Self.text(SendResult(messageID: [], app: [], targets: []).json(report: DryRunReport())).hasSuffix(#""report":{}}"#))
  }

  /// Characters that need an escape, at each place in a word of eight bytes.
  private static let specials: [String] = ["\u{7F}", "\u{1F}", "\"", "\\", "\u{80}"].flatMap { special in
    (0..<18).map { String(repeating: "~", count: $0) + special + String(repeating: " ", count: 17 - $0) }
  }

  @Test(
    "all external text is escaped, and is read back unchanged",
    arguments: [
      "plain", "quote\" back\\ slash/", "tab\tnewline\nreturn\r", "\u{0}\u{1}\u{1B}[31m\u{7F}", "\u{2028}\u{2029}",
      "雑談部屋 🇩🇰 é \u{200D}\u{A0}\u{E000}",
      "\u{8}\u{C}", "\u{80}\u{9B}31m\u{9F}\u{61C}\u{200E}\u{200F}\u{202A}\u{202E}\u{2066}\u{2069}",
    ] + specials)
  func escaping(text: String) throws {
    var bytes: [UInt8] = []
    bytes.appendSafeJSONString(text)
    #expect(try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed) as? String == text)
    #expect(!bytes.contains { $0 < 0x20 || $0 == 0x7F })
    #expect(bytes.count { $0 == UInt8(ascii: "~") } == text.utf8.count { $0 == UInt8(ascii: "~") })
    #expect(
      !Self.text(bytes).unicodeScalars.contains {
        (0x80..<0xA0).contains($0.value) || $0.properties.isBidiControl || $0.value == 0x2028 || $0.value == 0x2029
      })
    #expect((try? JSONDocument(bytes)) != nil)
  }

  @Test(
    "invalid UTF-8 becomes replacement characters, never broken JSON",
    arguments: [
      [0xFF], [0xC3], [0xE2, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xC0, 0xAF], [0x61, 0x80, 0x62],
      [0xF0, 0x9F, 0x87],
    ] as [[UInt8]])
  func notUTF8(bytes: [UInt8]) throws {
    var output: [UInt8] = []
    output.appendSafeJSONString(bytes)
    let read = try #require(
      try JSONSerialization.jsonObject(with: Data(output), options: .fragmentsAllowed) as? String)
    #expect(read.unicodeScalars.contains("\u{FFFD}"))
    #expect((try? JSONDocument(output)) != nil)
  }

  @Test("a dead letter's headers are those of docs/asyncapi.yaml")
  func deadLetterHeaders() {
    let letter = DeadLetter(
      error: .messageTooBig, reason: "payload of 4097 bytes", status: 413, attempts: 2, failedAt: 1_795_209_720_123)
    let headers = letter.headers
    #expect(headers.map(\.name) == ["x-push-error", "x-push-reason", "x-push-status", "x-push-attempts", "x-push-failed-at"])
    #expect(
      headers.map(\.value) == [
        .text(Array("MessageTooBig".utf8)), .text(Array("payload of 4097 bytes".utf8)), .number(413), .number(2),
        .text(Array("2026-11-20T21:22:00.123Z".utf8)),
      ])
    let unsent = DeadLetter(error: .invalidJSON, reason: "x", attempts: 0, failedAt: 0)
    #expect(unsent.headers.map(\.name) == ["x-push-error", "x-push-reason", "x-push-attempts", "x-push-failed-at"])
  }

  @Test("a reason can't make the headers grow without limit, and has no control characters")
  func boundedReason() {
    let long = DeadLetter.bounded(String(repeating: "é", count: 1000))
    #expect(long.count == 512)
    #expect(String(validating: long, as: UTF8.self) != nil)
    #expect(DeadLetter.bounded("a" + String(repeating: "é", count: 1000)).count == 511)
    #expect(Self.text(DeadLetter.bounded("a\r\nb\u{1B}c\u{0}d\u{85}e")) == "a  b c d e")
  }

  static let rewrites: [(String, String)] = [
    (#"{"to":"x","data":{"a":1}}"#, #"{"to":"T","data":{"a":1}}"#),
    (
      #"{ "data" : {"to": "y"}, "registration_ids" : ["a", "b" ] , "priority":"high" }"#,
      #"{ "data" : {"to": "y"}, "to":"T" , "priority":"high" }"#
    ),
    (#"{"condition":"'a' in topics"}"#, #"{"to":"T"}"#), (#"{"notification_key":"k","to":"x"}"#, #"{"to":"T"}"#),
    (#"{"to":"x" , "notification_key": "k" ,"a":"\u00e9"}"#, #"{"to":"T" ,"a":"\u00e9"}"#),
    (#"{"t\u006f":"x","n":1.0e5}"#, #"{"to":"T","n":1.0e5}"#), ("{}", #"{"to":"T"}"#),
    (#"{ "data":{} }"#, #"{"to":"T", "data":{} }"#),
    (
      #"{"validate_only":true,"message":{"topic":"x","data":{"token":"t"}}}"#,
      #"{"validate_only":true,"message":{"token":"T","data":{"token":"t"}}}"#
    ),
    (#"{"message":{"data":{}, "token":"x"}}"#, #"{"message":{"data":{}, "token":"T"}}"#),
    (#"{"message":{}}"#, #"{"message":{"token":"T"}}"#),
    (#"{"message":{"fid":"cXyZ0123456789_-AbCdEf"}}"#, #"{"message":{"token":"T"}}"#),
    (#"{"message":{"token":"x"},"to":"z"}"#, #"{"message":{"token":"T"},"to":"z"}"#),
    ("[]", "[]"), ("3", "3"), (#"{"message":7,"to":"x"}"#, #"{"message":7,"to":"T"}"#),
  ]

  @Test("a dead letter's body is the same request for the one device, with all else byte for byte", arguments: rewrites)
  func deadLetterBody(request: String, expected: String) throws {
    let document = try JSONDocument(Array(request.utf8))
    let body = DeadLetter.body(document, naming: Array("T".utf8))
    #expect(Self.text(body) == expected)
    #expect((try? JSONDocument(body)) != nil)
  }

  @Test("a device can be named without the registry")
  func targets() throws {
    #expect(Self.text(DeadLetter.target(.apns, token: Array("ab".utf8))) == "apns:ab")
    for (address, target) in [
      ("x:y", "fcm:x:y"), ("fid:cXyZ0123456789_-AbCdEf", "fid:cXyZ0123456789_-AbCdEf"), ("/topics/news", "fcm:/topics/news"),
      ("'a' in topics", "fcm:'a' in topics"),
    ] {
      let named = DeadLetter.target(.fcm, token: Array(address.utf8))
      #expect(Self.text(named) == target)
      switch Target.classify(named) {
      case .success(.fcm(let found)), .success(.fcmTopics(let found)): #expect(Self.text(Array(found)) == address)
      default: Issue.record("\(target) isn't the same target again")
      }
    }
    let token = try SubscriptionSupport.subscription().token()
    #expect(Target.classify(DeadLetter.target(.webpush, token: token)) == .success(.webpush(token: token[...])))
  }
}
