import AMQP
import Reactor
import Wire

/// Keeps one connection to one of several brokers: dials, and dials again with growing pauses and jitter whenever it ends.
public final class BrokerConnection {
  /// Makes the machine of a new connection; set before `start`.
  public var makeMachine: ((BrokerURI) -> any Machine)?

  /// Tried in turn; a change counts from the next attempt on. Never empty.
  public var brokers: [BrokerAddress]

  private let loop: EventLoop
  private var link: Link?
  private var next: Int
  private var backoff = Backoff(base: 0.5, cap: 4)
  private var timer: TimerToken?
  private var isStopped = false
  private var heldSince: MonotonicTime?
  /// While true no connection is made; one that is there stays.
  var isPaused = false {
    didSet { if !isPaused, isDue { start() } }
  }
  private var isDue = false

  public init(loop: EventLoop, brokers: [BrokerAddress]) {
    self.loop = loop
    self.brokers = brokers
    next = Int.random(in: 0..<brokers.count)
  }

  /// Host and port of the connection, without credentials.
  public var address: String { link.map { "\($0.endpoint)" } ?? "none" }

  public func start() {
    isDue = isPaused
    guard !isStopped, !isPaused else { return }
    let broker = brokers[next % brokers.count]
    next += 1
    guard let machine = makeMachine?(broker.uri) else { return }
    // A broker under an alarm stops reading for as long as it lasts: heartbeats tell a dead one, not TCP.
    let link = Link(
      loop: loop, machine: machine, to: Endpoint(host: broker.uri.host, port: broker.uri.port), tls: broker.tls,
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

/// A broker, and what it is verified with: an `amqps` address can't be used without.
public struct BrokerAddress: Sendable {
  let uri: BrokerURI
  /// nil exactly for `amqp`.
  let tls: TLSClientContext?
}

extension Configuration {
  /// The brokers, for a command that needs nothing else of the credentials.
  public func brokerAddresses() throws(ConfigurationError) -> [BrokerAddress] {
    var trusts = TrustCache()
    return try brokerAddresses(files: MaterialCache(), trusts: &trusts)
  }

  func brokerAddresses(files: MaterialCache, trusts: inout TrustCache) throws(ConfigurationError) -> [BrokerAddress] {
    guard brokers.contains(where: \.isTLS) else { return brokers.map { BrokerAddress(uri: $0, tls: nil) } }
    let trust = try trusts.trust(brokerCA, files, for: "ca")
    let tls = try usable("ca") { () throws(CredentialError) in try TLSClientContext(trust: trust.store) }
    return brokers.map { BrokerAddress(uri: $0, tls: $0.isTLS ? tls : nil) }
  }
}
