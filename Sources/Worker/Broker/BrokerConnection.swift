import AMQP
import Reactor
import Wire

/// Keeps one connection to one of several brokers: dials, and dials again with growing pauses and jitter whenever it ends.
public final class BrokerConnection {
  /// Makes the machine of a new connection; set before `start`.
  public var makeMachine: ((BrokerURI) -> any Machine)?

  /// Tried in turn; a change counts from the next attempt on. Never empty.
  public var brokers: [BrokerURI]

  private let loop: EventLoop
  private let tls: TLSClientContext?
  private var link: Link?
  private var next: Int
  private var backoff = Backoff(base: 0.5, cap: 4)
  private var timer: TimerToken?
  private var isStopped = false
  private var heldSince: MonotonicTime?

  public init(loop: EventLoop, brokers: [BrokerURI], tls: TLSClientContext?) {
    self.loop = loop
    self.brokers = brokers
    self.tls = tls
    next = Int.random(in: 0..<brokers.count)
  }

  /// Host and port of the connection, without credentials.
  public var address: String { link.map { "\($0.endpoint)" } ?? "none" }

  public func start() {
    guard !isStopped else { return }
    let broker = brokers[next % brokers.count]
    next += 1
    guard let machine = makeMachine?(broker) else { return }
    // A broker under an alarm stops reading for as long as it lasts: heartbeats tell a dead one, not TCP.
    let link = Link(
      loop: loop, machine: machine, to: Endpoint(host: broker.host, port: broker.port), tls: broker.isTLS ? tls : nil,
      options: LinkOptions(connectTimeout: 5, userTimeout: 0))
    self.link = link
    link.start()
  }

  /// The broker has let the connection in.
  public func held(at now: MonotonicTime) { heldSince = now }

  /// The broker has let the present connection in.
  public var isHeld: Bool { heldSince != nil }

  /// Seconds that a connection must have held for the next pause to be short again: who lets in and closes at once is not hurried.
  private static let holding = 10.0

  /// The connection has ended; dials again after a pause, whose seconds it returns. nil after `stop`.
  @discardableResult
  public func ended(at now: MonotonicTime) -> Double? {
    link = nil
    if let heldSince, now.seconds(since: heldSince) >= Self.holding { backoff.reset() }
    heldSince = nil
    guard !isStopped else { return nil }
    let seconds = backoff.next()
    timer = loop.schedule(after: seconds) { [weak self] in self?.start() }
    return seconds
  }

  /// Dials no more; the machine in use says goodbye by itself.
  public func stop() {
    isStopped = true
    if let timer { loop.cancel(timer) }
  }
}

extension Configuration {
  /// What `amqps` connections verify the broker with; nil when none is configured.
  public func brokerTLS() throws(ConfigurationError) -> TLSClientContext? {
    guard brokers.contains(where: \.isTLS) else { return nil }
    let trust = try TrustStore.make(brokerCA, for: "ca")
    do throws(CredentialError) { return try TLSClientContext(trust: trust) } catch {
      throw ConfigurationError(key: "ca", problem: "cannot be used: \(error)")
    }
  }
}
