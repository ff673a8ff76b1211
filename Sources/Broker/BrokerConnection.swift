import AMQP
import Reactor
import TLS
import Wire

/// Keeps one connection to one of several brokers: dials, and dials again with growing pauses and jitter whenever it ends.
public final class BrokerConnection {
  /// Makes the machine of a new connection; set before `start`.
  public var makeMachine: ((BrokerURI) -> any Machine)?

  /// Tried in turn; a change counts from the next attempt on. Never empty.
  public var brokers: [BrokerAddress]

  /// Starts connecting to a broker.
  package typealias Dial = (_ machine: any Machine, _ broker: BrokerAddress) -> any Transport

  private let time: Turn
  private let dial: Dial
  /// nil while there is no connection.
  private var transport: (any Transport)?
  private var dialled: BrokerURI?
  private var next: Int
  private var backoff = Backoff(base: 0.5, cap: 3)
  private var timer: TimerToken?
  private var isStopped = false
  private var establishedAt: MonotonicTime?
  /// While true no connection is made; one that is there stays.
  package var isPaused = false {
    didSet { if !isPaused, isDue { start() } }
  }
  private var isDue = false

  package init(time: Turn, brokers: [BrokerAddress], dial: @escaping Dial) {
    self.time = time
    self.brokers = brokers
    self.dial = dial
    next = Int.random(in: 0..<brokers.count, using: &time.random)
  }

  public convenience init(loop: EventLoop, brokers: [BrokerAddress]) {
    self.init(time: loop.time, brokers: brokers) { [unowned loop] in loop.dial($0, to: $1) }
  }

  /// Host and port of the connection, without credentials.
  public var address: String { dialled.map { "\(Endpoint(host: $0.host, port: $0.port))" } ?? "none" }

  public func start() {
    isDue = isPaused
    guard !isStopped, !isPaused else { return }
    let broker = brokers[next % brokers.count]
    next += 1
    guard let machine = makeMachine?(broker.uri) else { return }
    dialled = broker.uri
    transport = dial(machine, broker)
  }

  /// The broker has let the connection in.
  public func established(at now: MonotonicTime) { establishedAt = now }

  /// The broker has let the present connection in.
  public var isEstablished: Bool { establishedAt != nil }

  /// Seconds that a connection must have held for the next pause to be short again: who lets in and closes at once is not hurried.
  private static let holding = 10.0

  /// The connection has ended; dials again after a pause, whose seconds it returns. nil after `stop`.
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

  /// Dials no more; the machine in use says goodbye by itself.
  public func stop() {
    isStopped = true
    if let timer { time.cancel(timer) }
  }
}

/// A broker, and what it is verified with: an `amqps` address can't be used without.
public struct BrokerAddress: Sendable {
  package let uri: BrokerURI
  /// nil exactly for `amqp`.
  package let tls: TLSClientContext?

  package init(uri: BrokerURI, tls: TLSClientContext?) {
    self.uri = uri
    self.tls = tls
  }
}

extension EventLoop {
  /// A broker under an alarm stops reading for as long as it lasts: heartbeats tell a dead one, not TCP.
  package func dial(_ machine: any Machine, to broker: BrokerAddress) -> any Transport {
    let link = Link(
      loop: self, machine: machine, to: Endpoint(host: broker.uri.host, port: broker.uri.port), tls: broker.tls,
      options: LinkOptions(connectTimeout: 5, userTimeout: 0))
    link.start()
    return link
  }
}
