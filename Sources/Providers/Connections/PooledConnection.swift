import HTTP2
import Wire

/// One connection of a set, from dialling to its end; passes on what its session says.
final class PooledConnection: ClientSessionHandler {
  enum Phase {
    /// Dialled, and the server's SETTINGS not seen yet. → open, ended
    case connecting
    /// Takes requests. → draining, ended
    case open
    /// Finishes what it has. → ended
    case draining
    case ended
  }

  let session: ClientSession
  /// Among its set's, counted from 1.
  let number: Int
  /// Of the credential that the connection was made with.
  let epoch: Int
  let startedAt: MonotonicTime
  var phase = Phase.connecting
  /// The provider has answered on it other than by refusing the credential or failing.
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
