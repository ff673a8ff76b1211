import Foundation
import HTTP2
import PushCore
import Reactor
import TLS
import TestSupport
import Testing
import Wire

@testable import Simulator

@Suite struct WebPushServiceTests {
  private static let paths = ["/fcm/send/a", "/wp/a", "/wpush/v1/a", "/wpush/v2/a", "/apple/a", "/w/?token=a", "/up/a"]

  @Test("Each vendor takes a push, and the journal has its plaintext and its claims", arguments: paths)
  func sends(_ path: String) throws {
    let talk = try WebPushTalk()
    try talk.push(0, path, #"{"title":"hi"}"#, ["urgency": "high", "topic": "SUWnD6f5wT_hkxozcqxXmBQNQuunTQ3Y"])
    #expect(talk.answers[0]?.status == (path.hasPrefix("/up/") ? 200 : 201))
    let entry = try #require(talk.service.journal.entries.first)
    #expect(entry.tokenText == "a" && entry.violations.isEmpty && entry.isJSON)
    #expect(entry.payload == Array(#"{"title":"hi"}"#.utf8) && entry.header("authorization") == nil)
    let bytes = entry.json.line
    let line = try #require(JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    let headers = try #require(line["headers"] as? [String: Any])
    let claims = try #require(headers["authorization"] as? [String: Any])
    #expect(headers["ttl"] as? String == "60" && headers["urgency"] as? String == "high")
    #expect(claims["aud"] as? String == WebPushTalk.origin && claims["sub"] as? String == "mailto:push@example.com")
    #expect(
      (claims["k"] as? String)?.utf8.count == 87 && claims["exp"] is Int
        && !String(decoding: bytes, as: UTF8.self).contains("eyJ0eXAi"))
  }

  @Test("An accepted push is named in the vendor's way")
  func names() throws {
    let talk = try WebPushTalk()
    try talk.push(0, "/wpush/v2/a", "hi", ["ttl": "9999999"])
    try talk.push(1, "/fcm/send/a")
    try talk.push(2, "/apple/a")
    try talk.push(3, "/w/?token=a")
    try talk.push(4, "/up/a?up=1")
    #expect(talk.header("location")?.hasPrefix("https://push.test/m/") == true && talk.header("ttl") == "2592000")
    #expect(talk.header("location", 1)?.hasPrefix("https://push.test/0:") == true)
    #expect(talk.header("apns-id", 2).map { UUIDText.isCanonical(Array($0.utf8)) } == true)
    #expect(talk.header("x-wns-status", 3) == "received")
    #expect(talk.body(4).contains(#""topic":"a""#))
    #expect(talk.service.journal.entries[0].payload == Array("hi".utf8) && !talk.service.journal.entries[0].isJSON)
  }

  @Test("A push without a body has no content encoding")
  func empty() throws {
    let talk = try WebPushTalk()
    try talk.push(0, "/apple/a", body: [], ["content-encoding": nil])
    #expect(talk.outcome() == "201")
    try talk.push(1, "/apple/a", body: [])
    #expect(talk.outcome(1) == "400 BadWebPushRequest")
  }

  @Test("Wrong headers are refused in the vendor's words", arguments: badHeaders)
  func headers(_ path: String, _ headers: [String: String?], _ expected: String) throws {
    let talk = try WebPushTalk()
    try talk.push(0, path, "hi", headers)
    #expect(talk.outcome() == expected)
    #expect(talk.service.journal.entries[0].violations.count == 1)
  }

  @Test("Topics and lives that Apple takes", arguments: ["", "a", "ab", "abcdefghijkl", "SUWnD6f5wT_hkxozcqxXmBQNQuunTQ3Y"])
  func appleTopics(_ topic: String) throws {
    let talk = try WebPushTalk()
    try talk.push(0, "/apple/a", "hi", ["topic": topic.isEmpty ? nil : topic, "ttl": "0"])
    #expect(talk.outcome() == (topic == "a" ? "400 BadWebPushTopic" : "201"))
  }

  @Test("WNS takes a TTL of 0 only with its cache policy")
  func windowsTTL() throws {
    let talk = try WebPushTalk()
    try talk.push(0, "/w/?token=a", "hi", ["ttl": "0"])
    #expect(talk.answers[0]?.status == 400 && talk.header("x-wns-status") == "dropped")
    #expect(talk.header("x-wns-error-description")?.contains("X-WNS-Cache-Policy") == true)
    try talk.push(1, "/w/?token=a", "hi", ["ttl": "0", "x-wns-cache-policy": "no-cache"])
    try talk.push(2, "/w/?token=a", "hi", ["x-wns-cache-policy": "cache"])
    #expect([talk.answers[1]?.status, talk.answers[2]?.status] == [201, 201])
  }

  @Test(
    "A body of 4,096 bytes passes, one more doesn't",
    arguments: zip(
      paths,
      [
        "413 Content Too Large", "413 Content Too Large", "413 104", "413 104", "413 PayloadTooLarge",
        "413 The payload exceeds the size limit", "413 41301",
      ]))
  func sizes(_ path: String, _ refusal: String) throws {
    let talk = try WebPushTalk()
    let longest = try WebPushTalk.encrypted(String(repeating: "a", count: MessageEncryption.longestPlaintext), for: path)
    #expect(longest.count == 4096)
    try talk.push(0, path, body: longest)
    #expect(talk.service.journal.entries[0].payload.count == MessageEncryption.longestPlaintext)
    try talk.push(1, path, body: longest + [0])
    #expect(talk.outcome(1) == refusal)
  }

  @Test(
    "A body for another browser is refused",
    arguments: zip(
      paths,
      [
        "400 InvalidEncryption", "400 InvalidEncryption", "400 110", "400 110", "400 BadWebPushRequest",
        "400 The content encoding is invalid", "400 40001",
      ]))
  func undecryptable(_ path: String, _ refusal: String) throws {
    let talk = try WebPushTalk()
    try talk.push(0, path, body: WebPushTalk.encrypted("hi", for: path + "b"))
    #expect(talk.outcome() == refusal)
    let entry = talk.service.journal.entries[0]
    #expect(entry.payload.isEmpty && entry.violations == ["the body can't be decrypted with the subscription's keys"])
  }

  @Test("Only a valid token counts", arguments: badTokens)
  func tokens(_ token: WebPushTalk.Token, _ violation: String) throws {
    let talk = try WebPushTalk()
    let header = try talk.authorization(token)
    for (tag, path) in ["/fcm/send/a", "/wpush/v2/a", "/apple/a", "/w/?token=a", "/up/a"].enumerated() {
      try talk.push(tag, path, "hi", ["authorization": header])
    }
    #expect(talk.service.journal.entries.map(\.status) == [403, 401, 403, 401, 401])
    #expect(talk.service.journal.entries[1].reason == "109" && talk.service.journal.entries[2].reason == "BadJwtToken")
    #expect(talk.service.journal.entries.allSatisfy { $0.violations == ["the VAPID token: \(violation)"] })
  }

  @Test("What is no VAPID header is refused; some subscriptions need none")
  func noToken() throws {
    let talk = try WebPushTalk()
    for (tag, path) in Self.paths.enumerated() { try talk.push(tag, path, "hi", ["authorization": nil]) }
    #expect(talk.service.journal.entries.map(\.status) == [400, 400, 201, 401, 403, 401, 200])
    #expect(talk.body(0).contains("<TITLE>UnauthorizedRegistration</TITLE>"))
    let token = try talk.authorization()
    for header in ["Bearer abc", "vapid", "vapid t=abc", "WebPush " + token.dropFirst(8), token + "="] {
      try talk.push(100, "/apple/a", "hi", ["authorization": header])
      #expect(talk.answers[100]?.status == 403, "\(header)")
    }
    try talk.push(101, "/apple/a", "hi", ["authorization": "VAPID " + token.dropFirst(6)])
    #expect(talk.outcome(101) == "201")
  }

  @Test(
    "Subjects that Apple refuses, and others don't",
    arguments: [
      nil, "", "push@example.com", "mailto:", "mailto: ", "mailto:<a@example.com>", "mailto:a@localhost", "https://localhost",
      "https://",
      "http://example.com",
    ])
  func subjects(_ subject: String?) throws {
    let talk = try WebPushTalk()
    let header = try talk.authorization(WebPushTalk.Token(subject: subject))
    try talk.push(0, "/apple/a", "hi", ["authorization": header])
    #expect(talk.outcome() == "403 BadJwtToken")
    try talk.push(1, "/wpush/v2/a", "hi", ["authorization": header])
    #expect(talk.outcome(1) == "201")
    try talk.push(
      2, "/apple/a", "hi", ["authorization": talk.authorization(WebPushTalk.Token(subject: "https://example.com/push"))])
    #expect(talk.outcome(2) == "201")
  }

  @Test("The first push binds a subscription to its key")
  func binding() throws {
    let talk = try WebPushTalk()
    let other = try talk.authorization(key: KeyPair())
    let refusals = [
      "/fcm/send/a": "403", "/wpush/v2/a": "401 109", "/apple/a": "403 VapidPkHashMismatch", "/w/?token=a": "403",
      "/up/a": "403 40301",
    ]
    for path in Self.paths {
      try talk.push(0, path)
      try talk.push(1, path, "hi", ["authorization": other])
      // Version 1 of Mozilla's endpoints has no key.
      if path == "/wpush/v1/a" { #expect(talk.outcome(1) == "201") }
      if let refusal = refusals[path] { #expect(talk.outcome(1).hasPrefix(refusal)) }
      try talk.push(2, path)
      #expect([200, 201].contains(talk.answers[2]?.status))
    }
    #expect(talk.service.journal.entries.allSatisfy { $0.violations.isEmpty })
  }

  @Test("With a given key, only that one is taken")
  func givenKey() throws {
    var configuration = WebPushConfiguration()
    let key = try KeyPair()
    configuration.applicationServerKey = key.publicPoint
    let talk = try WebPushTalk(configuration, key: key)
    try talk.push(0, "/wpush/v2/a", "hi", ["authorization": talk.authorization(key: KeyPair())])
    #expect(talk.outcome() == "401 109")
    try talk.push(1, "/wpush/v2/a")
    #expect(talk.outcome(1) == "201")
  }

  @Test("Tokens of Apple's that are renewed within an hour are noted")
  func renewals() throws {
    let talk = try WebPushTalk()
    for (tag, life) in [43_200, 43_200, 43_201].enumerated() {
      try talk.push(tag, "/apple/a", "hi", ["authorization": talk.authorization(WebPushTalk.Token(life: Int64(life)))])
    }
    #expect(talk.service.journal.entries.map(\.status) == [201, 201, 201])
    #expect(talk.service.journal.entries.map(\.violations) == [[], [], ["the key has had another token within 60 minutes"]])
  }

  @Test(
    "A subscription that can't be one is gone in the vendor's words",
    arguments: [
      ("/fcm/send/", "410 NotRegistered"), ("/wpush/v2/a%20b/c", "404 102"), ("/apple/", "410 ExpiredToken"),
      ("/w/?token=", "410 The channel has expired"), ("/up/", "404 40401"), ("/", "404 Not Found"),
      ("/push/a", "404 Not Found"),
    ])
  func unknown(_ path: String, _ expected: String) throws {
    let talk = try WebPushTalk()
    try talk.push(0, path)
    #expect(talk.outcome() == expected)
    #expect(talk.service.journal.entries[0].violations.isEmpty)
  }

  @Test(
    "Scripts name a subscription by its id",
    arguments: [
      ("/wpush/v2/a", #"{"status": 410}"#, "410 106", #""errno":106"#),
      ("/wpush/v2/a", #"{"status": 503, "reason": "202", "retry_after": 9}"#, "503 202", "Immediate retry ok"),
      ("/fcm/send/a", #"{"status": 404}"#, "404 NotRegistered", "<TITLE>NotRegistered</TITLE>"),
      ("/fcm/send/a", #"{"status": 403}"#, "403 the VAPID", "do not correspond"),
      (
        "/apple/a", #"{"status": 400, "reason": "VapidPkHashMismatch"}"#, "400 VapidPkHashMismatch",
        #"{"reason":"VapidPkHashMismatch"}"#
      ),
      ("/w/?token=a", #"{"status": 406}"#, "406 The channel is throttled", ""),
      ("/up/a", #"{"status": 507}"#, "507 50701", #""code":50701"#),
      ("/up/a", #"{"status": 201}"#, "201", #""event":"message""#),
      ("/up/a", #"{"status": 302, "body": "elsewhere"}"#, "302 30201", "elsewhere"),
    ])
  func scripts(_ path: String, _ step: String, _ expected: String, _ body: String) throws {
    var configuration = WebPushConfiguration()
    configuration.script = try Script(parsing: Array(#"{"a": [\#(step)]}"#.utf8))
    let talk = try WebPushTalk(configuration)
    try talk.push(0, path)
    #expect(
      talk.outcome().hasPrefix(expected) && (body.isEmpty || talk.body().contains(body)), "\(talk.outcome()): \(talk.body())")
    if step.contains("retry_after") { #expect(talk.header("retry-after") == "9") }
    try talk.push(1, path)
    #expect([200, 201].contains(talk.answers[1]?.status))
  }

  @Test("Faults are HTTP/2's")
  func faults() throws {
    var configuration = WebPushConfiguration()
    configuration.script = try Script(
      parsing: Array(#"{"a": {"refuse": true}, "b": {"stall": true}, "c": {"goaway": "bye"}}"#.utf8))
    let talk = try WebPushTalk(configuration)
    for (tag, id) in ["a", "b", "c"].enumerated() { try talk.push(tag, "/wpush/v2/\(id)") }
    #expect(talk.failures[0] != nil && talk.answers[1] == nil && talk.answers[2]?.status == 201 && talk.goAways.count == 1)
    #expect(talk.service.journal.entries.map(\.fault) == ["refuse", "stall", "goaway"])
  }

  @Test("Subscriptions are the same in every simulator, and registrations of the registry's form")
  func subscriptions() throws {
    let all = try (1...10).map { try SimulatedSubscription(number: $0, origin: "https://localhost:8445") }
    #expect(String(decoding: all[3].endpoint, as: UTF8.self) == "https://localhost:8445/w/?token=subscription-4")
    #expect(Set(all.map(\.endpoint)).count == 10 && Set(all.map(\.auth)).count == 10)
    #expect(try SimulatedSubscription(number: 7, origin: "https://other").publicKey == all[6].publicKey)
    for subscription in all {
      let document = try JSONDocument(subscription.json)
      #expect(try WebPushSubscription(document, document.root).endpoint == subscription.endpoint)
    }
    let line = try #require(
      JSONSerialization.jsonObject(with: Data(all[1].registration(number: 2, app: "com.example.app"))) as? [String: Any])
    #expect(line["app"] as? String == "com.example.app" && line["platform"] as? String == "webpush")
    #expect(line["installation"] as? String == "browser-2" && (line["subscription"] as? [String: Any])?["keys"] != nil)
    let bare = String(decoding: all[1].registration(number: 2, app: nil), as: UTF8.self)
    #expect(bare.hasPrefix(#"{"platform":"webpush""#))
  }
}

private let badHeaders: [(String, [String: String?], String)] = [
  ("/wpush/v2/a", ["ttl": nil], "400 111"), ("/wpush/v2/a", ["ttl": "-1"], "400 112"), ("/wpush/v2/a", ["ttl": ""], "400 112"),
  ("/wpush/v2/a", ["topic": "a b"], "400 113"), ("/wpush/v2/a", ["topic": String(repeating: "a", count: 33)], "400 113"),
  ("/wpush/v2/a", ["content-encoding": "aesgcm"], "400 110"), ("/wpush/v2/a", ["content-encoding": nil], "400 110"),
  ("/wpush/v2/a", ["urgency": "urgent"], "400 999"), ("/apple/a", ["ttl": nil], "400 BadTtl"),
  ("/apple/a", ["ttl": "2592001"], "400 BadTtl"), ("/apple/a", ["ttl": "1.5"], "400 BadTtl"),
  ("/apple/a", ["urgency": "very-high"], "400 BadUrgency"), ("/apple/a", ["topic": "abcde"], "400 BadWebPushTopic"),
  ("/apple/a", ["content-encoding": "gzip"], "400 BadWebPushRequest"), ("/fcm/send/a", ["ttl": nil], "400 InvalidTtl"),
  ("/w/?token=a", ["ttl": nil], "400 The TTL header is missing"), ("/up/a", ["ttl": "soon"], "400 40001"),
]

private let badTokens: [(WebPushTalk.Token, String)] = [
  (WebPushTalk.Token(audience: nil), "aud is not the service's origin"),
  (WebPushTalk.Token(audience: "https://push.test/"), "aud is not the service's origin"),
  (WebPushTalk.Token(audience: "https://other.test"), "aud is not the service's origin"),
  (WebPushTalk.Token(life: nil), "exp is missing"), (WebPushTalk.Token(life: 0), "it has expired"),
  (WebPushTalk.Token(life: 24 * 3600 + 1), "exp is more than 24 hours ahead"),
  (WebPushTalk.Token(algorithm: "HS256"), "alg is not ES256"),
  (WebPushTalk.Token(isForged: true), "the signature is not the key's"),
]
