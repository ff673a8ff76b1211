import Reactor
import TLS
import Wire

/// A provider to test against: APNs on a socket, with TLS and ALPN `h2` where a certificate is configured.
///
/// It listens from its making until `close`, and lives on the loop's thread.
public final class APNsSimulator {
  public let service: APNsService
  private let listener: Listener
  private let flusher: JournalFlusher

  public var journal: Journal { service.journal }
  /// The port really listened on.
  public var port: UInt16 { listener.port }

  /// - Throws: `CredentialError` for certificates and keys, `SystemError` when the address can't be listened on.
  public init(configuration: APNsConfiguration, loop: EventLoop, journal: Journal? = nil) throws {
    let journal = try journal ?? Journal(keepsEntries: true)
    let service = try APNsService(configuration: configuration, journal: journal, environment: SimulatorEnvironment(loop: loop))
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
  public static func launch(_ configuration: APNsConfiguration, journal: Journal? = nil) throws -> RunningSimulator {
    let journal = try journal ?? Journal(keepsEntries: true)
    return try RunningSimulator(journal: journal) { loop in
      let simulator = try APNsSimulator(configuration: configuration, loop: loop, journal: journal)
      return RunningSimulator.Part(port: simulator.port, close: simulator.close)
    }
  }
}
