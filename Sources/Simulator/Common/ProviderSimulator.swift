import Reactor
import TLS

/// A simulated provider on a socket, with TLS and ALPN.
///
/// It listens from its creation until `close`. Confined to the loop's thread.
public final class ProviderSimulator {
  /// The address, where port 0 chooses any free port, and the PEM files of the server's certificate chain and key.
  public typealias Place = (endpoint: Endpoint, certificate: String, key: String)

  public let service: SimulatedService
  private let listener: Listener

  public var journal: Journal { service.journal }
  /// The actual port.
  public var port: UInt16 { listener.port }

  /// - Throws: `CredentialError` for certificates and keys, `SystemError` if the address can't be used.
  public init(_ service: SimulatedService, at place: Place, loop: EventLoop) throws {
    self.service = service
    let tls = try TLSServerContext(
      certificate: place.certificate, key: place.key, clientCA: service.clientAuthority, alpn: service.protocols)
    let endpoint = place.endpoint
    listener = try Listener(loop: loop, host: endpoint.host, port: endpoint.port, tls: tls) { _ in service.accept() }
    loop.afterEvents(service.journal)
  }

  public func close() {
    listener.close()
    listener.closeConnections()
    journal.flush()
  }
}
