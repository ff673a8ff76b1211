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
}

extension CredentialSource {
  /// Loads and checks the credential's files.
  /// - Parameter setting: the credential's setting, for errors.
  /// - Throws: an error that names the unusable setting.
  func load(
    _ setting: String, _ files: MaterialCache, _ trust: Trust
  ) throws(ConfigurationError) -> LoadedCredential.Value {
    switch kind {
    case .apns(.token(let key, let keyID, let teamID), let endpoint):
      let pem = try files.bytes(of: key, for: "\(setting).key")
      return try usable("\(setting).key") { () throws(CredentialError) in
        let token = try TokenCredential(pem: pem, keyID: keyID, teamID: teamID)
        let target = DialTarget(endpoint, tls: trust.anonymous, through: proxy)
        return .apns(APNsCredentials(authentication: .token(token), target: target))
      }
    case .apns(.certificate(let material), let endpoint):
      let identity = try material.load(files, .inCredential.inside(setting))
      return try usable("\(setting).certificate") { () throws(CredentialError) in
        let tls = try TLSClientContext.provider(trust: trust.store, identity: identity)
        return .apns(
          APNsCredentials(
            authentication: .certificate(notAfter: identity.notAfter, topics: identity.topics),
            target: DialTarget(endpoint, tls: tls, through: proxy)))
      }
    case .fcm(let account, let endpoint):
      let file = try files.bytes(of: account, for: "\(setting).serviceAccount")
      return try usable("\(setting).serviceAccount") { () throws(CredentialError) in
        .fcm(try FCMCredentials(account: ServiceAccount(file: file), endpoint: endpoint, tls: trust.anonymous, proxy: proxy))
      }
    case .webpush(_, let subject, let hosts):
      var keys: [VAPIDKey] = []
      for (name, material) in materials {
        let pem = try files.bytes(of: material, for: "\(setting).\(name)")
        let key = try usable("\(setting).\(name)") { () throws(CredentialError) in try VAPIDKey(pem: pem, subject: subject) }
        if keys.contains(where: { $0.id == key.id }) {
          throw ConfigurationError(key: "\(setting).\(name)", problem: "is the same key as one before it")
        }
        keys.append(key)
      }
      guard let policy = HostPolicy(hosts) else {
        throw ConfigurationError(key: "\(setting).hosts", problem: "cannot be used: a host is a name, *. and a domain, or *")
      }
      return try usable("\(setting).ca") { [keys] () throws(CredentialError) in
        .webpush(WebPushCredentials(keys: keys, hosts: policy, tls: try .pushService(trust: trust.store), proxy: proxy))
      }
    }
  }
}

/// Turns a credential error into an error of the setting.
func usable<Value>(_ key: String, _ make: () throws(CredentialError) -> Value) throws(ConfigurationError) -> Value {
  do throws(CredentialError) { return try make() } catch {
    throw ConfigurationError(key: key, problem: "cannot be used: \(error)")
  }
}
