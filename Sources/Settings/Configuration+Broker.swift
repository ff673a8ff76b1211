import Broker
import TLS

extension Configuration {
  public var topology: Topology {
    Topology(
      prefix: prefix, ladder: retry.steps, binaryFeedback: binaryFeedbackApps,
      webhooks: apps.flatMap { app in
        app.webhooks.map { webhook in
          Topology.Webhook(app: app.id, name: webhook.name, keys: webhook.events.map { $0.key })
        }
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
}
