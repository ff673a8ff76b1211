import Wire

/// Publishes notifications until the broker has confirmed each, for a while: a sender of this protocol isn't told to try again, so that what
/// passes within seconds (a connection, a full queue) is waited out here.
final class BinaryPublishing {
  /// Notifications of all connections that may wait for their confirms.
  static let most = 2_000
  /// Seconds for which one is tried.
  static let retryTime = 10.0

  private let time: Turn
  private let broker: any BinaryBroker
  /// Seconds that are left to all; a gateway that stops has less of it.
  private var end = MonotonicTime.distantFuture
  /// Not settled.
  private(set) var open = 0
  private var waiting = Ring<BinaryConnection>()
  private var isWaiting: Set<ObjectIdentifier> = []

  init(time: Turn, broker: any BinaryBroker) {
    self.time = time
    self.broker = broker
  }

  /// Nothing is tried after so many seconds.
  func hurry(_ seconds: Double) { end = min(end, time.now.advanced(bySeconds: seconds)) }

  /// Where there is none, the connection's turn comes by `roomCame`.
  func hasRoom(for connection: BinaryConnection) -> Bool {
    if open < Self.most { return true }
    if isWaiting.insert(ObjectIdentifier(connection)).inserted { waiting.append(connection) }
    return false
  }

  func publish(_ request: BinaryRequest, _ settled: @escaping (Bool) -> Void) {
    open += 1
    attempt(request, Backoff(base: 0.1, cap: 2), until: time.now.advanced(bySeconds: Self.retryTime)) { [self] isTaken in
      open -= 1
      settled(isTaken)
      while open < Self.most, let next = waiting.popFirst() {
        isWaiting.remove(ObjectIdentifier(next))
        next.roomCame()
      }
    }
  }

  private func attempt(
    _ request: BinaryRequest, _ backoff: Backoff, until limit: MonotonicTime, _ settled: @escaping (Bool) -> Void
  ) {
    broker.publish(request) { [self] isConfirmed in
      guard !isConfirmed else { return settled(true) }
      var backoff = backoff
      let next = time.now.advanced(bySeconds: backoff.next(using: &time.random))
      guard next < min(limit, end) else { return settled(false) }
      time.schedule(at: next) { [self] in attempt(request, backoff, until: limit, settled) }
    }
  }
}
