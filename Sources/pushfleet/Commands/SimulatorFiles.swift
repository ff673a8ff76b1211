import Foundation
import PushCore
import Settings
import TLS

/// What a simulator needs and what a configuration needs for it, made in a folder. What is there already is kept, so that a
/// configuration goes on fitting.
struct SimulatorFiles {
  let certificate: String
  let key: String
  private let authority: String
  /// The provider's key as a worker has it: Apple's `.p8`, or Google's service account.
  private let credential: String
  private let isAPNs: Bool

  init(_ folder: String, host: String, isAPNs: Bool) throws(CommandFailure) {
    let folder = URL(filePath: folder).standardizedFileURL
    func path(_ name: String) -> String { folder.appending(path: name).path }
    certificate = path("server.pem")
    key = path("server.key")
    authority = path("ca.pem")
    credential = path(isAPNs ? "AuthKey_ABC123DEFG.p8" : "service-account.json")
    self.isAPNs = isAPNs
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      if ![certificate, key, authority].allSatisfy(FileManager.default.fileExists) {
        let made = try SelfSignedCertificates(for: Self.names(host))
        try Self.write(made.authority, authority, mode: 0o644)
        try Self.write(made.certificate, certificate, mode: 0o644)
        try Self.write(made.key, key, mode: 0o600)
      }
      if !FileManager.default.fileExists(atPath: credential) {
        let key = try SelfSignedCertificates.privateKey(isAPNs ? .p256 : .rsa)
        try Self.write(isAPNs ? key : Self.serviceAccount(key), credential, mode: 0o600)
      }
    } catch {
      throw CommandFailure(
        .badInput, "--self-signed: \(Shown.path(folder.path)) cannot be filled: \(error.localizedDescription)")
    }
  }

  /// What the certificate is for: loopback, and where the simulator listens.
  private static func names(_ host: String) -> [String] {
    let isAddress = host.allSatisfy { $0.isNumber || $0 == "." } || host.contains(":")
    let loopback = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]
    let own = (isAddress ? "IP:" : "DNS:") + host
    return loopback.contains(own) ? loopback : loopback + [own]
  }

  /// A configuration's lines for the simulator.
  func advice(port: UInt16) -> String {
    let endpoint = #"endpoint: "https://localhost:\#(port)", ca: "\#(authority)""#
    return isAPNs
      ? #"apns: { key: "\#(credential)", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", \#(endpoint) }"#
      : #"fcm: { serviceAccount: "\#(credential)", \#(endpoint) }"#
  }

  private static func write(_ bytes: [UInt8], _ path: String, mode: Int) throws {
    guard FileManager.default.createFile(atPath: path, contents: Data(bytes), attributes: [.posixPermissions: mode]) else {
      throw CocoaError(.fileWriteUnknown)
    }
  }

  private static func serviceAccount(_ key: [UInt8]) -> [UInt8] {
    ServiceAccountFile(
      project: Array("example".utf8), keyID: Array("simulated".utf8), privateKey: key,
      email: Array("simulated@example.iam.gserviceaccount.com".utf8),
      tokenURI: Array("https://oauth2.googleapis.com/token".utf8)
    ).json
  }
}
