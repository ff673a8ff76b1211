import Foundation
import Providers
import Reactor

/// A credential with the contents of its files, and what tells whether they have changed.
struct LoadedCredential {
  enum Source: Equatable {
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
    hasher.combine("\(source)")
    switch source {
    case .apns(let apns): value = .apns(try apns.credentials(at: "\(path).apns"))
    case .fcm(let fcm): value = .fcm(try fcm.credentials(at: "\(path).fcm"))
    }
    for file in source.files { hasher.combine(FileManager.default.contents(atPath: file)) }
    fingerprint = hasher.finalize()
  }

  /// For logs and figures.
  var name: String {
    switch source {
    case .apns(let apns): "\(path.dropFirst(5)) APNs \(apns.environment.rawValue)"
    case .fcm: "\(path.dropFirst(5)) FCM"
    }
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
  /// The files that it is made of.
  var files: [String] {
    switch self {
    case .apns(let apns):
      switch apns.credential {
      case .token(let key, _, _): [key] + (apns.ca.map { [$0] } ?? [])
      case .certificate(let path, let key, _): [path] + (key.map { [$0] } ?? []) + (apns.ca.map { [$0] } ?? [])
      }
    case .fcm(let fcm): [fcm.serviceAccount] + (fcm.ca.map { [$0] } ?? [])
    }
  }
}

extension Configuration {
  /// Every file that a credential is made of.
  var credentialFiles: [String] {
    let sets = apps.flatMap { [$0.credentials] + Array($0.senders.values) }
    let sources = sets.flatMap { $0.apns.map(LoadedCredential.Source.apns) + ($0.fcm.map { [.fcm($0)] } ?? []) }
    return Array(Set(sources.flatMap(\.files) + (brokerCA.map { [$0] } ?? []))).sorted()
  }
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
    try checkAuthority(ca, for: "\(path).ca")
    switch credential {
    case .token(let key, let keyID, let teamID):
      let pem = try readFile(key, for: "\(path).key")
      do throws(CredentialError) {
        let token = try TokenCredential(pem: pem, keyID: keyID, teamID: teamID)
        return try APNsCredentials(token: token, endpoint: endpoint, ca: ca)
      } catch {
        throw ConfigurationError(key: "\(path).key", problem: "cannot be used: \(error)")
      }
    case .certificate(let file, let key, let passphrase):
      do throws(CredentialError) {
        let isPKCS12 = file.hasSuffix(".p12") || file.hasSuffix(".pfx")
        let identity =
          isPKCS12
          ? try Identity.pkcs12(file, passphrase: passphrase ?? "") : try Identity.pem(file, key: key, passphrase: passphrase)
        return try APNsCredentials(certificate: identity, endpoint: endpoint, ca: ca)
      } catch {
        throw ConfigurationError(key: "\(path).certificate", problem: "cannot be used: \(error)")
      }
    }
  }
}

extension FCMConfiguration {
  /// A configured endpoint serves access tokens as well, at the path of the account's `token_uri`.
  fileprivate func credentials(at path: String) throws(ConfigurationError) -> FCMCredentials {
    let key = "\(path).serviceAccount"
    let file = try readFile(serviceAccount, for: key)
    let account: ServiceAccount
    do throws(ServiceAccount.Invalid) { account = try ServiceAccount(file: file) } catch {
      throw ConfigurationError(key: key, problem: "cannot be used: \(error)")
    }
    let endpoint = Endpoint(host: host, port: UInt16(port))
    try checkAuthority(ca, for: "\(path).ca")
    let tokenEndpoint =
      isEndpointGiven ? TokenEndpoint(endpoint: endpoint, path: TokenEndpoint(account.tokenURI)?.path ?? "/token") : nil
    do throws(CredentialError) {
      return try FCMCredentials(account: account, endpoint: endpoint, tokenEndpoint: tokenEndpoint, ca: ca)
    } catch {
      throw ConfigurationError(key: path, problem: "cannot be used: \(error)")
    }
  }
}

/// Of the credential's files this one is told apart, so that the error names its setting.
private func checkAuthority(_ ca: String?, for key: String) throws(ConfigurationError) {
  guard let ca else { return }
  do throws(CredentialError) { _ = try TLSClientContext(ca: ca) } catch {
    throw ConfigurationError(key: key, problem: "cannot be used: \(error)")
  }
}

/// The bytes of a file that a setting names.
private func readFile(_ path: String, for key: String) throws(ConfigurationError) -> [UInt8] {
  guard let data = FileManager.default.contents(atPath: path) else {
    throw ConfigurationError(key: key, problem: "names a file that cannot be read: \(path)")
  }
  return [UInt8](data)
}
