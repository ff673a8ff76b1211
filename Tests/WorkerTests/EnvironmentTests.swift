import Foundation
import Testing

@testable import Settings

@Suite("The environment's settings")
struct EnvironmentTests {
  static let key = ["KEY": "AuthKey.p8", "KEYID": "ABC123DEFG", "TEAMID": "DEF123GHIJ"]

  /// Three variables of an APNs key.
  func apns(_ prefix: String) -> [String: String] {
    Dictionary(uniqueKeysWithValues: Self.key.map { ("PUSHFLEET_APPS_\(prefix)_\($0.key)", $0.value) })
  }

  func load(_ text: String?, _ environment: [String: String]) throws -> Configuration {
    guard let text else { return try Configuration.load(path: nil, environment: environment) }
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("environment-\(UUID().uuidString).json5")
    defer { try? FileManager.default.removeItem(at: file) }
    try text.write(to: file, atomically: false, encoding: .utf8)
    return try Configuration.load(path: file.path, environment: environment)
  }

  func refusal(_ text: String?, _ environment: [String: String]) throws -> String {
    "\(try #require(throws: ConfigurationError.self) { try load(text, environment) })"
  }

  static let app = "apps: { 'com.example.app': { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } }"

  @Test("add missing parts to the file: a platform, a sender, a second environment")
  func added() throws {
    let configuration = try load(
      "{ broker: 'amqp://h/', \(Self.app) }",
      [
        "PUSHFLEET_APPS_COM_EXAMPLE_APP_FCM_SERVICEACCOUNT": "account.json",
        "PUSHFLEET_APPS_COM_EXAMPLE_APP_SENDERS_1001_FCM_SERVICEACCOUNT": "other.json",
      ].merging(apns("COM_EXAMPLE_APP_APNS_1")) { $1 }
        .merging(["PUSHFLEET_APPS_COM_EXAMPLE_APP_APNS_1_ENVIRONMENT": "sandbox"]) { $1 })
    let app = try #require(configuration.apps.first)
    #expect(configuration.apps.count == 1 && app.credentials.fcm?.serviceAccount.path?.hasSuffix("/account.json") == true)
    #expect(app.senders["1001"]?.fcm?.serviceAccount.path?.hasSuffix("/other.json") == true)
    #expect(app.credentials.apns.map(\.environment) == [.production, .sandbox])
  }

  @Test("are enough without a file: a list or the variables' names define the applications")
  func everything() throws {
    let broker = ["PUSHFLEET_BROKER": "amqp://h/"]
    let derived = try load(nil, broker.merging(apns("COM_EXAMPLE_APP_APNS")) { $1 }.merging(apns("COM_OTHER_APNS")) { $1 })
    #expect(derived.apps.map(\.id) == ["com.example.app", "com.other"])
    let listed = try load(
      nil,
      broker.merging(["PUSHFLEET_APPS": "com.Example-App, com.other"]) { $1 }
        .merging(apns("COM_EXAMPLE_APP_APNS")) { $1 }.merging(apns("COM_OTHER_APNS")) { $1 })
    #expect(listed.apps.map(\.id) == ["com.Example-App", "com.other"])
    let whole = try load(nil, broker.merging(["PUSHFLEET_APPS": "{ \(Self.app.dropFirst(8).dropLast(2)) }"]) { $1 })
    #expect(whole.apps.map(\.id) == ["com.example.app"])
    let sender = try load(
      nil, broker.merging(["PUSHFLEET_APPS_COM_EXAMPLE_APP_SENDERS_1001_FCM_SERVICEACCOUNT": "a.json"]) { $1 })
    #expect(sender.apps.first?.id == "com.example.app" && sender.apps.first?.senders["1001"] != nil)
  }

  static let misspelt: [(variable: String, said: String)] = [
    ("PUSHFLEET_PREFECH", "PUSHFLEET_PREFECH belongs to no setting: did you mean PUSHFLEET_PREFETCH?"),
    ("PUSHFLEET_BROKERFILE", "PUSHFLEET_BROKERFILE belongs to no setting: did you mean PUSHFLEET_BROKER_FILE?"),
    (
      "PUSHFLEET_APPS_COM_EXAMPLE_AP_APNS_KEYID",
      "PUSHFLEET_APPS_COM_EXAMPLE_AP_APNS_KEYID belongs to no setting: did you mean PUSHFLEET_APPS_COM_EXAMPLE_APP_APNS_KEYID?"
    ),
    ("PUSHFLEET_PREFETCH_FILE", "PUSHFLEET_PREFETCH_FILE belongs to no setting"),
    ("PUSHFLEET_COLOUR", "PUSHFLEET_COLOUR belongs to no setting"),
  ]

  @Test("that are misspelt are refused with a suggestion", arguments: misspelt)
  func unknown(_ variable: String, _ said: String) throws {
    #expect(try refusal("{ broker: 'amqp://h/', \(Self.app) }", [variable: "3"]).hasPrefix("configuration: \(said)"))
  }

  @Test("don't include variables of the command line, of tools or of Kubernetes")
  func others() throws {
    let variables = [
      "PUSHFLEET_CONFIG", "PUSHFLEET_PROGRAM", "PUSHFLEET_TEST_X", "PUSHFLEET_PORT", "PUSHFLEET_SERVICE_HOST",
      "PUSHFLEET_SERVICE_PORT_AMQP", "PUSHFLEET_PORT_9464_TCP_ADDR", "PUSHFLEET_WORKER_PORT_9464_TCP", "OTHER_PREFECH",
    ]
    #expect(
      throws: Never.self,
      performing: {
        try load("{ broker: 'amqp://h/', \(Self.app) }", Dictionary(uniqueKeysWithValues: variables.map { ($0, "x") }))
      })
  }

  @Test("are named by an error together with the setting")
  func named() throws {
    let file = "{ broker: 'amqp://h/', \(Self.app) }"
    #expect(
      try refusal(file, ["PUSHFLEET_PREFETCH": "many"])
        == "configuration: prefetch (PUSHFLEET_PREFETCH) must be a whole number from 1 to 10000")
    #expect(
      try refusal(file, ["PUSHFLEET_RETRY": "{ steps: ['soon'] }"]).hasPrefix("configuration: retry.steps (PUSHFLEET_RETRY)"))
    #expect(try refusal(file, ["PUSHFLEET_RETRY": "{ step: 1 }"]).hasPrefix("configuration: retry.step is not a setting"))
    #expect(
      try refusal(file, ["PUSHFLEET_BROKER_FILE": "/no/such/file"])
        == "configuration: brokerFile (PUSHFLEET_BROKER_FILE) names a file that cannot be read: /no/such/file (No such file or directory)"
    )
    let both = ["PUSHFLEET_BROKER": "amqp://h/", "PUSHFLEET_BROKER_FILE": "b"]
    #expect(try refusal(file, both).contains("PUSHFLEET_BROKER_FILE and PUSHFLEET_BROKER give the same setting"))
  }

  @Test("replace the file's value in each form; a variable that fits two applications is refused")
  func precedence() throws {
    let file = "{ brokerFile: '/no/such/file', retry: { attempts: 2 }, \(Self.app) }"
    let configuration = try load(file, ["PUSHFLEET_BROKER": "amqp://one/ amqp://two/", "PUSHFLEET_RETRY_ATTEMPTS": "3"])
    #expect(configuration.brokers.map(\.host) == ["one", "two"] && configuration.retry.attempts == 3)
    let twins = "{ broker: 'amqp://h/', apps: { 'a.b': {}, 'a-b': {} } }"
    #expect(try refusal(twins, apns("A_B_APNS")).contains("could be apps.a-b.apns.key or apps.a.b.apns.key"))
    let list = "{ broker: 'amqp://h/', apps: { a: { apns: [{ keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' }] } } }"
    #expect(try refusal(list, ["PUSHFLEET_APPS_A_APNS_KEY": "k"]).contains("did you mean PUSHFLEET_APPS_A_APNS_0_KEY?"))
    #expect(try load(list, ["PUSHFLEET_APPS_A_APNS_0_KEY": "k"]).apps.first?.credentials.apns.count == 1)
  }
}
