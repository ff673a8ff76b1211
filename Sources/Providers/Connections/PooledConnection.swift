import HTTP2
import Wire

/// One connection of a set, from dialling to its end. Forwards the events of its session.
final class PooledConnection: ClientSessionHandler {
  enum Phase {
    /// Dialled; the server's SETTINGS have not arrived. → open, ended
    case connecting
    /// Accepts requests. → draining, ended
    case open
    /// Finishes its requests. → ended
    case draining
    case ended
  }

  let session: ClientSession
  /// Counted from 1 within the set.
  let number: Int
  let epoch: Int
  let startedAt: MonotonicTime
  var phase = Phase.connecting
  /// True if the provider has answered, except to refuse the credential or with a failure.
  var hasServed = false
  var answers = 0
  /// When a request on it last ended.
  var heardAt: MonotonicTime
  private weak var set: ConnectionSet?
  private weak var pool: ProviderPool?
  private var transport: (any Transport)?

  init(set: ConnectionSet, number: Int, epoch: Int, configuration: ClientConfiguration, at now: MonotonicTime) {
    self.set = set
    pool = set.pool
    self.number = number
    self.epoch = epoch
    startedAt = now
    heardAt = now
    session = ClientSession(configuration: configuration)
    session.handler = self
  }

  func dial(_ dialer: any Dialer, _ target: DialTarget) { transport = dialer.dial(session, to: target) }

  func drain() {
    if phase == .connecting { return close() }
    guard phase == .open else { return }
    phase = .draining
    session.drain()
  }

  func close() {
    if phase != .ended { phase = .draining }
    transport?.close()
  }

  func sessionReady() { set?.connectionReady(self) }
  func answersReady(in session: ClientSession) { pool?.answersReady(on: self) }
  func failed(_ tag: Int, _ failure: RequestFailure) { pool?.failed(tag, failure, on: self) }
  func streamsAvailable() { pool?.streamsAvailable() }
  func goAwayReceived(_ goAway: GoAway) { set?.goAwayReceived(goAway, on: self) }
  func sessionDraining() { set?.connectionDraining(self) }

  func sessionEnded(_ reason: TransportEnd) {
    set?.connectionEnded(self, reason)
    phase = .ended
    transport = nil
  }
}
