import Reactor
import TLS
import Wire

/// A simulator of APNs for tests.
public typealias APNsSimulator = ProviderSimulator<APNsService>
/// A simulator of FCM v1 and its token endpoint for tests.
public typealias FCMSimulator = ProviderSimulator<FCMService>
/// A simulator of the browsers' push services for tests.
public typealias WebPushSimulator = ProviderSimulator<WebPushService>

/// A provider's simulator without sockets: makes a machine for each connection.
public protocol SimulatedService: AnyObject, SendableMetatype {
  associatedtype Configuration: SimulatorConfiguration
  var journal: Journal { get }
  init(configuration: Configuration, journal: Journal, environment: SimulatorEnvironment) throws(CredentialError)
  func accept() -> any Machine
  /// Replaces the script for later requests.
  func play(_ script: Script)
}

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
  public var protocols: [String] { ["h2"] }
}

/// A simulated provider on a socket, with TLS and ALPN if a certificate is configured.
///
/// It listens from its creation until `close`. Confined to the loop's thread.
public final class ProviderSimulator<Service: SimulatedService> {
  public let service: Service
  private let listener: Listener
  private let flusher: JournalFlusher

  public var journal: Journal { service.journal }
  /// The actual port.
  public var port: UInt16 { listener.port }

  /// - Throws: `CredentialError` for certificates and keys, `SystemError` if the address can't be used.
  public init(configuration: Service.Configuration, loop: EventLoop, journal: Journal? = nil) throws {
    let journal = try journal ?? Journal(keepsEntries: true)
    let service = try Service(configuration: configuration, journal: journal, environment: SimulatorEnvironment(loop: loop))
    self.service = service
    let tls = try ServerCertificate.context(
      configuration.certificate, configuration.key, configuration.clientAuthority, protocols: configuration.protocols)
    listener = try Listener(loop: loop, host: configuration.host, port: configuration.port, tls: tls) { _ in service.accept() }
    flusher = JournalFlusher(journal)
    loop.afterEvents(flusher)
  }

  public func close() {
    listener.close()
    listener.closeConnections()
    journal.flush()
  }

  /// Runs a simulator on a separate thread, for tests and demonstrations. Returns once it listens.
  public static func launch(_ configuration: Service.Configuration, journal: Journal? = nil) throws -> RunningSimulator {
    let journal = try journal ?? Journal(keepsEntries: true)
    return try RunningSimulator(journal: journal) { loop in
      let simulator = try ProviderSimulator(configuration: configuration, loop: loop, journal: journal)
      return RunningSimulator.Part(port: simulator.port, close: simulator.close)
    }
  }
}
