import TLS
import Wire

/// Where a connection goes.
public struct DialTarget: Sendable {
  public var host: String
  public var port: UInt16
  /// For SNI, certificate verification and `:authority`; the host unless something stands in between.
  public var serverName: String
  /// nil only in tests that dial in memory.
  public var tls: TLSClientContext?
  /// Seconds for resolving, connecting and the TLS handshake together.
  public var timeout: Double

  public init(host: String, port: UInt16, serverName: String? = nil, tls: TLSClientContext?, timeout: Double = 10) {
    self.host = host
    self.port = port
    self.serverName = serverName ?? host
    self.tls = tls
    self.timeout = timeout
  }

  /// `:authority`, with the port where it isn't https's own.
  var authority: String {
    let name = serverName.contains(":") ? "[\(serverName)]" : serverName
    return port == 443 ? name : "\(name):\(port)"
  }
}

extension TLSClientContext {
  /// For connections to a provider: HTTP/2 or nothing.
  public static func provider(trust: TrustStore, identity: Identity? = nil) throws(CredentialError) -> TLSClientContext {
    try TLSClientContext(trust: trust, identity: identity, alpn: ["h2"])
  }
}

/// Makes connections. Addresses are resolved anew for each.
public protocol Dialer: AnyObject {
  /// Starts connecting; the machine hears of success or failure, never within this call. The caller keeps the transport.
  func dial(_ machine: any Machine, to target: DialTarget) -> any Transport
}
