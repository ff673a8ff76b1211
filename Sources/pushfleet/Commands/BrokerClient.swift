import AMQP
import Broker
import Reactor
import Settings

/// A command's broker connection: connects within a time limit, then works on the event loop until done.
class BrokerClient {
  /// Seconds within which a broker must answer, unless a command sets a shorter limit.
  static let connectTimeout = 15.0

  private let connectTimeout: Double
  let configuration: Configuration
  let topology: Topology
  let loop: EventLoop
  let connection: BrokerConnection
  private(set) var failure: CommandFailure?
  /// nil before the first connection has failed.
  private var lastReason: String?
  /// Established connections so far, and reopened channels.
  private var connections = 0
  var isUp: Bool { connections > 0 }

  /// - Parameters:
  ///   - name: of the connection.
  ///   - heartbeat: as ``ConnectionSettings/heartbeat``.
  init(
    _ configuration: Configuration, name: String, heartbeat: UInt16 = 10, connectTimeout: Double = BrokerClient.connectTimeout
  ) throws {
    self.configuration = configuration
    topology = configuration.topology
    self.connectTimeout = connectTimeout
    loop = try EventLoop()
    connection = BrokerConnection(
      loop: loop, brokers: try configuration.brokerAddresses(), name: name, heartbeat: heartbeat)
  }

  /// True if SIGINT and SIGTERM end the command; false if the command handles them itself.
  var handlesSignals = true
  /// True while the command goes on although a lost broker stays away.
  var outlivesBroker: Bool { false }
  /// Gets notices for the operator.
  var complain: (String) -> Void = Terminal.notice

  /// - Throws: status 69 if no broker can be reached or the connection is lost for good, 130 on a signal.
  func run() throws {
    let signals = handlesSignals ? try Signals(loop: loop, [2, 15]) { [unowned self] _ in interrupt() } : nil
    defer { signals?.close() }
    connection.start()
    limitConnecting()
    try work()
    if let failure { throw failure }
  }

  /// The command's work. It turns the loop by `wait`, or until `finish`.
  func work() throws { loop.run() }

  /// Turns the loop until a condition holds. Not for callbacks of the loop.
  /// - Returns: false if the time was over before.
  /// - Throws: the failure that ends the command.
  @discardableResult
  func wait(upTo seconds: Double = .infinity, until isTrue: () -> Bool) throws -> Bool {
    var isOver = false
    let limit = seconds < .infinity ? loop.schedule(after: seconds) { isOver = true } : nil
    defer { if let limit { loop.cancel(limit) } }
    // Output that was written between two turns leaves at the end of the next one.
    loop.turn(waitingAtMost: 0)
    while failure == nil, !isOver, !isTrue() { loop.turn(waitingAtMost: .infinity) }
    if let failure { throw failure }
    return isTrue()
  }

  /// Ends a failure to connect.
  var advice: String { "; check `broker`; `pushfleet doctor` says more" }

  private func limitConnecting() {
    loop.schedule(after: connectTimeout) { [weak self, connections] in
      guard let self, connections == self.connections else { return }
      if isUp, outlivesBroker { return limitConnecting() }
      fail(.unavailable, "the broker is unreachable: \(lastReason ?? "\(connection.address): no answer")\(advice)")
    }
  }

  /// Call this whenever a connection is established.
  func up() {
    connections += 1
    connection.established(at: loop.now)
  }

  func fail(_ status: ExitStatus, _ message: String) {
    if failure == nil { failure = CommandFailure(status, message) }
    finish()
  }

  func interrupt() { fail(.interrupted, "interrupted") }

  func finish() {
    connection.stop()
    loop.stop()
  }

  /// Handles the end of the connection: reconnects unless that can't help.
  func lost(_ reason: ConnectionEnd) {
    let words = "\(reason)".contains(connection.address) ? "\(reason)" : "\(connection.address): \(reason)"
    if !isUp, lastReason == nil, !reason.isRefusal, !reason.isFatalConfiguration {
      complain("the broker can't be reached (\(words)); trying again for \(Int(connectTimeout)) s")
    }
    lastReason = words
    if reason.isFatalConfiguration { return fail(.configuration, words) }
    if reason.isRefusal { return fail(.unavailable, words + (isUp ? "" : advice)) }
    if connection.isEstablished { limitConnecting() }
    connection.ended(at: loop.now)
  }
}
