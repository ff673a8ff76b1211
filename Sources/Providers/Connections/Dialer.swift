import Reactor
import TLS
import Wire

/// The destination of a connection.
public struct DialTarget: Sendable {
  public var host: String
  public var port: UInt16
  /// For SNI, certificate verification and `:authority`. Differs from the host only with an intermediate server.
  public var serverName: String
  /// Nil only in tests that connect in memory.
  public var tls: TLSClientContext?
  /// Seconds for resolving, connecting, the proxy's answer and the TLS handshake together.
  public var timeout: Double
  /// Opens a tunnel to the destination; nil connects to it directly.
  public var proxy: ProxyAddress?
  /// Addresses that the host may have. A proxy chooses the address of a name, so with one this is for numeric hosts only.
  public var addresses: AddressPolicy

  public init(
    host: String, port: UInt16, serverName: String? = nil, tls: TLSClientContext?, timeout: Double = 10,
    proxy: ProxyAddress? = nil, addresses: AddressPolicy = .any
  ) {
    self.host = host
    self.port = port
    self.serverName = serverName ?? host
    self.tls = tls
    self.timeout = timeout
    self.proxy = proxy
    self.addresses = addresses
  }

  var authority: String {
    let name = serverName.contains(":") ? "[\(serverName)]" : serverName
    return port == 443 ? name : "\(name):\(port)"
  }
}

extension TLSClientContext {
  /// For connections to a provider: HTTP/2 only.
  public static func provider(trust: TrustStore, identity: Identity? = nil) throws(CredentialError) -> TLSClientContext {
    try TLSClientContext(trust: trust, identity: identity, alpn: ["h2"])
  }
}

/// Makes connections. Resolves the address for each.
public protocol Dialer: AnyObject {
  /// Starts connecting. The machine learns the result later, never within this call. The caller keeps the transport.
  func dial(_ machine: any Machine, to target: DialTarget) -> any Transport
}

/// Connects over sockets and TLS. All shards share a limit on simultaneous attempts to one host.
extension EventLoop: Dialer {
  public func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    let options = LinkOptions(
      connectTimeout: target.timeout, limiter: .shared, proxy: target.proxy, addresses: target.addresses)
    let link = Link(
      loop: self, machine: machine, to: Endpoint(host: target.host, port: target.port), tls: target.tls,
      serverName: target.serverName, options: options)
    link.start()
    return link
  }
}
