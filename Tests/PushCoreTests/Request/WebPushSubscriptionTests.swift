import PushCore
import Testing
import Wire

/// The keys of RFC 8291 §5.
enum SubscriptionSupport {
  static let p256dh = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
  static let auth = "BTBZMqHH6r4Tts7J_aSIgg"

  static func subscription(_ endpoint: String = "https://push.example.net/p/1") throws -> WebPushSubscription {
    try WebPushSubscription(endpoint: Array(endpoint.utf8), p256dh: Array(p256dh.utf8), auth: Array(auth.utf8))
  }

  static func object(
    endpoint: String = "https://push.example.net/p/1", p256dh: String = p256dh, auth: String = auth
  ) -> String {
    #"{"endpoint":"\#(endpoint)","expirationTime":null,"keys":{"p256dh":"\#(p256dh)","auth":"\#(auth)"}}"#
  }
}

@Suite("Browsers' subscriptions")
struct WebPushSubscriptionTests {
  private func read(_ object: String) throws(Rejection) -> WebPushSubscription {
    guard let document = try? JSONDocument(Array(object.utf8)) else { throw Rejection(.invalidJSON, "") }
    return try WebPushSubscription(document, document.root)
  }

  private func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

  @Test("the object of a browser becomes a token that has all parts")
  func token() throws {
    let subscription = try read(SubscriptionSupport.object())
    #expect(text(subscription.endpoint) == "https://push.example.net/p/1")
    #expect(subscription.publicKey.count == 65 && subscription.publicKey[0] == 4 && subscription.auth.count == 16)
    let keyID: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    let token = subscription.token(keyID: keyID)
    #expect(token.count == 28 + 1 + 8 + 65 + 16)
    #expect(WebPushSubscription(token: token) == subscription)
    #expect(text(WebPushSubscription.endpoint(of: token[...])) == "https://push.example.net/p/1")
    #expect(Array(WebPushSubscription.keyID(of: token[...])) == keyID)
    #expect(text(WebPushSubscription.origin(of: token[...])) == "https://push.example.net")
    #expect(WebPushSubscription.name(of: token[...]) == WebPushSubscription.name(of: subscription.endpoint[...]))
    #expect(WebPushSubscription.name(of: token[...]).count == 16)
    #expect(Array(WebPushSubscription.keyID(of: subscription.token()[...])) == WebPushSubscription.noKeyID)
    #expect(
      text(subscription.json)
        == #"{"endpoint":"https://push.example.net/p/1","keys":{"p256dh":"\#(SubscriptionSupport.p256dh)","auth":"\#(SubscriptionSupport.auth)"}}"#
    )
  }

  @Test("parts of a slice and of other texts can be asked for")
  func slices() throws {
    let token = try SubscriptionSupport.subscription().token()
    let row = ([7, 7, 7] + token)[3...]
    #expect(text(WebPushSubscription.endpoint(of: row)) == "https://push.example.net/p/1")
    #expect(text(WebPushSubscription.origin(of: row)) == "https://push.example.net")
    #expect(WebPushSubscription(token: row) == WebPushSubscription(token: token))
    for other in [[], [0], Array("abc".utf8), [UInt8](repeating: 0x61, count: 200)] {
      #expect(WebPushSubscription(token: other) == nil && Array(WebPushSubscription.endpoint(of: other[...])) == other)
      _ = (WebPushSubscription.keyID(of: other[...]), WebPushSubscription.origin(of: other[...]))
    }
  }

  @Test("both alphabets of Base64 are accepted, with padding or without, and further members")
  func alphabets() throws {
    let padded = SubscriptionSupport.p256dh.replacing("-", with: "+").replacing("_", with: "/") + "="
    let one = try read(SubscriptionSupport.object(p256dh: padded, auth: SubscriptionSupport.auth + "=="))
    #expect(try one == read(SubscriptionSupport.object()))
    #expect(try read(SubscriptionSupport.object().replacing(#"null"#, with: #"17,"x":[1]"#)) == one)
  }

  static let endpoints = [
    "https://fcm.googleapis.com/fcm/send/d5:APA91b", "https://updates.push.services.mozilla.com/wpush/v2/gAAA",
    "https://web.push.apple.com/QGuQ", "https://wns2-par02p.notify.windows.com/w/?token=BQYAAAD%2f%3d",
    "https://ntfy.example.org:8443/upABC?up=1", "https://[2001:db8::1]/p", "https://[::1]:8443/p", "https://192.0.2.1/p",
    "https://localhost:1/x", "https://h_1.example/@x", "https://h/:80",
  ]

  @Test("any https address of a push service is an endpoint", arguments: endpoints)
  func endpoint(endpoint: String) throws {
    let subscription = try read(SubscriptionSupport.object(endpoint: endpoint))
    #expect(text(subscription.endpoint) == endpoint)
    let target = "webpush:" + text(Base64URL.encode(Array(SubscriptionSupport.object(endpoint: endpoint).utf8)))
    #expect(Target.classify(Array(target.utf8)) == .success(.webpush(token: subscription.token()[...])))
  }

  @Test(
    "an endpoint's host is in lower case, and has no port if that is the usual one; the rest stays as it is",
    arguments: [
      ("https://PUSH.Example.net/P/%2F1?A=b", "https://push.example.net/P/%2F1?A=b"), ("https://h:443/x", "https://h/x"),
      ("https://H:0443/", "https://h/"), ("https://H:8443/:443", "https://h:8443/:443"),
      ("https://[2001:DB8::1]/P", "https://[2001:db8::1]/P"),
    ])
  func sameHost(endpoint: String, expected: String) throws {
    let subscription = try read(SubscriptionSupport.object(endpoint: endpoint))
    #expect(text(subscription.endpoint) == expected)
    let target = "webpush:" + text(Base64URL.encode(Array(SubscriptionSupport.object(endpoint: endpoint).utf8)))
    let token = try SubscriptionSupport.subscription(expected).token()
    #expect(Target.classify(Array(target.utf8)) == .success(.webpush(token: token[...])))
  }

  static let wrong = [
    "http://h/p", "HTTPS://h/p", "//h/p", "h/p", "", "https://", "https:///p", "https://h", "https://h?x", "https://h#f/p",
    "https://h/p#f", "https://u@h/p", "https://u:p@h/p", "https://h:0/p", "https://h:65536/p", "https://h:/p", "https://h:+1/p",
    "https://h:8a/p", "https://[::1/p", "https://[]/p", "https://[g::]/p", "https://[::1]x/p", "https://h /p", "https://h/a b",
    "https://h/\\u0000", "https://h/\\n", "https://h/é", "https://é.example/p", "https://%68/p", "https://h\\\\x/p",
    "https://permanently-removed.invalid/fcm/send/x", "https://Permanently-Removed.Invalid/x",
    "https://permanently-removed.invalid:443/x", "ftp://h/p", "javascript:alert(1)", "file:///etc/passwd",
    "https://" + String(repeating: "a", count: 254) + "/p", "https://h/" + String(repeating: "a", count: 2039),
  ]

  @Test("anything else is refused, and not repeated in the reason", arguments: wrong)
  func refused(endpoint: String) throws {
    let object = SubscriptionSupport.object(endpoint: endpoint)
    let rejection = try #require(throws: Rejection.self) { try read(object) }
    #expect(rejection.code == .invalidRegistration && rejection.reason.hasPrefix("endpoint: "))
    #expect(endpoint.utf8.count < 12 || !rejection.reason.contains(endpoint))
    let target = "webpush:" + text(Base64URL.encode(Array(object.utf8)))
    guard case .failure(let refused) = Target.classify(Array(target.utf8)) else {
      Issue.record("accepted")
      return
    }
    #expect(refused == rejection)
  }

  @Test("an endpoint has up to 2,048 bytes")
  func longest() throws {
    let endpoint = "https://h/" + String(repeating: "a", count: 2038)
    #expect(try read(SubscriptionSupport.object(endpoint: endpoint)).endpoint.count == WebPushSubscription.longestEndpoint)
  }

  @Test("the public key is a point of the curve, the secret has 16 bytes")
  func keys() throws {
    let point = try #require(Base64URL.decode(Array(SubscriptionSupport.p256dh.utf8)))
    func base64(_ bytes: [UInt8]) -> String { text(Base64URL.encode(bytes)) }
    let offCurve = point.dropLast() + [point[64] ^ 1]
    let compressed = [2 + (point[64] & 1)] + point[1...32]
    for key in [
      base64(Array(offCurve)), base64(compressed), base64(Array(point.dropLast())), base64(point + [0]),
      base64([UInt8](repeating: 0, count: 65)), base64([4] + [UInt8](repeating: 0, count: 64)),
      base64([4] + [UInt8](repeating: 0xFF, count: 64)), base64([6] + point.dropFirst()), "", "!", "AA=A",
    ] {
      let rejection = try #require(throws: Rejection.self) { try read(SubscriptionSupport.object(p256dh: key)) }
      #expect(rejection.code == .invalidRegistration && rejection.reason.hasPrefix("keys.p256dh"))
    }
    for auth in ["", "AA", base64([UInt8](repeating: 1, count: 15)), base64([UInt8](repeating: 1, count: 17)), "====", "é"] {
      let rejection = try #require(throws: Rejection.self) { try read(SubscriptionSupport.object(auth: auth)) }
      #expect(rejection.code == .invalidRegistration && rejection.reason.hasPrefix("keys.auth"))
    }
  }

  @Test(
    "an object without its members, or with others in their places, is refused",
    arguments: [
      "[]", "7", "null", "{}", #"{"endpoint":7}"#, #"{"endpoint":"https://h/p"}"#, #"{"endpoint":"https://h/p","keys":[]}"#,
      #"{"endpoint":"https://h/p","keys":{}}"#,
      #"{"endpoint":"https://h/p","keys":{"p256dh":"\#(SubscriptionSupport.p256dh)"}}"#,
      #"{"endpoint":"https://h/p","keys":{"p256dh":[],"auth":"\#(SubscriptionSupport.auth)"}}"#,
      #"{"endpoint":null,"keys":{"p256dh":"\#(SubscriptionSupport.p256dh)","auth":"\#(SubscriptionSupport.auth)"}}"#,
    ])
  func incomplete(object: String) throws {
    #expect(try #require(throws: Rejection.self) { try read(object) }.code == .invalidRegistration)
  }

  @Test(
    "a webpush target is base64url of one JSON object",
    arguments: [
      "webpush:", "webpush:!", "webpush:e30", "webpush:e30=", "webpush:W10", "webpush:bnVsbA", "webpush:AAAA", "webpush:eyJh",
      "webpush:https://push.example.net/p",
    ])
  func targets(text: String) {
    guard case .failure(let rejection) = Target.classify(Array(text.utf8)) else {
      Issue.record("accepted")
      return
    }
    #expect(rejection.code == .invalidRegistration && rejection.reason.utf8.allSatisfy { 0x20...0x7E ~= $0 })
  }

  @Test("no bytes can trap", arguments: 0..<100)
  func noise(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<10 {
      var object = Array(SubscriptionSupport.object().utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        object[Int.random(in: object.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      guard case .success(.webpush(let token)) = Target.classify(Array("webpush:".utf8) + Base64URL.encode(object)) else {
        continue
      }
      let subscription = try #require(WebPushSubscription(token: Array(token)))
      #expect(subscription.token()[...] == token && !WebPushSubscription.origin(of: token).isEmpty)
    }
    let bytes = (0..<Int.random(in: 0...300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
    _ = (WebPushSubscription(token: bytes), WebPushSubscription.origin(of: bytes[...]), WebPushOrigin(bytes))
  }
}

@Suite("Origins of push services")
struct WebPushOriginTests {
  @Test(
    "an origin is read in any letter case, with any port",
    arguments: [
      ("https://push.example.net", "push.example.net", 443, "push.example.net"),
      ("https://Push.Example.NET:443", "push.example.net", 443, "push.example.net"),
      ("HTTPS://h:8443", "h", 8443, "h:8443"), ("https://h:65535", "h", 65_535, "h:65535"),
      ("https://[2001:DB8::1]", "2001:db8::1", 443, "[2001:db8::1]"), ("https://[::1]:1", "::1", 1, "[::1]:1"),
      ("https://[::ffff:192.0.2.1]", "::ffff:192.0.2.1", 443, "[::ffff:192.0.2.1]"),
    ] as [(String, String, UInt16, String)])
  func origins(text: String, host: String, port: UInt16, authority: String) throws {
    let origin = try #require(WebPushOrigin(text.utf8))
    #expect(origin.host == host && origin.port == port && origin.authority == authority)
    #expect(origin.text == "https://" + authority)
  }

  @Test(
    "other texts are no origin",
    arguments: [
      "", "https://", "http://h", "https://h/", "https://h?", "https://u@h", "https://h:", "https://h:0", "https://h:99999",
      "https://h:1:2", "https://[::1", "https://[::1]1", "https://[%31]", "https://h h", "https://é", "https://٣",
    ])
  func none(text: String) { #expect(WebPushOrigin(text.utf8) == nil) }
}
