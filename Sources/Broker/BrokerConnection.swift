import AMQP
import Logging
import PushCore
import Reactor
import TLS
import Wire

/// Keeps one connection to one of several brokers. Reconnects with growing pauses and jitter whenever the connection ends.
public final class BrokerConnection {
  /// Makes the machine for a new connection. Set it before `start`.
  public var makeMachine: ((ConnectionSettings) -> any Machine)?

  /// Tried in turn. A change applies from the next attempt on. Never empty.
  public var brokers: [BrokerAddress]

  package typealias Dial = (_ machine: any Machine, _ broker: BrokerAddress) -> any Transport

  /// The connection's name in the broker's management interface.
  private let name: String
  private let heartbeat: UInt16
  private let time: Turn
  private let dial: Dial
  private var transport: (any Transport)?
  private var dialled: BrokerURI?
  private var next: Int
  private var backoff = Backoff(base: 0.5, cap: 3)
  private var timer: TimerToken?
  private var isStopped = false
  private var establishedAt: MonotonicTime?
  /// While true, no new connection is made. An existing connection stays.
  package var isPaused = false {
    didSet { if !isPaused, isDue { start() } }
  }
  private var isDue = false

  /// - Parameter heartbeat: as ``ConnectionSettings/heartbeat``.
  package init(time: Turn, brokers: [BrokerAddress], name: String, heartbeat: UInt16 = 10, dial: @escaping Dial) {
    self.time = time
    self.brokers = brokers
    self.name = name
    self.heartbeat = heartbeat
    self.dial = dial
    next = Int.random(in: 0..<brokers.count, using: &time.random)
  }

  public convenience init(loop: EventLoop, brokers: [BrokerAddress], name: String, heartbeat: UInt16 = 10) {
    self.init(time: loop.time, brokers: brokers, name: name, heartbeat: heartbeat) { [unowned loop] in loop.dial($0, to: $1) }
  }

  /// Host and port of the connection, without credentials; "none" if there is no connection.
  public var address: String { dialled.map { "\(Endpoint(host: $0.host, port: $0.port))" } ?? "none" }

  public func start() {
    isDue = isPaused
    guard !isStopped, !isPaused else { return }
    let broker = brokers[next % brokers.count]
    next += 1
    let settings = ConnectionSettings(broker: broker.uri, name: name, heartbeat: heartbeat)
    guard let machine = makeMachine?(settings) else { return }
    dialled = broker.uri
    transport = dial(machine, broker)
  }

  /// Call this when the broker has accepted the connection.
  public func established(at now: MonotonicTime) { establishedAt = now }

  public var isEstablished: Bool { establishedAt != nil }

  /// Seconds that a connection must last before the backoff is reset. Some brokers accept a connection and close it at once.
  private static let holding = 10.0

  /// Call this when the connection has ended. Schedules the next attempt and returns the pause in seconds; nil after `stop`.
  @discardableResult
  public func ended(at now: MonotonicTime) -> Double? {
    transport = nil
    dialled = nil
    if let establishedAt, now.seconds(since: establishedAt) >= Self.holding { backoff.reset() }
    establishedAt = nil
    guard !isStopped else { return nil }
    let seconds = backoff.next(using: &time.random)
    timer = time.schedule(after: seconds) { [weak self] in self?.start() }
    return seconds
  }

  /// Does the same, and logs the end unless `stop` was called.
  package func ended(_ reason: ConnectionEnd, _ log: Log?, _ fields: Log.Fields) {
    let message = isEstablished ? "broker connection ended" : "no broker connection"
    guard let seconds = ended(at: time.now) else { return }
    log?.warning(message, fields + ["reason": "\(reason)", "again_in_seconds": seconds])
  }

  /// Stops reconnecting. The machine in use closes its connection itself.
  public func stop() {
    isStopped = true
    if let timer { time.cancel(timer) }
  }
}

extension Consumer {
  package func logIfUnanswered(_ log: Log) {
    if isUnanswered { log.warning("the broker did not answer the last acknowledgements: it may deliver these requests again") }
  }
}

/// A broker's address, with its TLS settings for `amqps`.
public struct BrokerAddress: Sendable {
  package let uri: BrokerURI
  /// nil for `amqp`, and only then.
  package let tls: TLSClientContext?

  package init(uri: BrokerURI, tls: TLSClientContext?) {
    self.uri = uri
    self.tls = tls
  }
}

extension EventLoop {
  /// `userTimeout` is off: a broker under an alarm stops reading, so only heartbeats can detect a dead one, not TCP.
  package func dial(_ machine: any Machine, to broker: BrokerAddress) -> any Transport {
    let link = Link(
      loop: self, machine: machine, to: Endpoint(host: broker.uri.host, port: broker.uri.port), tls: broker.tls,
      options: LinkOptions(connectTimeout: 5, userTimeout: 0))
    link.start()
    return link
  }
}
