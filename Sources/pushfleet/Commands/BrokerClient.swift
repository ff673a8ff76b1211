import AMQP
import Broker
import Reactor
import Settings

/// A command's one connection to the broker: connects within a time limit, then does its work on the loop until it is done.
class BrokerClient {
  /// Seconds within which one of the brokers must answer, unless a command is asked to give up sooner.
  static let connectTimeout = 15.0

  private let connectTimeout: Double
  let configuration: Configuration
  let loop: EventLoop
  let connection: BrokerConnection
  private var failure: CommandFailure?
  private var lastReason = "no answer"
  private(set) var isUp = false
  private var hasComplained = false

  /// - Parameters:
  ///   - loop: what the connection runs on, where the command has others beside it.
  ///   - connectTimeout: seconds within which one of the brokers must answer.
  init(_ configuration: Configuration, loop: EventLoop? = nil, connectTimeout: Double = BrokerClient.connectTimeout) throws {
    self.configuration = configuration
    self.connectTimeout = connectTimeout
    let loop = try loop ?? EventLoop()
    self.loop = loop
    connection = BrokerConnection(loop: loop, brokers: try configuration.brokerAddresses())
  }

  /// Whether SIGINT and SIGTERM end it; false where the command has them handled otherwise.
  var handlesSignals = true

  /// - Throws: status 69 when no broker could be reached or the connection was lost for good, 130 when it was interrupted.
  func run() throws {
    let signals = handlesSignals ? try Signals(loop: loop, [2, 15]) { [unowned self] _ in interrupt() } : nil
    defer { signals?.close() }
    connection.start()
    loop.schedule(after: connectTimeout) { [weak self] in
      guard let self, !isUp else { return }
      fail(.unavailable, "the broker is unreachable: \(lastReason)")
    }
    loop.run()
    if let failure { throw failure }
  }

  func up() {
    isUp = true
    connection.established(at: loop.now)
  }

  func fail(_ status: ExitStatus, _ message: String) {
    if failure == nil { failure = CommandFailure(status, message) }
    finish()
  }

  /// SIGINT or SIGTERM has come.
  func interrupt() { fail(.interrupted, "interrupted") }

  func finish() {
    connection.stop()
    loop.stop()
  }

  /// The connection has ended; dials again unless that can't help.
  func lost(_ reason: ConnectionEnd) {
    if !isUp, !hasComplained, !reason.isRefusal, !reason.isFatalConfiguration {
      hasComplained = true
      Terminal.complain("the broker can't be reached (\(reason)); trying again for \(Int(connectTimeout)) s")
    }
    lastReason = "\(reason)"
    if reason.isFatalConfiguration { return fail(.configuration, "\(reason)") }
    if reason.isRefusal { return fail(.unavailable, "\(reason)") }
    _ = connection.ended(at: loop.now)
  }
}
