import Foundation
import Reactor
import Settings
import TestSupport
import Testing

@testable import Worker

@Suite("Secrets given inline")
final class InlineSecretTests {
  let files: TestCertificates
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("inline-\(UUID().uuidString)")

  init() throws {
    files = try TestCertificates.make()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(at: folder) }

  func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

  func account(_ change: (inout [String: String]) -> Void = { _ in }) throws -> String {
    var fields = [
      "type": "service_account", "project_id": "example-project", "private_key": try text(files.rsaKey),
      "client_email": "sender@example-project.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token",
    ]
    change(&fields)
    return String(decoding: try JSONSerialization.data(withJSONObject: fields), as: UTF8.self)
  }

  /// Loads a configuration and every credential of it.
  @discardableResult
  func load(_ settings: [String: Any], _ environment: [String: String] = [:]) throws -> PoolSet {
    let file = folder.appendingPathComponent("c.json5")
    try JSONSerialization.data(withJSONObject: settings).write(to: file)
    let configuration = try Configuration.load(path: file.path, environment: environment)
    return PoolSet(try ShardSetup(configuration), host: try EventLoop())
  }

  func settings(_ app: [String: Any], _ more: [String: Any] = [:]) -> [String: Any] {
    ["broker": "amqps://guest:guest@127.0.0.1/", "apps": ["com.example.app": app]].merging(more) { $1 }
  }

  static let ids = ["keyID": "ABC123DEFG", "teamID": "DEF123GHIJ"]

  @Test("work like files: keys, certificates, service accounts and authorities, in the file and from the environment")
  func used() throws {
    let ca = try text(files.authority)
    let token = Self.ids.merging(["key": try text(files.p8), "ca": ca]) { $1 }
    let fcm = ["serviceAccount": try account(), "ca": ca]
    #expect(try load(settings(["apns": token, "fcm": fcm], ["ca": ca])).accounts.count == 2)
    let apart = [
      "certificate": try text(files.client), "key": try text(files.clientEncryptedKey), "passphrase": files.passphrase,
      "ca": ca,
    ]
    #expect(try load(settings(["apns": apart])).accounts.count == 1)
    #expect(try load(settings(["apns": ["certificate": try text(files.clientCombined), "ca": ca]])).accounts.count == 1)

    let app = "PUSHFLEET_APPS_COM_EXAMPLE_APP_"
    let names = settings(["apns": Self.ids.merging(["key": "none.p8"]) { $1 }, "fcm": ["serviceAccount": "none.json"]])
    let key = try text(files.p8)
    for form in [key, key.replacing("\n", with: "\\n")] {
      let variables = [
        app + "APNS_KEY": form, app + "APNS_CA": ca, app + "FCM_SERVICEACCOUNT": try account(), app + "FCM_CA": ca,
        "PUSHFLEET_CA": ca,
      ]
      #expect(try load(names, variables).accounts.count == 2)
    }
    try account().write(to: folder.appendingPathComponent("account.json"), atomically: false, encoding: .utf8)
    let named = [
      app + "APNS_KEY_FILE": files.p8, app + "APNS_CA_FILE": files.authority, app + "FCM_SERVICEACCOUNT_FILE": "account.json",
      app + "FCM_CA_FILE": files.authority, "PUSHFLEET_CA_FILE": files.authority,
    ]
    #expect(try load(names, named).accounts.count == 2)
    let keyed = Self.ids.merging(["keyFile": files.p8, "caFile": files.authority]) { $1 }
    #expect(try load(settings(["apns": keyed])).accounts.count == 1)
  }

  /// Places where somebody may paste a secret, by a path of keys.
  static let places = [
    "broker", "brokerFile", "ca", "caFile", "brokerCA", "registry", "registryFile", "results", "prefix", "prefetch", "metrics",
    "log", "retry", "apps", "retry.steps", "apps.com-example-app.defaultPriority", "apps.com-example-app.apns",
    "apps.com-example-app.fcm", "apps.com-example-app.senders",
    "apps.com-example-app.apns.key", "apps.com-example-app.apns.keyFile", "apps.com-example-app.apns.certificate",
    "apps.com-example-app.apns.certificateFile", "apps.com-example-app.apns.environment", "apps.com-example-app.apns.endpoint",
    "apps.com-example-app.apns.ca", "apps.com-example-app.apns.timeout", "apps.com-example-app.apns.passphraseFile",
    "apps.com-example-app.apns.topicFile", "apps.com-example-app.fcm.serviceAccount",
    "apps.com-example-app.fcm.serviceAccountFile",
    "apps.com-example-app.fcm.endpoint", "apps.com-example-app.fcm.ca", "apps.com-example-app.fcm.messagesPerMinute",
  ]

  @Test("are hidden when a piece of one is where a name belongs; names are shown")
  func pieces() {
    for piece in [
      "+C7joFbCRzrh2s3K6mava3ri0A745nm/+w/TQQbXzbpi94Wq07SWZQPA", "+C7joFbCRzrh2s3K6mava3r", "TQQbXzbpi94Wq07SWZQPA",
      "MIGHAgEAMBMGByqGSM49", "hunter2 hunter2", "user:hunter2", "aGVsbG8=",
    ] {
      #expect(SafeText.key(piece) == "(not shown)")
    }
    for name in [
      "com.example.app", "com-example-app", "123456789012", "steps[3]", "messagesPerMinute", "--passphrase", "../a", "a b",
    ] {
      #expect(SafeText.key(name) == name)
    }
  }

  @Test("are never repeated in an error, wherever they are and however broken", arguments: places)
  func neverRepeated(_ place: String) throws {
    let p8 = try text(files.p8)
    let body = p8.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
    let rsa = try text(files.rsaKey)
    let archive = try Data(contentsOf: URL(fileURLWithPath: files.clientP12)).base64EncodedString()
    let secrets: [(given: String, hidden: [String])] = [
      (p8, [body]), (p8.replacing("\n", with: "\\n"), [body]), (p8.replacing("\n", with: ""), [body]), (body, [body]),
      (try text(files.p384Key), [try text(files.p384Key)]), (String(p8.dropLast(60)), [body]), (archive, [archive]),
      (try account { $0["client_email"] = nil }, [rsa]), (try account { $0["type"] = "authorized_user" }, [rsa]),
      (String(try account().dropLast(3)), [rsa]), (try account { $0["private_key"] = "hunter2hunter2" }, ["hunter2hunter2"]),
      ("amqp://user:hunter2hunter2@host/a/b", ["hunter2hunter2"]), ("postgresql://u:hunter2hunter2@h:x/", ["hunter2hunter2"]),
    ]
    for (given, hidden) in secrets {
      var attempts: [() throws -> Void] = []
      attempts.append { try self.load(self.with(given, at: place.split(separator: ".").map(String.init))) }
      let variable = "PUSHFLEET_" + place.uppercased().replacing(/[^A-Z0-9]/, with: "_").replacing(/FILE$/, with: "_FILE")
      attempts.append { try self.load(self.with(nil, at: []), [variable: given]) }
      for attempt in attempts {
        do { try attempt() } catch {
          let said = "\(error)"
          #expect(error is ConfigurationError, "\(error)")
          for secret in hidden { #expect(Self.leak(of: secret, in: said) == nil, "\(place): \(said)") }
        }
      }
    }
  }

  /// A complete configuration with one value in the place of another.
  private func with(_ value: String?, at path: [String]) throws -> [String: Any] {
    let apns: [String: Any] = Self.ids.merging(["key": files.p8, "ca": files.authority]) { $1 }
    try account().write(to: folder.appendingPathComponent("account.json"), atomically: false, encoding: .utf8)
    let fcm = ["serviceAccount": "account.json", "ca": files.authority]
    let whole: [String: Any] = [
      "broker": "amqps://guest:guest@127.0.0.1/", "ca": files.authority,
      "apps": ["com-example-app": ["apns": apns, "fcm": fcm]],
    ]
    func replaced(_ object: [String: Any], _ path: ArraySlice<String>) -> [String: Any] {
      guard let key = path.first else { return object }
      var object = object
      if key.hasSuffix("File") { object[String(key.dropLast(4))] = nil }
      object[key] = path.count == 1 ? value : replaced(object[key] as? [String: Any] ?? [:], path.dropFirst())
      return object
    }
    return replaced(whole, path[...])
  }

  /// Eight consecutive characters of a secret that a text has.
  static func leak(of secret: String, in text: String) -> String? {
    let characters = Array(secret.filter { !$0.isWhitespace }.replacing(/-----[A-Z ]*-----/, with: ""))
    guard characters.count >= 8 else { return nil }
    return (0...(characters.count - 8)).lazy.map { String(characters[$0..<($0 + 8)]) }.first { text.contains($0) }
  }
}
