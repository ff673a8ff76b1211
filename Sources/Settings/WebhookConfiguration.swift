import Broker
import Foundation
import Providers
import PushCore
import Reactor
import TLS

/// An https address that receives an application's events.
public struct WebhookConfiguration: Sendable, Equatable {
  /// The kinds of events, named like their queues.
  public enum Events: String, CaseIterable, Sendable {
    case results, feedback, receipts, audit

    /// The prefix of the routing keys.
    var key: String {
      switch self {
      case .results: Topology.resultKey
      case .feedback: Topology.feedbackKey
      case .receipts: Topology.receiptKey
      case .audit: Topology.auditKey
      }
    }
  }

  public var name: String
  public var address: HTTPAddress
  /// Secrets in the form of Standard Webhooks: `whsec_` and base64. The first is the newest; all of them sign.
  public var secrets: [Material]
  public var events: [Events]
  public var ca: Material?
  public var proxy: ProxyChoice

  init?(name: String, _ reader: ConfigurationReader) {
    self.name = name
    secrets = reader.materials("secret")
    if !(1...Self.mostSecrets).contains(secrets.count) {
      reader.report(
        "secret", "must be 1 to \(Self.mostSecrets) secrets: whsec_ and the base64 of 24 to 64 random bytes, or files")
    }
    for case .text(let text) in secrets where Self.secret(Array(text.utf8)) == nil {
      reader.report("secret", "is not a secret: write whsec_ and the base64 of 24 to 64 random bytes")
    }
    let words = reader.strings("events") ?? []
    events = words.compactMap(Events.init)
    for word in words where Events(rawValue: word) == nil {
      reader.report(
        "events", "has \(SafeText.value(word)): choose from \(Events.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    if words.isEmpty { reader.report("events", "is empty: name the events to send") }
    ca = reader.material("ca")
    proxy = reader.proxy()
    let url = reader.requiredString("url", for: "the https address that receives the events")
    guard let address = HTTPAddress(url, defaultPort: 443), address.isTLS else {
      reader.report("url", "must be an https:// address without user, query and fragment")
      return nil
    }
    self.address = address
  }

  private static let mostSecrets = 5

  /// - Returns: nil if the text isn't a secret.
  static func secret(_ text: [UInt8]) -> [UInt8]? {
    let trimmed = String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    guard trimmed.hasPrefix(Material.webhookSecret),
      let key = Data(base64Encoded: String(trimmed.dropFirst(Material.webhookSecret.count))),
      (24...64).contains(key.count)
    else { return nil }
    return Array(key)
  }

  /// False for a kind of events that the settings don't list. An event with another key was put into the queue by hand.
  package func wants(_ routingKey: [UInt8]) -> Bool {
    Events.allCases.first { routingKey.starts(with: $0.key.utf8) }.map(events.contains) ?? true
  }

  /// The webhook's place in the configuration, for errors.
  package func setting(of app: String) -> String { "apps.\(app).webhooks.\(name)" }

  package func loadSecrets(_ setting: String) throws(ConfigurationError) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    for secret in secrets {
      guard let key = Self.secret(try secret.bytes(for: setting + ".secret")) else {
        throw ConfigurationError(key: setting + ".secret", problem: "is not whsec_ and the base64 of 24 to 64 bytes")
      }
      keys.append(key)
    }
    return keys
  }

  package func target(_ setting: String, timeout: Double) throws(ConfigurationError) -> DialTarget {
    let pem: [UInt8]? = if let ca { try ca.bytes(for: setting + ".ca") } else { nil }
    let tls = try usable(setting + ".ca") { () throws(CredentialError) in
      try TLSClientContext(trust: pem == nil ? TrustStore.system() : TrustStore(pem: pem ?? [], file: ca?.path))
    }
    // The configuration names the host exactly, as it can a push service.
    let host = address.endpoint.host
    let addresses = HostPolicy([host])?.addresses(of: host.lowercased()) ?? .publicOnly
    return DialTarget(address.endpoint, tls: tls, through: proxy, timeout: timeout, addresses: addresses)
  }
}
