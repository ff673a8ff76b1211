import Providers
import Reactor
import TLS

/// A credential with its loaded and checked files; immutable and shared by all shards.
package final class LoadedCredential: Sendable {
  package enum Value: Sendable {
    case apns(APNsCredentials)
    case fcm(FCMCredentials)
    case webpush(WebPushCredentials)
  }

  package let value: Value
  /// Equal if neither settings nor file contents have changed.
  let fingerprint: Int

  package init(_ value: Value, fingerprint: Int) {
    self.value = value
    self.fingerprint = fingerprint
  }

  /// - Parameter setting: the credential's setting, for errors.
  /// - Throws: an error that names the unusable setting.
  init(
    _ source: CredentialSource, setting: String, fingerprint: Int, files: MaterialCache, trust: Trust
  ) throws(ConfigurationError) {
    self.fingerprint = fingerprint
    let loading = Loading(setting: setting, files: files, trust: trust, proxy: source.proxy)
    switch source.kind {
    case .apns(let credential, let endpoint): value = .apns(try loading.apns(credential, endpoint))
    case .fcm(let account, let endpoint): value = .fcm(try loading.fcm(account, endpoint))
    case .webpush(_, let subject, let hosts):
      value = .webpush(try loading.webpush(source.materials, subject, hosts))
    }
  }
}

/// The common inputs of a credential's loading.
private struct Loading {
  let setting: String
  let files: MaterialCache
  let trust: Trust
  let proxy: ProxyChoice

  func apns(_ credential: APNsConfiguration.Credential, _ endpoint: Endpoint) throws(ConfigurationError) -> APNsCredentials {
    switch credential {
    case .token(let key, let keyID, let teamID):
      let pem = try files.bytes(of: key, for: "\(setting).key")
      return try usable("\(setting).key") { () throws(CredentialError) in
        let token = try TokenCredential(pem: pem, keyID: keyID, teamID: teamID)
        return APNsCredentials(
          authentication: .token(token), target: DialTarget(endpoint, tls: trust.anonymous, through: proxy))
      }
    case .certificate(let material):
      let identity = try material.load(files, .inCredential.inside(setting))
      return try usable("\(setting).certificate") { () throws(CredentialError) in
        let tls = try TLSClientContext.provider(trust: trust.store, identity: identity)
        return APNsCredentials(
          authentication: .certificate(notAfter: identity.notAfter, topics: identity.topics),
          target: DialTarget(endpoint, tls: tls, through: proxy))
      }
    }
  }

  func fcm(_ serviceAccount: Material, _ endpoint: Endpoint?) throws(ConfigurationError) -> FCMCredentials {
    let file = try files.bytes(of: serviceAccount, for: "\(setting).serviceAccount")
    return try usable("\(setting).serviceAccount") { () throws(CredentialError) in
      try FCMCredentials(account: ServiceAccount(file: file), endpoint: endpoint, tls: trust.anonymous, proxy: proxy)
    }
  }

  func webpush(
    _ materials: [(name: String, material: Material)], _ subject: String, _ hosts: [String]
  ) throws(ConfigurationError) -> WebPushCredentials {
    var keys: [VAPIDKey] = []
    for (name, material) in materials {
      let pem = try files.bytes(of: material, for: "\(setting).\(name)")
      let key = try usable("\(setting).\(name)") { () throws(CredentialError) in
        try VAPIDKey(pem: pem, subject: subject)
      }
      if keys.contains(where: { $0.id == key.id }) {
        throw ConfigurationError(key: "\(setting).\(name)", problem: "is the same key as one before it")
      }
      keys.append(key)
    }
    guard let policy = HostPolicy(hosts) else {
      throw ConfigurationError(key: "\(setting).hosts", problem: "cannot be used: a host is a name, *. and a domain, or *")
    }
    return try usable("\(setting).ca") { () throws(CredentialError) in
      WebPushCredentials(keys: keys, hosts: policy, tls: try .pushService(trust: trust.store), proxy: proxy)
    }
  }
}

/// Turns a credential error into an error of the setting.
func usable<Value>(_ key: String, _ make: () throws(CredentialError) -> Value) throws(ConfigurationError) -> Value {
  do throws(CredentialError) { return try make() } catch {
    throw ConfigurationError(key: key, problem: "cannot be used: \(error)")
  }
}
