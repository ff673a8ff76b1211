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

/// The common settings of all simulators.
public protocol SimulatorConfiguration: Sendable {
  var listener: SimulatorListener { get set }
  var script: Script { get set }
  var clientAuthority: String? { get }
  /// The protocols for ALPN, by preference.
  var protocols: [String] { get }
}

extension SimulatorConfiguration {
  /// Only APNs asks for client certificates.
  public var clientAuthority: String? { nil }
  public var protocols: [String] { ["h2"] }
}

/// A simulated provider on a socket, with TLS and ALPN if a certificate is configured.
///
/// It listens from its creation until `close`. Confined to the loop's thread.
public final class ProviderSimulator<Service: SimulatedService> {
  public let service: Service
  private let listener: Listener

  public var journal: Journal { service.journal }
  /// The actual port.
  public var port: UInt16 { listener.port }

  /// - Throws: `CredentialError` for certificates and keys, `SystemError` if the address can't be used.
  public init(configuration: Service.Configuration, loop: EventLoop, journal: Journal? = nil) throws {
    let journal = try journal ?? Journal(keepsEntries: true)
    let service = try Service(configuration: configuration, journal: journal, environment: SimulatorEnvironment(loop: loop))
    self.service = service
    let (endpoint, key) = (configuration.listener.endpoint, configuration.listener.key)
    let tls = try configuration.listener.certificate.map { certificate throws(CredentialError) in
      try TLSServerContext(
        certificate: certificate, key: key ?? certificate, clientCA: configuration.clientAuthority,
        alpn: configuration.protocols)
    }
    listener = try Listener(loop: loop, host: endpoint.host, port: endpoint.port, tls: tls) { _ in service.accept() }
    loop.afterEvents(journal)
  }

  public func close() {
    listener.close()
    listener.closeConnections()
    journal.flush()
  }
}
