import Reactor
import TLS

/// The proxy for some connections, and the hosts that they reach directly.
public struct ProxyChoice: Hashable, Sendable {
  /// Reaches every host directly.
  public static let direct = ProxyChoice(nil)

  public let address: ProxyAddress?
  private let exceptions: ProxyExceptions

  public init(_ address: ProxyAddress?, except exceptions: ProxyExceptions = ProxyExceptions()) {
    self.address = address
    self.exceptions = exceptions
  }

  /// - Returns: nil for a direct connection.
  public func proxy(for endpoint: Endpoint) -> ProxyAddress? {
    guard let address, !exceptions.contains(endpoint) else { return nil }
    return address
  }
}

extension DialTarget {
  public init(_ endpoint: Endpoint, tls: TLSClientContext?, through proxy: ProxyChoice, timeout: Double = 10) {
    self.init(host: endpoint.host, port: endpoint.port, tls: tls, timeout: timeout)
    self.proxy = proxy.proxy(for: endpoint)
  }
}
