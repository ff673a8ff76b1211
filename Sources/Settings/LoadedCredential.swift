import Providers
import Reactor
import TLS

/// A credential with the contents of its files: checked, immutable, shared by all shards.
package final class LoadedCredential: Sendable {
  package enum Value: Sendable {
    case apns(APNsCredentials)
    case fcm(FCMCredentials)
  }

  package let value: Value
  /// Of the settings and the contents of the files: equal where nothing has changed.
  let fingerprint: Int

  package init(_ value: Value, fingerprint: Int) {
    self.value = value
    self.fingerprint = fingerprint
  }

  /// - Parameter setting: where it stands, for the error.
  /// - Throws: naming the setting whose file or text cannot be used.
  init(
    _ source: CredentialSource, setting: String, fingerprint: Int, files: MaterialCache, trust: Trust
  ) throws(ConfigurationError) {
    self.fingerprint = fingerprint
    switch source {
    case .apns(let credential, let host, let port, _):
      let endpoint = Endpoint(host: host, port: UInt16(port))
      value = .apns(try Self.apns(credential, setting, endpoint, files, trust))
    case .fcm(let serviceAccount, let host, let port, let isEndpointGiven, _):
      let endpoint = Endpoint(host: host, port: UInt16(port))
      value = .fcm(
        try Self.fcm(serviceAccount, setting, endpoint, isEndpointGiven: isEndpointGiven, files, trust))
    }
  }

  private static func apns(
    _ credential: APNsConfiguration.Credential, _ setting: String, _ endpoint: Endpoint, _ files: MaterialCache, _ trust: Trust
  ) throws(ConfigurationError) -> APNsCredentials {
    switch credential {
    case .token(let key, let keyID, let teamID):
      let pem = try files.bytes(of: key, for: "\(setting).key")
      return try usable("\(setting).key") { () throws(CredentialError) in
        let token = try TokenCredential(pem: pem, keyID: keyID, teamID: teamID)
        return APNsCredentials(token: token, endpoint: endpoint, tls: trust.anonymous)
      }
    case .certificate(let certificate, let key, let passphrase):
      let bytes = try files.bytes(of: certificate, for: "\(setting).certificate")
      let keyBytes = if let key { try files.bytes(of: key, for: "\(setting).key") } else { bytes }
      var phrase: String?
      if let passphrase { phrase = try files.text(of: passphrase, for: "\(setting).passphrase") }
      return try usable("\(setting).certificate") { () throws(CredentialError) in
        let isPEM = bytes.firstRange(of: Array("-----BEGIN".utf8)) != nil
        let identity =
          isPEM
          ? try Identity(
            pem: bytes, file: certificate.path, key: keyBytes, keyFile: (key ?? certificate).path, passphrase: phrase)
          : try Identity(pkcs12: bytes, file: certificate.path, passphrase: phrase ?? "")
        return APNsCredentials(
          certificate: identity, endpoint: endpoint, tls: try .provider(trust: trust.store, identity: identity))
      }
    }
  }

  /// A configured endpoint serves access tokens as well, at the path of the account's `token_uri`.
  private static func fcm(
    _ serviceAccount: Material, _ setting: String, _ endpoint: Endpoint, isEndpointGiven: Bool, _ files: MaterialCache,
    _ trust: Trust
  ) throws(ConfigurationError) -> FCMCredentials {
    let file = try files.bytes(of: serviceAccount, for: "\(setting).serviceAccount")
    let account: ServiceAccount
    do throws(ServiceAccount.Invalid) { account = try ServiceAccount(file: file) } catch {
      throw ConfigurationError(key: "\(setting).serviceAccount", problem: "cannot be used: \(error)")
    }
    let tokenEndpoint =
      isEndpointGiven ? TokenEndpoint(endpoint: endpoint, path: TokenEndpoint(account.tokenURI)?.path ?? "/token") : nil
    return try usable("\(setting).serviceAccount") { () throws(CredentialError) in
      try FCMCredentials(account: account, endpoint: endpoint, tokenEndpoint: tokenEndpoint, tls: trust.anonymous)
    }
  }
}

/// Names the setting in the error.
func usable<Value>(_ key: String, _ make: () throws(CredentialError) -> Value) throws(ConfigurationError) -> Value {
  do throws(CredentialError) { return try make() } catch {
    throw ConfigurationError(key: key, problem: "cannot be used: \(error)")
  }
}
