import Reactor
import TLS
import Wire

/// The destination of a connection.
public struct DialTarget: Sendable {
  public let endpoint: Endpoint
  /// Nil for a connection without TLS.
  public let tls: TLSClientContext?
  /// All shards share the limit on simultaneous attempts to one host.
  public var options: LinkOptions

  /// - Parameter timeout: seconds, see `LinkOptions.connectTimeout`.
  public init(
    _ endpoint: Endpoint, tls: TLSClientContext?, through proxy: ProxyChoice = .direct, timeout: Double = 10,
    addresses: AddressPolicy = .any
  ) {
    self.endpoint = endpoint
    self.tls = tls
    options = LinkOptions(
      connectTimeout: timeout, limiter: .shared, proxy: proxy.proxy(for: endpoint), addresses: addresses)
  }

  var authority: String {
    let name = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
    return endpoint.port == 443 ? name : "\(name):\(endpoint.port)"
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

/// Connects over sockets and TLS.
extension EventLoop: Dialer {
  public func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    let link = Link(loop: self, machine: machine, to: target.endpoint, tls: target.tls, options: target.options)
    link.start()
    return link
  }
}
