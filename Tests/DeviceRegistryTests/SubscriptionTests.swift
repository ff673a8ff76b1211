import PushCore
import TestSupport
import Testing
import Wire

@testable import DeviceRegistry

/// Subscriptions to web push, of which the tests need only few.
enum Subscriptions {
  static let key = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
  static let otherKey = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
  static let auth = "BTBZMqHH6r4Tts7J_aSIgg"

  static func endpoint(_ name: String) -> String { "https://push.example/\(name)" }

  static func object(_ name: String, key: String = Subscriptions.key) -> String {
    #"{"endpoint":"\#(endpoint(name))","expirationTime":null,"keys":{"p256dh":"\#(key)","auth":"\#(auth)"}}"#
  }

  static func change(_ name: String, key: String = Subscriptions.key, _ fields: String = "") -> String {
    #"{"platform":"webpush","subscription":\#(object(name, key: key))\#(fields.isEmpty ? "" : ",")\#(fields)}"#
  }
}

extension TestRegistry {
  func subscriptions() throws -> [DeviceRecord] { try store.devices(app: nil, after: 0, limit: 9_999) }

  /// Applies a registration with an application's first VAPID key.
  @discardableResult
  func register(_ json: String, firstKey: UInt8, now: Int64 = 1_000) throws -> [UInt8] {
    let rules = SubscriptionRules(keyID: [UInt8](repeating: firstKey, count: 8)) { $0.host == "push.example" }
    let change = try RegistryChange.parse(Array(json.utf8), defaultApp: Self.app).get().following { _, _ in rules }.get()
    return try #require(try store.apply([change], now: now).first?.registration)
  }
}

@Suite("Web push subscriptions on both databases")
struct SubscriptionTests {
  @Test("A subscription is a device, known by its endpoint and by the registration", arguments: Backend.all)
  func oneDevice(_ backend: Backend) throws {
    let registry = try backend.open()
    let registration = try #require(
      try registry.change(Subscriptions.change("a", #""user":"u","topics":["news"]"#)).registration)
    let record = try #require(try registry.subscriptions().first)
    #expect(record.registration == registration && record.device.platform == .webpush && record.device.keyID == nil)
    let subscription = try #require(record.device.subscription)
    #expect(text(subscription.endpoint) == Subscriptions.endpoint("a"))
    #expect(text(Base64URL.encode(subscription.publicKey)) == Subscriptions.key)
    #expect(text(Base64URL.encode(subscription.auth)) == Subscriptions.auth)

    let endpoint = Subscriptions.endpoint("a")
    let target = "webpush:" + text(Base64URL.encode(Array(Subscriptions.object("a").utf8)))
    for name in [endpoint, target] {
      #expect(
        try registry.change(#"{"op":"subscribe","topic":"sport","tokens":["\#(name)","\#(endpoint)/b"]}"#)
          == .results([nil, .notFound]))
      #expect(try registry.store.device(.token(.webpush, Array(endpoint.utf8)), app: TestRegistry.app).count == 1)
    }
    let topic = Audience.topic(Array("sport".utf8))
    let page = try registry.store.page(of: topic, kind: .voip, app: TestRegistry.app, after: 0, upTo: .max, limit: 5)
    #expect(page.devices.count == 1 && Array(page.devices.token(0)) == record.device.token)
    #expect(try registry.user("u").count == 1)
    let group = try registry.change(
      #"{"op":"group_create","notification_key_name":"g","registration_ids":["\#(endpoint)"]}"#)
    guard case .notificationKey(_, failed: []) = group else { throw TestFailure("\(group)") }
    #expect(try registry.change(#"{"op":"unregister","token":"\#(endpoint)"}"#) == .done)
    #expect(try registry.resolve(registration)?.state == .gone)
  }

  @Test("Endpoints that begin alike are different devices", arguments: Backend.all)
  func prefixes(_ backend: Backend) throws {
    let registry = try backend.open()
    for name in ["a", "a/", "ab", "a?b"] { _ = try registry.change(Subscriptions.change(name)) }
    #expect(try registry.subscriptions().count == 4)
    _ = try registry.change(#"{"op":"unregister","token":"\#(Subscriptions.endpoint("a"))"}"#)
    #expect(try registry.subscriptions().map(\.state) == [.gone, .active, .active, .active])
  }

  @Test("The same endpoint with other keys is the same device, with its VAPID key", arguments: Backend.all)
  func otherKeys(_ backend: Backend) throws {
    let registry = try backend.open()
    let first = try registry.register(Subscriptions.change("a", #""user":"u""#), firstKey: 1)
    #expect(try registry.subscriptions().first?.device.keyID == [UInt8](repeating: 1, count: 8))
    // The application has another first key by now.
    let change = Subscriptions.change("a", key: Subscriptions.otherKey)
    #expect(try registry.register(change, firstKey: 2, now: 2_000) == first)
    let device = try #require(try registry.subscriptions().first)
    #expect(try registry.subscriptions().count == 1 && device.registeredAt == 2_000 && device.device.user == Array("u".utf8))
    #expect(device.device.keyID == [UInt8](repeating: 1, count: 8))
    #expect(device.device.subscription.map { text(Base64URL.encode($0.publicKey)) } == Subscriptions.otherKey)
    #expect(try registry.resolve(first)?.isCanonical == true)

    let named = Subscriptions.change("a", #""application_server_key":"\#(Subscriptions.otherKey)""#)
    #expect(try registry.register(named, firstKey: 2) == first)
    let id = try #require(WebPushSubscription.keyID(ofApplicationServerKey: Array(Subscriptions.otherKey.utf8)))
    #expect(try registry.subscriptions().map(\.device.keyID) == [id])
    // A key that wasn't known before becomes the first.
    _ = try registry.change(Subscriptions.change("b"))
    try registry.register(Subscriptions.change("b"), firstKey: 3)
    #expect(try registry.subscriptions().last?.device.keyID == [UInt8](repeating: 3, count: 8))
  }

  @Test(
    "A renewed subscription replaces the old one by its installation, also when the change is repeated", arguments: Backend.all)
  func renewed(_ backend: Backend) throws {
    let registry = try backend.open()
    let old = try registry.register(Subscriptions.change("a", #""installation":"i","topics":["news"]"#), firstKey: 1)
    let token = try #require(try registry.subscriptions().first?.device.token)
    let json = Subscriptions.change("b", #""installation":"i""#)
    let rules = SubscriptionRules(keyID: [UInt8](repeating: 2, count: 8)) { _ in true }
    let change = try RegistryChange.parse(Array(json.utf8), defaultApp: TestRegistry.app).get().following { _, _ in rules }
      .get()
    for change in [change, change.asRepeated] {
      guard case .moved(_, let replaced)? = try registry.store.apply([change], now: 2_000).first else {
        throw TestFailure("no token is replaced")
      }
      #expect(replaced.map(\.token) == [token])
      #expect(replaced.map(\.newToken) == (try registry.subscriptions().map(\.device.token)))
    }
    #expect(try registry.topic("news").count == 1)
    #expect(try registry.resolve(old)?.isCanonical == false)
    // The device is still found by its former endpoint, for acknowledgements.
    let reference = DeviceReference.token(.webpush, Array(Subscriptions.endpoint("a").utf8))
    let app = try #require(try registry.store.knownApp(TestRegistry.app))
    #expect(try registry.store.found([(reference, app)], withReplaced: true).count { $0 != nil } == 1)
    #expect(try registry.store.found([(reference, app)], withReplaced: false).count { $0 != nil } == 0)
    // The old endpoint comes back with the key that it had.
    try registry.register(Subscriptions.change("a"), firstKey: 2)
    #expect(try registry.subscriptions().last?.device.token == token)
  }

  @Test("Marks are for the endpoint, whatever keys the push had", arguments: Backend.all)
  func marks(_ backend: Backend) throws {
    let registry = try backend.open()
    for name in ["a", "b"] { try registry.register(Subscriptions.change(name), firstKey: 1) }
    let document = try JSONDocument(Array(Subscriptions.object("a", key: Subscriptions.otherKey).utf8))
    let token = try WebPushSubscription(document, document.root).token()
    let mark = DeviceMark(
      app: TestRegistry.app, platform: .webpush, token: token, verdict: .gone(since: 5_000), reason: Array("410".utf8))
    let outcomes = try registry.store.mark([mark, mark], now: 6_000)
    guard case .marked? = outcomes.first, case .unchanged? = outcomes.last else { throw TestFailure("\(outcomes)") }
    #expect(try registry.subscriptions().map(\.state) == [.gone, .active])
  }

  @Test("A badge is counted by endpoint", arguments: Backend.all)
  func badges(_ backend: Backend) throws {
    let registry = try backend.open()
    try registry.register(Subscriptions.change("a", #""installation":"i""#), firstKey: 1)
    let document = try JSONDocument(Array(Subscriptions.object("a").utf8))
    let token = try WebPushSubscription(document, document.root).token()
    let count = BadgeCount(
      app: TestRegistry.app, messageID: Array("m".utf8), rule: .up,
      devices: [.token(.webpush, token), .token(.webpush, Array(Subscriptions.endpoint("b").utf8))])
    guard case .badges(let badges)? = try registry.store.note([(.badges(count), 1)]).answers.first else {
      throw TestFailure("no badges")
    }
    #expect(badges == [1, nil])
  }

  @Test("The longest endpoint is stored, also as a replaced token", arguments: Backend.all)
  func longest(_ backend: Backend) throws {
    let registry = try backend.open()
    func name(_ letter: String, _ count: Int) -> String {
      // Random letters, because PostgreSQL compresses long values before it measures them.
      var generator = SeededGenerator(seed: UInt64(count) &+ UInt64(letter.utf8.first ?? 0))
      let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
      return letter + String((1..<count).map { _ in letters[Int.random(in: 0..<64, using: &generator)] })
    }
    let room = WebPushSubscription.longestEndpoint - Subscriptions.endpoint("").utf8.count
    for letter in ["a", "b"] {
      let answer = try registry.change(Subscriptions.change(name(letter, room), #""installation":"i""#))
      #expect(answer.registration != nil, "\(answer)")
    }
    let refused = try registry.change(Subscriptions.change(name("c", room + 1)))
    #expect(refused.failure?.reason == "subscription.endpoint: 2049 bytes, at most 2048 allowed")
  }

  @Test(
    "An invalid subscription is refused by the name of its field",
    arguments: [
      (#""subscription":"x""#, "subscription: expected an object, found a string"),
      (#""subscription":{}"#, "subscription.endpoint: missing"),
      (#""subscription":{"endpoint":"https://a/b"}"#, "subscription.keys: missing"),
      (#""subscription":{"endpoint":"https://a/b","keys":{}}"#, "subscription.keys.p256dh: missing"),
      (
        #""subscription":{"endpoint":"https://a/b","keys":{"p256dh":"AAAA","auth":"\#(Subscriptions.auth)"}}"#,
        "subscription.keys.p256dh: no point of P-256"
      ),
      (
        #""subscription":{"endpoint":"https://a/b","keys":{"p256dh":"\#(Subscriptions.key)","auth":"AAAA"}}"#,
        "subscription.keys.auth: expected 16 bytes"
      ),
      (
        #""subscription":{"endpoint":"http://a/b","keys":{"p256dh":"\#(Subscriptions.key)","auth":"\#(Subscriptions.auth)"}}"#,
        "subscription.endpoint: not an https address"
      ),
      (#""token":"https://a/b""#, "token: not for webpush, which has a subscription"),
      (#""user":"u""#, "subscription: missing"),
      (#""subscription":\#(Subscriptions.object("a")),"kind":"voip""#, "kind: voip only for apns"),
      (#""subscription":\#(Subscriptions.object("a")),"environment":"sandbox""#, "environment: only for apns"),
      (
        #""subscription":\#(Subscriptions.object("a")),"application_server_key":"BA""#,
        "application_server_key: expected a public key of P-256"
      ),
      (#""endpoint":"https://a/b""#, "endpoint: not a field of register"),
    ])
  func refusals(_ fields: String, _ reason: String) throws {
    let registry = try Backend.sqlite.open()
    let answer = try registry.change(#"{"platform":"webpush",\#(fields)}"#)
    #expect(answer.failure?.reason.hasPrefix(reason) == true, "\(answer)")
    #expect(answer.failure?.reason.contains("https://") != true)
  }

  @Test("A subscription is only for web push, and its host must be one of the application's")
  func foreign() throws {
    let registry = try Backend.sqlite.open()
    for (field, value) in [("subscription", Subscriptions.object("a")), ("application_server_key", #""0123456789abcdef""#)] {
      let answer = try registry.change(#"{"platform":"fcm","token":"t","\#(field)":\#(value)}"#)
      #expect(answer.failure?.reason == "\(field): only for webpush")
    }
    let rules = SubscriptionRules(keyID: WebPushSubscription.noKeyID) { $0.host == "other.example" }
    let change = try RegistryChange.parse(Array(Subscriptions.change("a").utf8), defaultApp: TestRegistry.app).get()
    let refusal = change.following { _, _ in rules }
    #expect(throws: ChangeRefusal.self) { try refusal.get() }
    #expect(try change.following { _, _ in nil }.get() == change)
  }
}
