import Broker
import TLS

/// What the settings say of the broker.
extension Configuration {
  public var topology: Topology { Topology(prefix: prefix, ladder: retry.steps, binaryFeedback: binaryFeedbackApps) }

  /// What ``ReplyQueues/listed`` is.
  package var listedReplyQueues: Set<[UInt8]>? { replyTo.map { Set($0.map { Array($0.utf8) }) } }

  /// The brokers, for a command that needs nothing else of the credentials.
  public func brokerAddresses() throws(ConfigurationError) -> [BrokerAddress] {
    var trusts = TrustCache()
    return try brokerAddresses(files: MaterialCache(), trusts: &trusts)
  }

  func brokerAddresses(files: MaterialCache, trusts: inout TrustCache) throws(ConfigurationError) -> [BrokerAddress] {
    guard brokers.contains(where: \.isTLS) else { return brokers.map { BrokerAddress(uri: $0, tls: nil) } }
    let trust = try trusts.trust(brokerCA, files, for: "ca")
    let tls = try usable("ca") { () throws(CredentialError) in try TLSClientContext(trust: trust.store) }
    return brokers.map { BrokerAddress(uri: $0, tls: $0.isTLS ? tls : nil) }
  }
}
