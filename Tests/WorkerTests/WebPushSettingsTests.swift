import Foundation
import Providers
import PushCore
import TLS
import TestSupport
import Testing

@testable import Settings

@Suite("The settings of web push")
final class WebPushSettingsTests {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("webpush-\(UUID().uuidString)")
  let keys: [KeyPair]

  init() throws {
    keys = [try KeyPair(), try KeyPair()]
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for (name, key) in zip(["one.pem", "two.pem"], keys) { try write(key.pem, name) }
  }
  deinit { try? FileManager.default.removeItem(at: folder) }

  func write(_ bytes: [UInt8], _ name: String) throws { try Data(bytes).write(to: folder.appendingPathComponent(name)) }

  func load(_ app: String, _ environment: [String: String] = [:]) throws -> Configuration {
    let file = folder.appendingPathComponent("c.json5")
    try "{ broker: 'amqp://h/', apps: { a: { \(app) } } }".write(to: file, atomically: false, encoding: .utf8)
    return try Configuration.load(path: file.path, environment: environment)
  }

  static let subject = "subject: 'mailto:push@example.com'"

  @Test("have the browsers' push services by default, and are enough for an application")
  func defaults() throws {
    let set = try load("webpush: { key: 'one.pem', \(Self.subject) }").apps[0].credentials
    let webpush = try #require(set.webpush)
    #expect(webpush.keys.map(\.path) == [folder.appendingPathComponent("one.pem").path] && webpush.ca == nil)
    #expect(webpush.hosts == ["fcm.googleapis.com", "*.push.services.mozilla.com", "*.push.apple.com", "*.notify.windows.com"])
    #expect(webpush.proxy == .direct)
    #expect(Platform.allCases.filter(set.reaches) == [.webpush])
  }

  @Test("accept several keys: as a list, with commas, and as text in a variable")
  func severalKeys() throws {
    let lists = ["['one.pem', 'two.pem']", "'one.pem, two.pem'", "'one.pem two.pem'"]
    for list in lists {
      let keys = try #require(try load("webpush: { key: \(list), \(Self.subject) }").apps[0].credentials.webpush).keys
      #expect(keys.compactMap(\.path).map { $0.suffix(7) } == ["one.pem", "two.pem"], "\(list)")
    }
    let pem = String(decoding: keys[0].pem, as: UTF8.self)
    for text in [pem, pem.replacing("\n", with: "\\n")] {
      let environment = ["PUSHFLEET_APPS_A_WEBPUSH_KEY": text, "PUSHFLEET_APPS_A_WEBPUSH_SUBJECT": "https://example.com/push"]
      let configuration = try load("", environment)
      #expect(configuration.apps[0].credentials.webpush?.keys.count == 1)
      #expect(try Self.credentials(configuration).keys.map(\.publicPoint) == [keys[0].publicPoint])
    }
    let file = ["PUSHFLEET_APPS_A_WEBPUSH_KEY_FILE": "one.pem", "PUSHFLEET_APPS_A_WEBPUSH_SUBJECT": "mailto:a@b.c"]
    #expect(try load("", file).apps[0].credentials.webpush?.keys.compactMap(\.path).count == 1)
  }

  static func credentials(_ configuration: Configuration) throws -> WebPushCredentials {
    var store = CredentialStore()
    if let error = store.load(configuration).first { throw error }
    let place = CredentialPlace(app: "a", sender: nil, reach: .webpush)
    guard case .webpush(let credentials)? = store.credentials[place]?.value else {
      throw ConfigurationError(key: "apps.a.webpush", problem: "is not loaded")
    }
    return credentials
  }

  @Test("are loaded with their keys in order, and loaded again when one of the files changes")
  func loaded() throws {
    let configuration = try load("webpush: { key: ['one.pem', 'two.pem'], \(Self.subject), hosts: 'localhost' }")
    let credentials = try Self.credentials(configuration)
    #expect(credentials.keys.map(\.publicPoint) == keys.map(\.publicPoint))
    #expect(credentials.hosts.addresses(of: "localhost") == .any && !credentials.hosts.allows("fcm.googleapis.com"))
    #expect(configuration.watchedFiles.count == 2)
    var store = CredentialStore()
    #expect(store.load(configuration).isEmpty)
    let place = CredentialPlace(app: "a", sender: nil, reach: .webpush)
    let first = store.credentials[place]
    #expect(store.load(configuration).isEmpty && store.credentials[place] === first)
    try write(try KeyPair().pem, "two.pem")
    #expect(store.load(configuration).isEmpty && store.credentials[place] !== first)
    // An unusable file leaves the earlier keys in use.
    let second = store.credentials[place]
    try write(Array("no key".utf8), "two.pem")
    #expect(store.load(configuration).map(\.key) == ["apps.a.webpush.key[1]"] && store.credentials[place] === second)
  }

  @Test("name the key that can't be used")
  func unusableKeys() throws {
    let files = try TestCertificates.make()
    try write(try Data(contentsOf: URL(fileURLWithPath: files.rsaKey)).map(\.self), "rsa.pem")
    func error(_ key: String) throws -> ConfigurationError? {
      var store = CredentialStore()
      return store.load(try load("webpush: { key: \(key), \(Self.subject) }")).first
    }
    #expect(try error("'nowhere.pem'")?.key == "apps.a.webpush.key")
    let rsa = try error("['one.pem', 'rsa.pem']")
    #expect(rsa?.key == "apps.a.webpush.key[1]" && rsa?.problem.contains("RSA") == true)
    let twice = try error("['one.pem', 'two.pem', 'one.pem']")
    #expect(twice?.key == "apps.a.webpush.key[2]" && twice?.problem == "is the same key as one before it")
  }

  @Test("complete a sender's credentials")
  func senders() throws {
    let app = try load(
      "webpush: { key: 'one.pem', \(Self.subject) }, senders: { s: { webpush: { key: 'two.pem', \(Self.subject) } } }"
    ).apps[0]
    #expect(app.senders["s"]?.webpush?.keys.first?.path?.hasSuffix("two.pem") == true)
    #expect(app.sources.map(\.place.name) == ["a web push", "a.senders.s web push"])
  }

  @Test(
    "accept the subjects that Apple accepts",
    arguments: [
      "mailto:push@example.com", "mailto:a.b+c@mail.example.com", "https://example.com", "https://example.com/push?x=1",
    ])
  func subjects(text: String) { #expect(WebPushConfiguration.isSubject(text)) }

  @Test(
    "refuse the subjects that Apple refuses",
    arguments: [
      "", "push@example.com", "mailto:", "mailto: push@example.com", "mailto:<push@example.com>", "mailto:push@localhost",
      "mailto:@example.com", "mailto:a@b@example.com", "mailto:a@example.", "https://localhost", "https://localhost:8080/",
      "https://",
      "http://example.com", "https://user@example.com", "mailto:ü@example.com", "mailto:a\"@example.com", "ftp://example.com",
    ])
  func refusedSubjects(text: String) throws {
    #expect(!WebPushConfiguration.isSubject(text))
    let error = try #require(throws: ConfigurationError.self) {
      try load("webpush: { key: 'one.pem', subject: '\(text)' }")
    }
    #expect(error.key == "apps.a.webpush.subject")
  }

  @Test(
    "explain errors",
    arguments: [
      ("", "apps.a.apns is missing: an app needs apns, fcm, webpush, or some of them"),
      ("senders: { s: {} }", "apps.a.senders.s.apns is missing: a sender needs apns, fcm, webpush, or some of them"),
      ("webpush: { \(subject) }", "apps.a.webpush.key is missing: a VAPID key, as `pushfleet vapid create` makes it"),
      ("webpush: { key: [], \(subject) }", "apps.a.webpush.key is missing"),
      ("webpush: { key: [1], \(subject) }", "apps.a.webpush.key[0] must be the path of a file, or its text, not a number"),
      ("webpush: { key: 1, \(subject) }", "apps.a.webpush.key must be the path of a file, or its text, not a number"),
      ("webpush: { key: 'k', keyFile: 'k', \(subject) }", "apps.a.webpush.key and keyFile give the same setting"),
      ("webpush: { key: 'k' }", "apps.a.webpush.subject is missing: mailto: and your e-mail address"),
      ("webpush: { key: 'k', \(subject), hosts: [] }", "apps.a.webpush.hosts is empty"),
      (
        "webpush: { key: 'k', \(subject), hosts: ['https://a.b'] }",
        "apps.a.webpush.hosts has a value of 11 characters: a host is"
      ),
      ("webpush: { key: 'k', \(subject), hosts: '*.x *y' }", "apps.a.webpush.hosts has \"*y\": a host is a name"),
      ("webpush: { key: 'k', \(subject), endpoint: 'https://h' }", "apps.a.webpush.endpoint is not a setting"),
    ])
  func errors(app: String, said: String) throws {
    let error = try #require(throws: ConfigurationError.self) { try load(app) }
    #expect("\(error)".contains(said), "\(error)")
  }
}
