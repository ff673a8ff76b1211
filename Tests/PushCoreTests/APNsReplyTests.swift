import Testing

@testable import PushCore

@Suite struct APNsReplyTests {
  static func answer(_ status: Int, _ body: String, retryAfter: String? = nil) -> ReplyMeaning {
    APNsReply.interpret(
      status: status, body: Array(body.utf8), retryAfter: retryAfter.map { Array($0.utf8) }, now: 1_795_209_720_000)
  }

  @Test(
    "every documented reason has the reaction that Apple's page and the never-retry list require",
    arguments: [
      (400, "BadCollapseId", .drop(.invalidParameters), .keep), (400, "BadExpirationDate", .drop(.invalidParameters), .keep),
      (400, "BadMessageId", .drop(.invalidParameters), .keep), (400, "BadPriority", .drop(.invalidParameters), .keep),
      (400, "InvalidPushType", .drop(.invalidParameters), .keep), (400, "PayloadEmpty", .drop(.invalidParameters), .keep),
      (400, "DuplicateHeaders", .drop(.invalidParameters), .keep),
      (400, "BadTopic", .credential(.invalidPackageName), .stopTopic),
      (400, "MissingTopic", .credential(.invalidPackageName), .stopTopic),
      (400, "TopicDisallowed", .credential(.invalidPackageName), .stopTopic),
      (400, "MissingDeviceToken", .drop(.internalServerError), .keep),
      (400, "BadDeviceToken", .suspect(.invalidRegistration), .keep),
      (400, "DeviceTokenNotForTopic", .suspect(.invalidRegistration), .keep),
      (400, "IdleTimeout", .retry(.connection, .unavailable), .replace),
      (403, "BadCertificate", .credential(.invalidAPNsCredential), .stopCredential),
      (403, "BadCertificateEnvironment", .credential(.invalidAPNsCredential), .stopCredential),
      (403, "ExpiredProviderToken", .retry(.refreshedToken, .invalidAPNsCredential), .refreshTokenAndReplace),
      (403, "InvalidProviderToken", .credential(.invalidAPNsCredential), .stopCredential),
      (403, "MissingProviderToken", .credential(.invalidAPNsCredential), .stopCredential),
      (403, "UnrelatedKeyIdInToken", .retry(.connection, .invalidAPNsCredential), .replace),
      (403, "BadEnvironmentKeyIdInToken", .credential(.invalidAPNsCredential), .stopCredential),
      (403, "BadEnvironmentKeyInToken", .credential(.invalidAPNsCredential), .stopCredential),
      (403, "Forbidden", .drop(.invalidAPNsCredential), .keep), (404, "BadPath", .drop(.internalServerError), .keep),
      (405, "MethodNotAllowed", .drop(.internalServerError), .keep), (410, "Unregistered", .gone(.notRegistered), .keep),
      (410, "ExpiredToken", .gone(.notRegistered), .keep), (413, "PayloadTooLarge", .drop(.messageTooBig), .keep),
      (429, "TooManyProviderTokenUpdates", .credential(.unavailable), .keepTokenAndWait),
      (429, "TooManyRequests", .retry(.perDevice, .deviceMessageRateExceeded), .keep),
      (500, "InternalServerError", .retry(.outage, .internalServerError), .keep),
      (503, "ServiceUnavailable", .retry(.outage, .unavailable), .keep),
      (503, "Shutdown", .retry(.connection, .unavailable), .replace),
    ] as [(Int, String, Reaction, ConnectionReaction)])
  func reasons(status: Int, reason: String, reaction: Reaction, connection: ConnectionReaction) {
    let meaning = Self.answer(status, #"{"reason":"\#(reason)"}"#)
    #expect(meaning.reaction == reaction)
    #expect(meaning.connection == connection)
    #expect(meaning.reason == reason)
    #expect(meaning.status == status)
  }

  @Test("each row of the table matches its own status and reason, and has an explanation")
  func everyRow() {
    #expect(Set(APNsReply.rows.map(\.reason)).count == APNsReply.rows.count)
    for row in APNsReply.rows {
      let meaning = Self.answer(row.status, #"{ "reason" : "\#(row.reason)" }"#)
      #expect(meaning.reaction == row.reaction && meaning.connection == row.connection && meaning.alarm == row.alarm)
      #expect(!row.words.isEmpty)
      if case .credential = row.reaction {
        #expect([.stopCredential, .stopTopic, .keepTokenAndWait].contains(row.connection) && row.alarm)
      }
      #expect(APNsReply.words(for: meaning) == row.words)
    }
  }

  @Test(
    "Apple's never-retry list is never retried",
    arguments: [
      (400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic"), (403, "Forbidden"), (410, "ExpiredToken"),
      (410, "Unregistered"),
      (413, "PayloadTooLarge"),
    ])
  func neverRetried(status: Int, reason: String) {
    if case .retry = Self.answer(status, #"{"reason":"\#(reason)"}"#).reaction { Issue.record("\(reason) is retried") }
  }

  @Test("a success needs no body, and its body isn't read")
  func success() {
    #expect(Self.answer(200, "") == .delivered(200))
    #expect(Self.answer(200, #"{"reason":"BadDeviceToken"}"#) == .delivered(200))
    #expect(Self.answer(201, "").reaction == .delivered)
  }

  @Test(
    "a 410 has the provider's time, as a number or as a string; an invalid time is ignored",
    arguments: [
      ("1732137600000", 1_732_137_600_000), (#""1732137600000""#, 1_732_137_600_000), ("1.7321376e12", 1_732_137_600_000),
      ("0", nil), ("-5", nil), ("true", nil), (#""soon""#, nil), ("9e99", nil), ("253402300800000", nil), ("null", nil),
    ] as [(String, Int64?)])
  func invalidSince(timestamp: String, expected: Int64?) {
    let meaning = Self.answer(410, #"{"reason":"Unregistered","timestamp":\#(timestamp)}"#)
    #expect(meaning.reaction == .gone(.notRegistered))
    #expect(meaning.invalidSince == expected)
  }

  @Test("a time in any other answer than a 410 is ignored")
  func timeElsewhere() {
    #expect(Self.answer(400, #"{"reason":"BadDeviceToken","timestamp":1732137600000}"#).invalidSince == nil)
  }

  static let unreadable: [String] = [
    "", "<html>502</html>", "{", "[]", "null", "{}", #"{"reason":7}"#, #"{"reason":{"a":[]}}"#, #"{"reason":"Novel"}"#,
    #"{"reason":"x","reason":"y"}"#, "\u{FEFF}{}",
    #"{"reason":"BadDeviceToken","pad":""# + String(repeating: "x", count: 16_384) + #""}"#,
    String(repeating: "[", count: 9000),
  ]

  @Test(
    "an unreadable, oversized or unknown answer is judged by its status",
    arguments: [
      (400, .drop(.invalidParameters)), (403, .drop(.invalidAPNsCredential)), (404, .drop(.internalServerError)),
      (408, .retry(.connection, .unavailable)), (410, .gone(.notRegistered)), (413, .drop(.messageTooBig)),
      (418, .drop(.invalidParameters)), (429, .retry(.perDevice, .deviceMessageRateExceeded)),
      (500, .retry(.outage, .unavailable)), (502, .retry(.outage, .unavailable)), (599, .retry(.outage, .unavailable)),
      (0, .drop(.internalServerError)), (100, .drop(.internalServerError)), (302, .drop(.internalServerError)),
      (-1, .drop(.internalServerError)), (Int.max, .drop(.internalServerError)), (Int.min, .drop(.internalServerError)),
    ] as [(Int, Reaction)])
  func byStatus(status: Int, reaction: Reaction) {
    for body in Self.unreadable {
      let meaning = Self.answer(status, body)
      #expect(meaning.reaction == reaction, "\(body.prefix(40))")
      #expect(meaning.connection != .stopCredential && meaning.connection != .stopTopic)
    }
    let invalidUTF8 = APNsReply.interpret(status: status, body: Array(#"{"reason":"BadDeviceToken"#.utf8) + [0xFF, 0x22, 0x7D])
    #expect(invalidUTF8.reaction == reaction)
  }

  @Test("an unknown reason is kept for people, without its control characters and not endlessly")
  func unknownReason() {
    #expect(Self.answer(400, #"{"reason":"Novel"}"#).reason == "Novel")
    #expect(Self.answer(502, "<html>").reason == "HTTP 502")
    #expect(Self.answer(400, #"{"reason":"a\u001b[31m\r\nb"}"#).reason == "a?[31m??b")
    #expect(Self.answer(400, #"{"reason":"\#(String(repeating: "x", count: 4000))"}"#).reason.count == 200)
  }

  @Test("a reason is valid only with its own class of status")
  func foreignClass() {
    #expect(Self.answer(500, #"{"reason":"BadDeviceToken"}"#).reaction == .retry(.outage, .unavailable))
    #expect(Self.answer(400, #"{"reason":"Shutdown"}"#).reaction == .drop(.invalidParameters))
  }

  @Test(
    "Retry-After in seconds or as a date is accepted, clamped to 1…3600 s; invalid values are ignored",
    arguments: [
      ("30", 30), (" 30 ", 30), ("0", 1), ("1000000000", 3600), ("99999999999999999999999999", 3600), ("-5", nil), ("", nil),
      ("3.5", nil), ("soon", nil), ("30s", nil), ("1e3", nil), ("\u{0}", nil),
      ("Fri, 20 Nov 2026 21:23:30 GMT", 90), ("Friday, 20-Nov-26 21:23:30 GMT", 90), ("Fri Nov 20 21:23:30 2026", 90),
      ("Fri Nov  6 21:23:30 2026", 1), ("Fri, 20 Nov 2026 21:21:00 GMT", 1), ("Sat, 20 Nov 2027 21:23:30 GMT", 3600),
      ("Fri, 20 Nov 2026 21:23:30 CET", nil), ("Fri, 20 Now 2026 21:23:30 GMT", nil), ("Fri, 20 Nov 2026 25:23:30 GMT", nil),
      ("Fri, 32 Nov 2026 21:23:30 GMT", nil), ("Fri, 20 Nov 2026 21:23 GMT", nil), ("Fri, 20 Nov 99999 21:23:30 GMT", nil),
    ] as [(String, Int?)])
  func retryAfter(field: String, seconds: Int?) {
    #expect(Self.answer(503, #"{"reason":"ServiceUnavailable"}"#, retryAfter: field).retryAfter == seconds)
  }

  @Test("without a clock a date in Retry-After is ignored")
  func noClock() {
    let date = Array("Fri, 20 Nov 2026 21:23:30 GMT".utf8)
    #expect(APNsReply.interpret(status: 503, body: [], retryAfter: date).retryAfter == nil)
    #expect(APNsReply.interpret(status: 503, body: [], retryAfter: Array("7".utf8)).retryAfter == 7)
  }

  @Test("no answer can trap, mark a token as dead against its status, or exceed the limits", arguments: 0..<200)
  func noise(seed: UInt64) {
    var random = SplitMix(state: seed)
    let template = Array(#"{"reason":"Unregistered","timestamp":1732137600000,"error":{"details":[{"@type":"x"}]}}"#.utf8)
    for _ in 0..<20 {
      var body = template
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        body[Int.random(in: body.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      let field = (0..<Int.random(in: 0...30, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let apns = APNsReply.interpret(status: 410, body: body, retryAfter: field, now: 0)
      let fcm = FCMReply.interpret(status: 404, body: body, retryAfter: field, now: .max)
      #expect(apns.reaction == .gone(.notRegistered), "\(body)")
      #expect(!fcm.reaction.isFeedback, "\(body)")
      for meaning in [apns, fcm] {
        #expect(meaning.reason.utf8.count <= 200 && meaning.reason.utf8.allSatisfy { 0x20...0x7E ~= $0 }, "\(body)")
        #expect(meaning.retryAfter.map(RetryAfter.range.contains) ?? true, "\(field)")
        #expect(meaning.invalidSince.map { 1...Timestamp.latest ~= $0 } ?? true, "\(body)")
      }
      #expect(FCMReply.messageName(body) == nil, "\(body)")
    }
  }
}

/// A small seeded generator, so that a failing case can be run again.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
