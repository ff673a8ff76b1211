import Foundation
import PushCore
import Reactor
import Settings
import Simulator
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
        .badInput, "--self-signed: \(SafeText.path(folder.path)) cannot be filled: \(SafeText.reason(error))")
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
    try? FileManager.default.removeItem(atPath: path)
    try FileContents.create(path, bytes)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
  }
}

extension JSONObject {
  /// A service account file, as Google's console creates it for senders' libraries.
  /// - Parameter privateKey: PKCS#8 PEM.
  static func serviceAccount(
    project: any JSONMember, keyID: any JSONMember, privateKey: [UInt8], email: any JSONMember, tokenURI: any JSONMember
  ) -> JSONObject {
    [
      "type": "service_account", "project_id": project, "private_key_id": keyID, "private_key": privateKey,
      "client_email": email, "client_id": keyID, "token_uri": tokenURI,
    ]
  }
}

/// The subscriptions of `pushfleet simulate webpush`, one JSON object a line. Private: who knows a subscription can send to it.
struct SubscriptionFile {
  private let count: Int
  private let path: String
  private let app: String?

  /// Nil if no subscriptions are wanted.
  init?(_ options: Options) throws(CommandFailure) {
    guard let count = try options.integer("subscriptions", in: 1...1_000_000) else {
      guard options["app"] == nil else { throw CommandFailure(.usage, "--app needs --subscriptions N FILE") }
      return nil
    }
    guard let path = options.operands.dropFirst().first else {
      throw CommandFailure(.usage, "--subscriptions needs a number and a file: --subscriptions 100 subscriptions.ndjson")
    }
    self.count = count
    self.path = path
    app = options["app"]
  }

  /// - Parameter endpoint: where the simulator listens.
  func write(_ endpoint: Endpoint) throws(CommandFailure) {
    let origin = "https://\(Endpoint(host: Self.host(endpoint.host), port: endpoint.port))"
    do {
      try Data().write(to: URL(filePath: path))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      let file = try FileHandle(forWritingTo: URL(filePath: path))
      defer { try? file.close() }
      for first in stride(from: 1, through: count, by: Self.linesPerWrite) {
        try file.write(contentsOf: Data(lines(first...min(first + Self.linesPerWrite - 1, count), origin)))
      }
    } catch {
      throw CommandFailure(.badInput, "--subscriptions: \(SafeText.path(path)) cannot be written\(SafeText.reason(path))")
    }
  }

  private func lines(_ numbers: ClosedRange<Int>, _ origin: String) throws -> [UInt8] {
    try numbers.flatMap { number in
      try SimulatedSubscription(number: number, origin: origin).registration(number: number, app: app) + [UInt8(ascii: "\n")]
    }
  }

  /// The host of the endpoints: what the certificate names.
  static func host(_ listening: String) -> String {
    ["127.0.0.1", "0.0.0.0", "::1", "::"].contains(listening) ? "localhost" : listening
  }

  private static let linesPerWrite = 1000
}
