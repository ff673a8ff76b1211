import Reactor
import TLS

/// The address of a simulator, and its TLS files.
public struct SimulatorListener: Sendable {
  /// Port 0 chooses any free port.
  public var endpoint = Endpoint(host: "127.0.0.1", port: 0)
  /// PEM files of the server's certificate chain and key. Without them there is no TLS.
  public var certificate: String?
  public var key: String?

  public init() {}
}

/// A simulated provider on a socket, with TLS and ALPN if a certificate is configured.
///
/// It listens from its creation until `close`. Confined to the loop's thread.
public final class ProviderSimulator {
  public let service: SimulatedService
  private let listener: Listener

  public var journal: Journal { service.journal }
  /// The actual port.
  public var port: UInt16 { listener.port }

  /// - Throws: `CredentialError` for certificates and keys, `SystemError` if the address can't be used.
  public init(_ service: SimulatedService, at place: SimulatorListener, loop: EventLoop) throws {
    self.service = service
    let tls = try place.certificate.map { certificate throws(CredentialError) in
      try TLSServerContext(
        certificate: certificate, key: place.key ?? certificate, clientCA: service.clientAuthority, alpn: service.protocols)
    }
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
