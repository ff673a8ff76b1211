import Reactor
import TLS

/// What an APNs pool needs to know: where it sends, and who it is there.
public struct APNsCredentials: Sendable {
  public enum Authentication: Sendable {
    case token(TokenCredential)
    /// The certificate is in the TLS context; `notAfter` in UNIX seconds.
    case certificate(notAfter: Int64)
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
    authentication = .certificate(notAfter: certificate.notAfter)
    target = DialTarget(host: endpoint.host, port: endpoint.port, tls: tls)
  }

  /// When the certificate ends, in UNIX seconds; nil for a key, which doesn't.
  public var notAfter: Int64? { if case .certificate(let end) = authentication { end } else { nil } }
}
