import Foundation
import Reactor
import TestSupport
import Testing

@testable import Settings
@testable import Delivery
@testable import Worker

@Suite("Credentials")
final class CredentialTests {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("credentials-\(UUID().uuidString)")

  init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(at: folder) }

  func configuration(_ apps: String) throws -> Configuration {
    let file = folder.appendingPathComponent("c.json5")
    try "{ broker: 'amqp://h/', apps: \(apps) }".write(to: file, atomically: false, encoding: .utf8)
    return try Configuration.load(path: file.path, environment: [:])
  }

  func apns(_ key: String, _ rest: String = "") -> String {
    "{ key: '\(key)', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ', endpoint: 'https://127.0.0.1:1' \(rest) }"
  }

  @Test("are chosen by sender and environment; senders inherit what they don't have")
  func senders() throws {
    let certificates = try TestCertificates.make()
    let apps = """
      { 'com.example.app': {
          apns: [ \(apns(certificates.p8)), \(apns(certificates.p8, ", environment: 'sandbox', topic: 'com.example.app.beta'")) ],
          senders: { '1001': { apns: \(apns(certificates.otherP8)) }, '1002': { apns: \(apns(certificates.p8)) } } } }
      """
    let pools = PoolSet(try ShardSetup(try configuration(apps)), host: try EventLoop())
    let app = pools.apps[0]
    #expect(app.routes.apns?.pool == app.routes.production?.pool)
    #expect(app.routes.sandbox?.pool != app.routes.production?.pool)
    #expect(app.routes.sandbox?.settings.topic == Array("com.example.app.beta".utf8))
    #expect(app.senders[Array("1001".utf8)]?.apns?.pool != app.routes.apns?.pool)
    #expect(app.senders[Array("1002".utf8)]?.apns?.pool == app.routes.apns?.pool)
    #expect(pools.accounts.count == 3)
  }

  @Test("of the same environment twice are refused by their key")
  func twice() throws {
    let error = try #require(throws: ConfigurationError.self) {
      try configuration("{ a: { apns: [ \(apns("k")), \(apns("k")) ] } }")
    }
    #expect(error.key == "apps.a.apns[1].environment")
  }

  @Test("of certificates cause warnings thirty, seven and one days before the end, and at the end")
  func expiry() {
    let day: Int64 = 86_400
    let marks = [31, 30, 29, 8, 7, 2, 1, 0, -1].map { ExpiryWatch.mark(notAfter: 1_000 * day, at: (1_000 - $0) * day) }
    #expect(marks == [nil, 30, 30, 30, 7, 7, 1, 0, 0])
  }
}

extension ShardSetup {
  /// The credentials at a worker's start.
  init(_ configuration: Configuration) throws {
    var credentialStore = CredentialStore()
    self = try credentialStore.setup(configuration)
  }
}

extension CredentialStore {
  /// The credentials after a reload; throws if one can't be used.
  mutating func setup(_ configuration: Configuration) throws -> ShardSetup {
    if let error = load(configuration).first { throw error }
    return ShardSetup(configuration: configuration, credentials: credentials, brokers: brokers)
  }
}

extension ShardSetup {
  /// Of all applications.
  var credentials: [CredentialPlace: LoadedCredential] {
    apps.reduce(into: [:]) { $0.merge($1.credentials) { first, _ in first } }
  }
}
