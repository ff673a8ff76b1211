import Foundation
import Providers
import Reactor

/// A credential with the contents of its files, and what tells whether they have changed.
struct LoadedCredential {
  enum Source: Hashable {
    case apns(APNsConfiguration)
    case fcm(FCMConfiguration)
  }

  enum Value {
    case apns(APNsCredentials)
    case fcm(FCMCredentials)
  }

  let source: Source
  /// The setting that it stands in.
  let path: String
  let value: Value
  /// Of the settings and the contents of the files.
  let fingerprint: Int

  /// - Throws: naming the setting whose file cannot be used.
  init(_ source: Source, path: String) throws(ConfigurationError) {
    self.source = source
    self.path = path
    var hasher = Hasher()
    hasher.combine(source)
    switch source {
    case .apns(let apns): value = .apns(try apns.credentials(at: "\(path).apns"))
    case .fcm(let fcm): value = .fcm(try fcm.credentials(at: "\(path).fcm"))
    }
    for file in source.files { hasher.combine(try? FileContents.read(file)) }
    fingerprint = hasher.finalize()
  }

  /// For logs and figures.
  var name: String {
    source.name(at: path)
  }

  /// What the same place of a new configuration holds; nil when it is gone.
  func successor(in set: CredentialSet) throws(ConfigurationError) -> LoadedCredential? {
    switch source {
    case .apns(let old):
      guard let apns = set.apns.first(where: { $0.environment == old.environment }) else { return nil }
      return try LoadedCredential(.apns(apns), path: path)
    case .fcm:
      guard let fcm = set.fcm else { return nil }
      return try LoadedCredential(.fcm(fcm), path: path)
    }
  }
}

extension LoadedCredential.Source {
  /// For logs and figures.
  func name(at path: String) -> String {
    switch self {
    case .apns(let apns): "\(path.dropFirst(5)) APNs \(apns.environment.rawValue)"
    case .fcm: "\(path.dropFirst(5)) FCM"
    }
  }

  /// The files that it is made of.
  var files: [String] { materials.compactMap(\.path) }

  private var materials: [Material] {
    switch self {
    case .apns(let apns):
      switch apns.credential {
      case .token(let key, _, _): [key, apns.ca].compactMap(\.self)
      case .certificate(let certificate, let key, _): [certificate, key, apns.ca].compactMap(\.self)
      }
    case .fcm(let fcm): [fcm.serviceAccount, fcm.ca].compactMap(\.self)
    }
  }
}

extension Configuration {
  /// Every file that a credential is made of.
  var credentialFiles: [String] {
    let sets = apps.flatMap { [$0.credentials] + Array($0.senders.values) }
    let sources = sets.flatMap { $0.apns.map(LoadedCredential.Source.apns) + ($0.fcm.map { [.fcm($0)] } ?? []) }
    return Array(Set(sources.flatMap(\.files) + (brokerCA?.path.map { [$0] } ?? []))).sorted()
  }
}

extension Configuration {
  /// The pools that this makes, as logs name them; a credential that several places share stands by the first.
  var poolNames: [String] {
    var seen: [LoadedCredential.Source] = []
    var names: [String] = []
    for app in apps {
      let senders = app.senders.sorted { $0.key < $1.key }.map { ("apps.\(app.id).senders.\($0.key)", $0.value) }
      for (path, set) in [("apps.\(app.id)", app.credentials)] + senders {
        let sources = set.apns.map(LoadedCredential.Source.apns) + (set.fcm.map { [.fcm($0)] } ?? [])
        for source in sources where !seen.contains(source) {
          seen.append(source)
          names.append(source.name(at: path))
        }
      }
    }
    return names
  }

  /// Where the registry is, without what leads there.
  var registryKind: String { registry.map { $0.hasPrefix("sqlite:") ? "SQLite" : "PostgreSQL" } ?? "none" }
}

extension AppConfiguration {
  /// What `restricted_package_name` may say.
  public var packages: [String] {
    let sets = [credentials] + Array(senders.values)
    return Array(Set([id] + sets.compactMap { $0.fcm?.package }))
  }
}

extension APNsConfiguration {
  fileprivate func credentials(at path: String) throws(ConfigurationError) -> APNsCredentials {
    let endpoint = Endpoint(host: host, port: UInt16(port))
    let trust = try TrustStore.make(ca, for: "\(path).ca")
    switch credential {
    case .token(let key, let keyID, let teamID):
      let pem = try key.bytes(for: "\(path).key")
      return try usable("\(path).key") { () throws(CredentialError) in
        let token = try TokenCredential(pem: pem, keyID: keyID, teamID: teamID)
        return APNsCredentials(token: token, endpoint: endpoint, tls: try .provider(trust: trust))
      }
    case .certificate(let certificate, let key, let passphrase):
      let bytes = try certificate.bytes(for: "\(path).certificate")
      let keyBytes = try key?.bytes(for: "\(path).key") ?? bytes
      return try usable("\(path).certificate") { () throws(CredentialError) in
        let isPEM = bytes.firstRange(of: Array("-----BEGIN".utf8)) != nil
        let identity =
          isPEM
          ? try Identity(
            pem: bytes, file: certificate.path, key: keyBytes, keyFile: (key ?? certificate).path, passphrase: passphrase)
          : try Identity(pkcs12: bytes, file: certificate.path, passphrase: passphrase ?? "")
        return APNsCredentials(
          certificate: identity, endpoint: endpoint, tls: try .provider(trust: trust, identity: identity))
      }
    }
  }
}

extension FCMConfiguration {
  /// A configured endpoint serves access tokens as well, at the path of the account's `token_uri`.
  fileprivate func credentials(at path: String) throws(ConfigurationError) -> FCMCredentials {
    let key = "\(path).serviceAccount"
    let file = try serviceAccount.bytes(for: key)
    let account: ServiceAccount
    do throws(ServiceAccount.Invalid) { account = try ServiceAccount(file: file) } catch {
      throw ConfigurationError(key: key, problem: "cannot be used: \(error)")
    }
    let endpoint = Endpoint(host: host, port: UInt16(port))
    let trust = try TrustStore.make(ca, for: "\(path).ca")
    let tokenEndpoint =
      isEndpointGiven ? TokenEndpoint(endpoint: endpoint, path: TokenEndpoint(account.tokenURI)?.path ?? "/token") : nil
    return try usable(path) { () throws(CredentialError) in
      try FCMCredentials(account: account, endpoint: endpoint, tokenEndpoint: tokenEndpoint, tls: try .provider(trust: trust))
    }
  }
}

extension TrustStore {
  /// - Parameters:
  ///   - ca: nil for the system's authorities.
  ///   - key: the setting that names them, for the error.
  static func make(_ ca: Material?, for key: String) throws(ConfigurationError) -> TrustStore {
    let pem = try ca?.bytes(for: key)
    return try usable(key) { () throws(CredentialError) in
      if let pem { try TrustStore(pem: pem, file: ca?.path) } else { try TrustStore.system() }
    }
  }
}

/// Names the setting in the error.
private func usable<Value>(_ key: String, _ make: () throws(CredentialError) -> Value) throws(ConfigurationError) -> Value {
  do throws(CredentialError) { return try make() } catch {
    throw ConfigurationError(key: key, problem: "cannot be used: \(error)")
  }
}
