import Broker
import DeviceRegistry
import Providers
import TLS

/// Brokers, channels and rules of subscriptions, with the files that the settings name.
extension Configuration {
  public var topology: Topology {
    Topology(
      prefix: prefix, ladder: retry.steps, laneQueues: laneQueues, binaryFeedback: binaryFeedbackApps,
      webhooks: apps.flatMap { app in
        app.webhooks.map { webhook in (app.id, webhook.name, webhook.events.map { $0.key }) }
      })
  }

  /// The value of ``ReplyQueues/listed``.
  package var listedReplyQueues: Set<[UInt8]>? { replyTo.map { Set($0.map { Array($0.utf8) }) } }

  /// The brokers, for a caller that needs no provider credentials.
  public func brokerAddresses() throws(ConfigurationError) -> [BrokerAddress] {
    var trusts = TrustCache()
    return try brokerAddresses(files: MaterialCache(), trusts: &trusts)
  }

  func brokerAddresses(files: MaterialCache, trusts: inout TrustCache) throws(ConfigurationError) -> [BrokerAddress] {
    guard brokers.contains(where: \.isTLS) else { return brokers.map { BrokerAddress(uri: $0, tls: nil) } }
    let trust = try trusts.trust(brokerCA, files, for: "ca")
    var identity: Identity?
    if let brokerIdentity { identity = try brokerIdentity.load(files, .broker) }
    let tls = try usable(identity == nil ? "ca" : "brokerCertificate") { () throws(CredentialError) in
      try TLSClientContext(trust: trust.store, identity: identity)
    }
    return brokers.map { BrokerAddress(uri: $0, tls: $0.isTLS ? tls : nil) }
  }

  /// The credentials and the bundle ID for managing an application's broadcast channels.
  /// - Parameters:
  ///   - sender: one of the application's senders; nil for its own credential.
  ///   - environment: nil for the first configured one.
  /// - Throws: an error that names the missing or unusable setting.
  package func channelAccess(
    app id: String, sender: String?, environment: APNsConfiguration.Environment?
  ) throws(ConfigurationError) -> (credentials: APNsCredentials, bundleID: String) {
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
    guard case .apns(let credentials) = try apns.source(apns.channelsEndpoint).load(place.setting, files, trust) else {
      throw ConfigurationError(key: "\(place.setting)", problem: "is not an APNs credential")
    }
    return (credentials, apns.topic)
  }

  /// The rules for new subscriptions to web push.
  /// - Throws: if a VAPID key can't be read.
  package func subscriptionRules() throws(ConfigurationError) -> SubscriptionRules.LookUp {
    let files = MaterialCache()
    var rules: [[UInt8]: [[UInt8]?: SubscriptionRules]] = [:]
    for app in apps {
      for (sender, set) in app.sets {
        guard let webpush = set.webpush, let first = webpush.keys.first, let hosts = HostPolicy(webpush.hosts) else { continue }
        let setting = CredentialPlace(app: app.id, sender: sender, reach: .webpush).setting + ".key"
        let pem = try files.bytes(of: first, for: setting)
        let key = try usable(setting) { () throws(CredentialError) in try VAPIDKey(pem: pem, subject: webpush.subject) }
        rules[Array(app.id.utf8), default: [:]][sender.map { Array($0.utf8) }] = SubscriptionRules(
          keyID: key.id, allows: hosts.allows)
      }
    }
    return { app, sender in rules[app].flatMap { $0[sender] ?? $0[nil] } }
  }
}
