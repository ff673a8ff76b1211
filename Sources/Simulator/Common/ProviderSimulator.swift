import Reactor
import TLS

/// The address, TLS files and script of a simulator.
public protocol SimulatorConfiguration: Sendable {
  var host: String { get set }
  var port: UInt16 { get set }
  var certificate: String? { get set }
  var key: String? { get set }
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
    let tls = try configuration.certificate.map { certificate throws(CredentialError) in
      try TLSServerContext(
        certificate: certificate, key: configuration.key ?? certificate, clientCA: configuration.clientAuthority,
        requiresClientCertificate: configuration.clientAuthority != nil, alpn: configuration.protocols)
    }
    listener = try Listener(loop: loop, host: configuration.host, port: configuration.port, tls: tls) { _ in service.accept() }
    loop.afterEvents(journal)
  }

  public func close() {
    listener.close()
    listener.closeConnections()
    journal.flush()
  }
}
