import Foundation
import PushCore
import Settings
import TLS

/// The files, in one folder, for a simulator and its configuration. Existing files are kept, so configurations stay valid.
struct SimulatorFiles {
  let certificate: String
  let key: String
  private let authority: String
  /// The worker's credential: an APNs `.p8` key, a Google service account or a VAPID key.
  private let credential: String
  private let host: String
  private let platform: Platform

  init(_ folder: String, host: String, _ platform: Platform) throws(CommandFailure) {
    let folder = URL(filePath: folder).standardizedFileURL
    func path(_ name: String) -> String { folder.appending(path: name).path }
    certificate = path("server.pem")
    key = path("server.key")
    authority = path("ca.pem")
    credential = path(Self.credentialName(platform))
    self.host = host
    self.platform = platform
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      if ![certificate, key, authority].allSatisfy(FileManager.default.fileExists) {
        let made = try SelfSignedCertificates(for: Self.names(host))
        try Self.write(made.authority, authority, mode: 0o644)
        try Self.write(made.certificate, certificate, mode: 0o644)
        try Self.write(made.key, key, mode: 0o600)
      }
      if !FileManager.default.fileExists(atPath: credential) {
        try Self.write(Self.newCredential(platform), credential, mode: 0o600)
      }
    } catch {
      throw CommandFailure(
        .badInput, "--self-signed: \(SafeText.path(folder.path)) cannot be filled: \(error.localizedDescription)")
    }
  }

  private static func credentialName(_ platform: Platform) -> String {
    switch platform {
    case .apns: "AuthKey_ABC123DEFG.p8"
    case .fcm: "service-account.json"
    case .webpush: "vapid.pem"
    }
  }

  private static func newCredential(_ platform: Platform) throws -> [UInt8] {
    switch platform {
    case .apns, .webpush: try SelfSignedCertificates.privateKey(.p256)
    case .fcm:
      JSONObject.serviceAccount(
        project: "example", keyID: "simulated", privateKey: try SelfSignedCertificates.privateKey(.rsa),
        email: "simulated@example.iam.gserviceaccount.com", tokenURI: "https://oauth2.googleapis.com/token"
      ).line
    }
  }

  /// The certificate's names: loopback and the listening host.
  private static func names(_ host: String) -> [String] {
    let isAddress = host.allSatisfy { $0.isNumber || $0 == "." } || host.contains(":")
    let loopback = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]
    let own = (isAddress ? "IP:" : "DNS:") + host
    return loopback.contains(own) ? loopback : loopback + [own]
  }

  func advice(port: UInt16) -> String {
    let endpoint = #"endpoint: "https://localhost:\#(port)", ca: "\#(authority)""#
    return switch platform {
    case .apns: #"apns: { key: "\#(credential)", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", \#(endpoint) }"#
    case .fcm: #"fcm: { serviceAccount: "\#(credential)", \#(endpoint) }"#
    case .webpush:
      #"webpush: { key: "\#(credential)", subject: "mailto:push@example.com", hosts: ["\#(SubscriptionFile.host(host))"], ca: "\#(authority)" }"#
    }
  }

  private static func write(_ bytes: [UInt8], _ path: String, mode: Int) throws {
    guard FileManager.default.createFile(atPath: path, contents: Data(bytes), attributes: [.posixPermissions: mode]) else {
      throw CocoaError(.fileWriteUnknown)
    }
  }
}
