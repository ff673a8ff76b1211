import HTTP2
import Reactor
import TLS
import Wire

/// APNs to test against.
public typealias APNsSimulator = ProviderSimulator<APNsService>
/// FCM v1 and its token endpoint to test against.
public typealias FCMSimulator = ProviderSimulator<FCMService>

/// A provider's simulator without its sockets: makes a machine for each connection.
public protocol SimulatedService: AnyObject, SendableMetatype {
  associatedtype Configuration: SimulatorConfiguration
  var journal: Journal { get }
  init(configuration: Configuration, journal: Journal, environment: SimulatorEnvironment) throws(CredentialError)
  func accept() -> ServerSession
}

/// Where a simulator listens, and its TLS.
public protocol SimulatorConfiguration: Sendable {
  var host: String { get }
  var port: UInt16 { get }
  var certificate: String? { get }
  var key: String? { get }
  var clientAuthority: String? { get }
}

/// A provider to test against: on a socket, with TLS and ALPN `h2` where a certificate is configured.
///
/// It listens from its making until `close`, and lives on the loop's thread.
public final class ProviderSimulator<Service: SimulatedService> {
  public let service: Service
  private let listener: Listener
  private let flusher: JournalFlusher

  public var journal: Journal { service.journal }
  /// The port really listened on.
  public var port: UInt16 { listener.port }

  /// - Throws: `CredentialError` for certificates and keys, `SystemError` when the address can't be listened on.
  public init(configuration: Service.Configuration, loop: EventLoop, journal: Journal? = nil) throws {
    let journal = try journal ?? Journal(keepsEntries: true)
    let service = try Service(configuration: configuration, journal: journal, environment: SimulatorEnvironment(loop: loop))
    self.service = service
    let tls = try ServerCertificate.context(configuration.certificate, configuration.key, configuration.clientAuthority)
    listener = try Listener(loop: loop, host: configuration.host, port: configuration.port, tls: tls) { _ in service.accept() }
    flusher = JournalFlusher(journal)
    loop.afterEvents(flusher)
  }

  /// Drops every connection and listens no more.
  public func close() {
    listener.close()
    listener.closeConnections()
    journal.flush()
  }

  /// Runs a simulator on a thread of its own, for tests and demonstrations; returns once it listens.
  public static func launch(_ configuration: Service.Configuration, journal: Journal? = nil) throws -> RunningSimulator {
    let journal = try journal ?? Journal(keepsEntries: true)
    return try RunningSimulator(journal: journal) { loop in
      let simulator = try ProviderSimulator(configuration: configuration, loop: loop, journal: journal)
      return RunningSimulator.Part(port: simulator.port, close: simulator.close)
    }
  }
}
