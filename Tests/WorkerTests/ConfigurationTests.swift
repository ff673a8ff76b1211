import Foundation
import Testing

@testable import Settings
@testable import Delivery

@Suite("The configuration")
struct ConfigurationTests {
  static let minimal = """
    {
      // comments and trailing commas are JSON5
      broker: "amqp://guest:guest@127.0.0.1:5672/",
      apps: { "com.example.app": { apns: { key: "AuthKey.p8", keyID: "ABC123DEFG", teamID: "DEF123GHIJ" } } },
    }
    """

  func load(_ text: String, _ environment: [String: String] = [:]) throws -> Configuration {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    try text.write(to: directory.appendingPathComponent("c.json5"), atomically: false, encoding: .utf8)
    try "from.a.file\n".write(to: directory.appendingPathComponent("secret"), atomically: false, encoding: .utf8)
    return try Configuration.load(path: directory.appendingPathComponent("c.json5").path, environment: environment)
  }

  @Test("has defaults for everything but the broker and the apps")
  func defaults() throws {
    let configuration = try load(Self.minimal)
    #expect(configuration.brokers.count == 1)
    #expect(configuration.prefix == "push")
    #expect(configuration.results == .none)
    #expect(configuration.retry.steps.map(\.name) == ["1s", "10s", "1m", "5m", "15m", "1h"])
    #expect(configuration.retry.steps.map(\.delay) == [1_000, 10_000, 60_000, 300_000, 900_000, 3_600_000])
    let apns = try #require(configuration.apps.first?.credentials.apns.first)
    #expect(apns.topic == "com.example.app")
    #expect("\(apns.endpoint)" == "api.push.apple.com:443")
  }

  @Test("reads limits, fan-out, breaker and the default priority from settings")
  func tuning() throws {
    let configuration = try load(
      """
      { broker: 'amqp://h/', limits: { notification: 4096, body: 100000 }, fanOut: { pageSize: 500 }, breaker: { percent: 20 },
        registry: 'sqlite:registry.db',
        apps: { a: { defaultPriority: 'high', apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }
      """)
    #expect(configuration.limits.notificationBytes == 4_096 && configuration.limits.dataBytes == 4_096)
    #expect(configuration.limits.json.bytes == 100_000)
    #expect(configuration.fanOut.pageSize == 500 && configuration.fanOut.prefetch == 4)
    #expect(configuration.breaker.percent == 20 && configuration.breaker.sample == 200)
    #expect(configuration.apps.first?.defaultPriority == .high)
    let registry = "\(try #require(configuration.registry))"
    #expect(registry.hasPrefix("sqlite:/") && registry.hasSuffix("/registry.db"))
  }

  @Test(
    "refuses a port alone as the metrics address, because the host decides who can read them",
    arguments: ["9464", ":9464", "127.0.0.1:x", "a b"])
  func metricsWithoutHost(text: String) throws {
    let error = try #require(throws: ConfigurationError.self) {
      try load(Self.minimal.replacing("apps:", with: "metrics: \"\(text)\", apps:"))
    }
    #expect(error.key == "metrics" && error.problem.contains("127.0.0.1:9464"))
  }

  @Test("reads producers, topics and the result queues, from the file and from the environment")
  func rights() throws {
    let text = Self.text("topics: ['com.example.b', 'com.example.b.voip'], \(Self.key)", "replyTo: [],")
    let closed = try load(text.replacing("apns:", with: "producers: ['billing', 'two words'], apns:"))
    #expect(closed.replyTo == [] && closed.apps[0].producers == ["billing", "two words"])
    #expect(closed.apps[0].credentials.apns[0].topics == ["com.example.b", "com.example.b.voip"])
    let open = try load(Self.text())
    #expect(open.replyTo == nil && open.apps[0].producers == nil && open.apps[0].credentials.apns[0].topics == [])
    let given = try load(
      Self.text(),
      [
        "PUSHFLEET_REPLYTO": "billing.replies, chat.replies", "PUSHFLEET_APPS_A_PRODUCERS": "billing chat",
        "PUSHFLEET_APPS_A_APNS_TOPICS": "com.example.b",
      ])
    #expect(given.replyTo == ["billing.replies", "chat.replies"] && given.apps[0].producers == ["billing", "chat"])
    #expect(given.apps[0].credentials.apns[0].topics == ["com.example.b"])
  }

  @Test(
    "lets requests choose an application's and its senders' APNs topics, in every push type's form"
  )
  func rightsOfTopics() throws {
    func topics(_ apps: String) throws -> Set<String>? {
      AppRights(try load("{ broker: 'amqp://h/', apps: { a: { \(apps) } } }").apps[0]).topics.map {
        Set($0.map { String(decoding: $0, as: UTF8.self) })
      }
    }
    let own = try #require(try topics("apns: { \(Self.key), topic: 'b', topics: ['c'] }"))
    #expect(own.isSuperset(of: ["b", "b.voip", "b.push-type.liveactivity", "c"]) && own.isDisjoint(with: ["a", "c.voip"]))
    let all = try #require(
      try topics("apns: { \(Self.key) }, senders: { s: { apns: { \(Self.key), topic: 'd', topics: 'e' } } }"))
    #expect(all.isSuperset(of: ["a", "a.complication", "d", "d.voip", "e"]))
    #expect(try topics("fcm: { serviceAccount: 'f' }") == nil)
  }

  @Test("names the credentials and senders that can be paused: a sender's own, and none that it takes over")
  func pausable() throws {
    let apps = """
      apns: { \(Self.key) }, webpush: { key: 'k', subject: 'mailto:a@b.c' }, senders: {
        s: { apns: { \(Self.key), topic: 'd' } }, t: { fcm: { serviceAccount: 'f' } } }
      """
    let pausable = try load("{ broker: 'amqp://h/', apps: { a: { \(apps) } } }").apps[0].pausable
    #expect(
      pausable.mapValues { $0.map(\.name).sorted() } == [
        "a/apns": ["a APNs production", "a.senders.t APNs production"],
        "a/senders/s": ["a.senders.s APNs production"], "a/senders/s/apns": ["a.senders.s APNs production"],
        "a/senders/t": ["a.senders.t FCM"], "a/senders/t/fcm": ["a.senders.t FCM"],
        "a/webpush": ["a web push", "a.senders.s web push", "a.senders.t web push"],
      ])
  }

  @Test("reads switches as booleans, and from the environment as words")
  func flags() throws {
    let plain = try load(Self.text())
    #expect(!plain.receipts && !plain.apps[0].isUPMC)
    let on = try load(Self.text(Self.key, "receipts: true,").replacing("apns:", with: "upmc: true, apns:"))
    #expect(on.receipts && on.apps[0].isUPMC)
    let given = try load(Self.text(), ["PUSHFLEET_RECEIPTS": "true", "PUSHFLEET_APPS_A_UPMC": "false"])
    #expect(given.receipts && !given.apps[0].isUPMC)
    let error = #expect(throws: ConfigurationError.self) { try load(Self.text(Self.key, "receipts: 'true',")) }
    #expect(error?.key == "receipts" && error?.problem == "must be true or false")
  }

  @Test("finds files relative to its own folder")
  func relativePaths() throws {
    guard case .token(let key, _, _)? = try load(Self.minimal).apps.first?.credentials.apns.first?.credential else {
      Issue.record("no token credential")
      return
    }
    #expect(key.path?.hasPrefix("/") == true && key.path?.hasSuffix("/AuthKey.p8") == true)
  }

  @Test("prefers the environment's values, and reads secrets from files")
  func environment() throws {
    let configuration = try load(
      Self.minimal,
      [
        "PUSHFLEET_BROKER": "amqp://a:b@one/,amqp://a:b@two/", "PUSHFLEET_RESULTS": "all", "PUSHFLEET_RETRY_ATTEMPTS": "3",
        "PUSHFLEET_APPS_COM_EXAMPLE_APP_APNS_TOPIC_FILE": "secret", "PUSHFLEET_PREFETCH": "7",
      ])
    #expect(configuration.brokers.map(\.host) == ["one", "two"])
    #expect(configuration.results == .all)
    #expect(configuration.retry.attempts == 3)
    #expect(configuration.prefetch == 7)
    #expect(configuration.apps.first?.credentials.apns.first?.topic == "from.a.file")
  }

  @Test(
    "names the key of each wrong value",
    arguments: [
      ("{ broker: 'amqp://h/', apps: {}, }", "apps"),
      ("{ apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }", "broker"),
      ("{ broker: 'http://h', apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }", "broker"),
      ("{ broker: 5, apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }", "broker"),
      (
        "{ broker: 'amqp://h/', aps: 1, apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }", "aps"
      ),
      (
        "{ broker: 'amqp://h/', results: 'some', apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }",
        "results"
      ),
      (
        "{ broker: 'amqp://h/', prefetch: 0, apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }",
        "prefetch"
      ),
      ("{ broker: 'amqp://h/', apps: { a: { apns: { keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }", "apps.a.apns.key"),
      ("{ broker: 'amqp://h/', apps: { a: { apns: { key: 'k', teamID: 'DEF123GHIJ' } } } }", "apps.a.apns.keyID"),
      (
        "{ broker: 'amqp://h/', apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ', verify: false } } } }",
        "apps.a.apns.verify"
      ),
      (
        "{ broker: 'amqp://h/', apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ', environment: 'test' } } } }",
        "apps.a.apns.environment"
      ),
      (
        "{ broker: 'amqp://h/', apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ', endpoint: 'http://h' } } } }",
        "apps.a.apns.endpoint"
      ),
      (
        "{ broker: 'amqp://h/', retry: { steps: ['10s', '1s'] }, apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }",
        "retry.steps"
      ),
      (
        "{ broker: 'amqp://h/', apps: { '../a': { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }",
        "apps.../a"
      ),
      ("{ broker: 'amqp://h/', apps: { a: { } } }", "apps.a.apns"),
      (
        "{ broker: 'amqp://h/', registry: 'mysql://x', apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }",
        "registry"
      ),
    ])
  func refusals(_ text: String, _ key: String) throws {
    let error = try #require(throws: ConfigurationError.self) { try load(text) }
    #expect(error.key == key)
  }

  @Test("accepts `ca` and `brokerCA` for the broker's authority", arguments: ["ca", "brokerCA"])
  func brokerAuthority(_ key: String) throws {
    let text =
      "{ broker: 'amqps://h/', \(key): 'ca.pem', apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } } }"
    #expect(try load(text).brokerCA?.path?.hasSuffix("/ca.pem") == true)
  }

  @Test("refuses other text than JSON5, and a missing file")
  func unreadable() {
    #expect(throws: ConfigurationError.self) { try load("{ broker: ") }
    #expect(throws: ConfigurationError.self) { try Configuration.load(path: "/nowhere/at/all", environment: [:]) }
    let bytes: [UInt8] = Array("{ bro".utf8) + [0xFF] + Array("ker: 1 }".utf8)
    #expect(throws: ConfigurationError.self) { try ConfigurationValue.parse(bytes, name: "c.json5") }
  }

  static let key = "key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ'"

  /// A whole configuration with one app's `apns` and further settings.
  static func text(_ apns: String = key, _ more: String = "") -> String {
    "{ broker: 'amqp://h/', \(more) apps: { a: { apns: { \(apns) } } } }"
  }

  static let explained: [(text: String, said: String)] = [
    (
      text("key: 'k', keyId: 'ABC123DEFG', teamID: 'DEF123GHIJ'"),
      "apps.a.apns.keyId is not a setting: did you mean keyID?; known here: broadcastEndpoint, ca, certificate"
    ),
    ("{ Broker: 'amqp://h/', apps: {} }", "Broker is not a setting: did you mean broker?"),
    ("{ broker: 'amqp://h/', apps: { a: { fcm: { serverKey: 'x' } } } }", "apps.a.fcm.serverKey is not a setting; known here:"),
    ("{ broker: 'amqp://h/', apps: { a: { apns: [{ colour: 1 }] } } }", "apps.a.apns[0].colour is not a setting"),
    (text("key: 'k', keyID: 'abc', teamID: 'DEF123GHIJ'"), "apps.a.apns.keyID must be the key's id: ten letters and digits"),
    (text("key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF-23GHIJ'"), "apps.a.apns.teamID must be the team's id"),
    (text(), ""),
    (
      "{ broker: 'amqp://h/', brokerFile: 'secret', apps: {} }", "broker and brokerFile give the same setting: keep one of them"
    ),
    ("{ broker: 'amqp://h/', ca: 'a', brokerCA: 'b', apps: {} }", "ca and brokerCA give the same setting"),
    (
      "{ broker: 'amqp://h/', prefetch: 100, prefetch: 200 }",
      "is not valid JSON5: line 1, column 39: the key \"prefetch\" is here"
    ),
    (text("key: 'k'", "retry: { steps: '10s 1s' },"), "retry.steps must grow: \"1s\" is no longer than the step before it"),
    ("[]", "must hold an object, not a list"),
    ("{ broker: 'amqp://h/', apps: { a: { producers: [], apns: { \(key) } } } }", "apps.a.producers is empty: name those"),
    ("{ broker: 'amqp://h/', apps: { a: { producers: [1], apns: { \(key) } } } }", "apps.a.producers[0] must be a string"),
    ("{ broker: 'amqp://h/', apps: { a: { producers: [''], apns: { \(key) } } } }", "apps.a.producers must be names"),
    (text("topics: ['a b'], \(key)"), "apps.a.apns.topics has \"a b\": a topic is a bundle ID"),
    (text("topics: 5, \(key)"), "apps.a.apns.topics must be a string"),
    (text("topic: '###', \(key)"), "apps.a.apns.topic is \"###\": a topic is a bundle ID"),
    (text("topic: '', \(key)"), "apps.a.apns.topic is \"\": a topic is a bundle ID"),
    (text(key, "replyTo: ['push.dead'],"), "replyTo has \"push.dead\", a queue of the fleet's own"),
    (text(key, "prefix: 'p', replyTo: ['x', 'p.hold.a'],"), "replyTo has \"p.hold.a\", a queue of the fleet's own"),
    (text(key, "replyTo: [''],"), "replyTo has \"\": a queue's name is"),
    (text(key, "replyTo: 5,"), "replyTo must be a string"),
    ("{ broker: 'amqp://h/', prefetch: '7', \(text().dropFirst(24))", "prefetch must be a whole number"),
    ("{ broker: 'amqp://h/', apps: { a: { unknownOutcomes: 'keep', apns: { \(key) } } } }", "apps.a.unknownOutcomes must be"),
    ("{ broker: 'amqp://h/', apps: { a: { unknownOutcomes: 'Drop', apns: { \(key) } } } }", "apps.a.unknownOutcomes must be"),
    ("{ broker: 'amqp://h/', apps: { a: { unknownOutcomes: true, apns: { \(key) } } } }", "apps.a.unknownOutcomes must be"),
    ("{ broker: 'amqp://h/', apps: { a: { unknownKeys: 'allow', apns: { \(key) } } } }", "apps.a.unknownKeys must be"),
    ("{ broker: 'amqp://h/', apps: { a: { upmc: 'true', apns: { \(key) } } } }", "apps.a.upmc must be true or false"),
    ("{ broker: 'amqp://h/', apps: { a: { upmc: 1, apns: { \(key) } } } }", "apps.a.upmc must be true or false"),
    (text(key, "receipts: 1,"), "receipts must be true or false"),
  ]

  @Test("explains errors", arguments: explained)
  func explanation(_ text: String, _ said: String) throws {
    guard !said.isEmpty else {
      _ = try load(text)
      return
    }
    let error = try #require(throws: ConfigurationError.self) { try load(text) }
    #expect("\(error)".contains(said), "\(error)")
  }

  @Test("asks for a file if none is given, and distinguishes a missing file from an unreadable one")
  func noFile() throws {
    let none = try #require(throws: ConfigurationError.self) { try Configuration.load(path: nil, environment: [:]) }
    #expect("\(none)".contains("broker is missing: name a configuration file with --config or PUSHFLEET_CONFIG"))
    let missing = try #require(throws: ConfigurationError.self) { try Configuration.load(path: "/no/such", environment: [:]) }
    #expect("\(missing)".contains("/no/such cannot be read (No such file or directory)"))
    let folder = try #require(throws: ConfigurationError.self) { try Configuration.load(path: "/tmp", environment: [:]) }
    #expect("\(folder)".contains("/tmp cannot be read (Is a directory)"))
  }

  @Test("warns about a password in plain text across the network, and about a key file with another key's name")
  func warnings() throws {
    let key = "key: 'AuthKey_ABC123DEFG.p8', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ'"
    #expect(try load(Self.text(key).replacing("amqp://h/", with: "amqp://u:p@127.0.0.1/")).warnings == [])
    #expect(try load(Self.text(key).replacing("amqp://h/", with: "amqps://u:p@h/")).warnings == [])
    let warnings = try load(
      Self.text(key.replacing("keyID: 'A", with: "keyID: 'B")).replacing("amqp://h/", with: "amqp://u:hunter2@h.example/")
    ).warnings
    #expect(
      warnings == [
        "broker: the password crosses the network to h.example in plain text; use amqps",
        "apps.a.apns.keyID is BBC123DEFG, but the file is named for the key ABC123DEFG",
      ])
  }
}
