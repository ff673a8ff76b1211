import Reactor
import TLS

/// What an APNs pool needs to know: where it sends, and who it is there.
public struct APNsCredentials: Sendable {
  public enum Authentication: Sendable {
    case token(TokenCredential)
    /// The certificate is in the TLS context; `notAfter` in UNIX seconds. `topics`: those that it says it is for, where it says so.
    case certificate(notAfter: Int64, topics: [String] = [])
  }

  public let authentication: Authentication
  public let target: DialTarget

  public init(authentication: Authentication, target: DialTarget) {
    self.authentication = authentication
    self.target = target
  }

  /// - Parameter tls: without a client certificate; shared by whoever trusts the same authorities.
  public init(token: TokenCredential, endpoint: Endpoint, tls: TLSClientContext) {
    authentication = .token(token)
    target = DialTarget(host: endpoint.host, port: endpoint.port, tls: tls)
  }

  /// - Parameter tls: with the certificate.
  public init(certificate: Identity, endpoint: Endpoint, tls: TLSClientContext) {
    authentication = .certificate(notAfter: certificate.notAfter, topics: certificate.topics)
    target = DialTarget(host: endpoint.host, port: endpoint.port, tls: tls)
  }

  /// When the certificate ends, in UNIX seconds; nil for a key, which doesn't.
  // Swift 6.3.1 can't compile `ConfigurationCheck` with optimisation when this is inlined.
  @inline(never)
  public var notAfter: Int64? { if case .certificate(let end, _) = authentication { end } else { nil } }

  /// A certificate says that it is for other push types' forms of an application's topic, and not for the topic.
  func isForOtherTypes(of topic: [UInt8]) -> Bool {
    guard case .certificate(_, let topics) = authentication else { return false }
    let topic = String(decoding: topic, as: UTF8.self)
    return !topics.contains(topic) && topics.contains { $0.hasPrefix(topic + ".") }
  }
}
