import Reactor

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
