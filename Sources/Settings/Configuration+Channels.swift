import Providers

extension Configuration {
  /// The credentials for managing an application's broadcast channels.
  package struct ChannelAccess {
    package let credentials: APNsCredentials
    package let bundleID: String
    package let environment: APNsConfiguration.Environment
  }

  /// - Parameters:
  ///   - sender: one of the application's senders; nil for its own credential.
  ///   - environment: nil for the first configured one.
  /// - Throws: an error that names the missing or unusable setting.
  package func channelAccess(
    app id: String, sender: String?, environment: APNsConfiguration.Environment?
  ) throws(ConfigurationError) -> ChannelAccess {
    let app = apps.first { $0.id == id }
    guard let set = sender == nil ? app?.credentials : app?.senders[sender ?? ""] else {
      throw ConfigurationError(key: "apps.\(id)", problem: "is not configured, or has no such sender")
    }
    guard let apns = set.apns.first(where: { environment == nil || $0.environment == environment }) else {
      let what = environment.map { " of the environment \($0.rawValue)" } ?? ""
      throw ConfigurationError(key: "apps.\(id).apns", problem: "is missing: channels need an APNs credential\(what)")
    }
    let place = CredentialPlace(app: id, sender: sender, reach: .apns(apns.environment))
    let files = MaterialCache()
    var trusts = TrustCache()
    let trust = try trusts.trust(apns.ca, files, for: "\(place.setting).ca")
    let source = apns.source(host: apns.channelsHost, port: apns.channelsPort)
    let loaded = try LoadedCredential(source, setting: place.setting, fingerprint: 0, files: files, trust: trust)
    guard case .apns(let credentials) = loaded.value else {
      throw ConfigurationError(key: "\(place.setting)", problem: "is not an APNs credential")
    }
    return ChannelAccess(credentials: credentials, bundleID: apns.topic, environment: apns.environment)
  }
}
