import AMQP
import Foundation
import TestSupport
import Testing

@testable import Settings

@Suite("The client certificate for brokers")
final class BrokerCertificateTests {
  let files: TestCertificates
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("broker-\(UUID().uuidString)")

  init() throws {
    files = try TestCertificates.make()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(at: folder) }

  func load(_ settings: String, _ environment: [String: String] = [:]) throws -> Configuration {
    let file = folder.appendingPathComponent("c.json5")
    let app = "apps: { a: { apns: { key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ' } } }"
    try "{ \(settings), ca: '\(files.authority)', \(app) }".write(to: file, atomically: false, encoding: .utf8)
    return try Configuration.load(path: file.path, environment: environment)
  }

  @Test("proves the user of an address without a password")
  func external() throws {
    let pair = "brokerCertificate: '\(files.client)', brokerKey: '\(files.clientKey)'"
    let configuration = try load("broker: ['amqps://one', 'amqps://me@two', 'amqps://me:p@three', 'amqp://four'], \(pair)")
    #expect(configuration.brokers.map(\.isExternal) == [true, true, false, false])
    #expect(configuration.brokers.map(\.user) == ["", "me", "me", "guest"])
    #expect(try configuration.brokerAddresses().map { $0.tls != nil } == [true, true, true, false])
    #expect(configuration.watchedFiles.contains(files.client) && configuration.watchedFiles.contains(files.clientKey))
    #expect(try load("broker: 'amqps://one'").brokers.map(\.isExternal) == [false])
  }

  @Test("can have its key in the same file or behind a passphrase")
  func forms() throws {
    let encrypted = "brokerKey: '\(files.clientEncryptedKey)', brokerPassphrase: '\(files.passphrase)'"
    for settings in ["brokerCertificate: '\(files.clientCombined)'", "brokerCertificate: '\(files.client)', \(encrypted)"] {
      #expect(try load("broker: 'amqps://one', \(settings)").brokerAddresses().count == 1)
    }
    let variables = ["PUSHFLEET_BROKERCERTIFICATE": files.client, "PUSHFLEET_BROKERKEY": files.clientKey]
    #expect(try load("broker: 'amqps://one'", variables).brokers.map(\.isExternal) == [true])
  }

  @Test("that can't be used is an error of its settings")
  func errors() throws {
    func key(_ settings: String) throws -> String? {
      do {
        _ = try load("broker: 'amqps://one', \(settings)").brokerAddresses()
        return nil
      } catch let error as ConfigurationError { return error.key }
    }
    #expect(try key("brokerKey: '\(files.clientKey)'") == "brokerKey")
    #expect(try key("brokerCertificate: '/nowhere'") == "brokerCertificate")
    #expect(try key("brokerCertificate: '\(files.client)', brokerKey: '/nowhere'") == "brokerKey")
    #expect(try key("brokerCertificate: '\(files.client)', brokerKey: '\(files.serverKey)'") == "brokerCertificate")
    let error = try #require(throws: ConfigurationError.self) {
      try load("broker: 'amqp://one', brokerCertificate: '\(files.clientCombined)'")
    }
    #expect(error.key == "brokerCertificate" && error.problem == "is given, but no address of broker is amqps://")
  }
}
