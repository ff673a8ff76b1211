import PushCore
import Reactor
import TLS

/// The keys and rules with which an application sends to browsers, the same for all push services.
public struct WebPushCredentials: Sendable {
  /// Never empty. The first is for new subscriptions.
  public let keys: [VAPIDKey]
  public let hosts: HostPolicy
  /// Offers HTTP/2 and HTTP/1.1. Nil only in tests that connect in memory.
  private let tls: TLSClientContext?
  public let proxy: ProxyChoice

  public init(keys: [VAPIDKey], hosts: HostPolicy, tls: TLSClientContext?, proxy: ProxyChoice = .direct) {
    self.keys = keys
    self.hosts = hosts
    self.tls = tls
    self.proxy = proxy
  }

  func target(of origin: WebPushOrigin) -> DialTarget {
    DialTarget(
      Endpoint(host: origin.host, port: origin.port), tls: tls, through: proxy, addresses: hosts.addresses(of: origin.host))
  }

  /// A subscription's key; nil if it isn't configured. Unregistered subscriptions have no key's id and use the first.
  public func key(_ id: ArraySlice<UInt8>) -> VAPIDKey? {
    id.allSatisfy { $0 == 0 } ? keys.first : keys.first { $0.id.elementsEqual(id) }
  }
}

extension TLSClientContext {
  /// For connections to push services: HTTP/2 if the server offers it, otherwise HTTP/1.1.
  public static func pushService(trust: TrustStore) throws(CredentialError) -> TLSClientContext {
    try TLSClientContext(trust: trust, alpn: ["h2", "http/1.1"], requiresALPN: false)
  }
}
