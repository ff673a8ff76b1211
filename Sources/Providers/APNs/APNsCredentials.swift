import Reactor

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

  /// - Parameters:
  ///   - ca: path of a CA file; the system's store otherwise.
  public init(token: TokenCredential, endpoint: Endpoint, ca: String? = nil) throws(CredentialError) {
    authentication = .token(token)
    target = DialTarget(
      host: endpoint.host, port: endpoint.port, tls: try TLSClientContext(ca: ca, identity: nil, alpn: ["h2"]))
  }

  public init(certificate: Identity, endpoint: Endpoint, ca: String? = nil) throws(CredentialError) {
    authentication = .certificate(notAfter: certificate.notAfter)
    target = DialTarget(
      host: endpoint.host, port: endpoint.port, tls: try TLSClientContext(ca: ca, identity: certificate, alpn: ["h2"]))
  }

  /// When the certificate ends, in UNIX seconds; nil for a key, which doesn't.
  public var notAfter: Int64? { if case .certificate(let end) = authentication { end } else { nil } }
}
