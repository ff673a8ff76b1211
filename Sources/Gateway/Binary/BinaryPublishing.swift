import Wire

/// Publishes each notification until the broker has confirmed it, for up to `retryTime`. Senders of this protocol don't repeat
/// by themselves, so this class waits out short failures, such as a lost connection or a full queue.
final class BinaryPublishing {
  /// Unconfirmed notifications of all connections together.
  static let most = 2_000
  /// Seconds to try to publish a notification and to wait for its confirm.
  static let retryTime = 10.0

  /// One notification that isn't settled.
  private struct Flight {
    let settled: (_ isTaken: Bool) -> Void
    let limit: TimerToken
  }

  private let time: Turn
  /// Publishes once and reports whether the broker confirmed the message.
  private let publishOnce: (BinaryRequest, _ answered: @escaping (Bool) -> Void) -> Void
  /// When everything must be settled because the gateway stops.
  private var end = MonotonicTime.distantFuture
  private var flights: [Int: Flight] = [:]
  private var lastFlight = 0
  private var waiting = Ring<BinaryConnection>()
  private var isWaiting: Set<ObjectIdentifier> = []

  init(time: Turn, publishOnce: @escaping (BinaryRequest, _ answered: @escaping (Bool) -> Void) -> Void) {
    self.time = time
    self.publishOnce = publishOnce
  }

  var open: Int { flights.count }

  /// Gives up everything that isn't settled after this many seconds.
  func hurry(_ seconds: Double) {
    end = min(end, time.now.advanced(bySeconds: seconds))
    time.schedule(at: end) { [self] in
      for flight in flights.keys.sorted() { settle(flight, isTaken: false) }
    }
  }

  /// If this returns false, the connection's `roomCame` is called later.
  func hasRoom(for connection: BinaryConnection) -> Bool {
    if open < Self.most { return true }
    if isWaiting.insert(ObjectIdentifier(connection)).inserted { waiting.append(connection) }
    return false
  }

  func publish(_ request: BinaryRequest, _ settled: @escaping (Bool) -> Void) {
    lastFlight += 1
    let flight = lastFlight
    let limit = time.schedule(at: min(time.now.advanced(bySeconds: Self.retryTime), end)) { [self] in
      settle(flight, isTaken: false)
    }
    flights[flight] = Flight(settled: settled, limit: limit)
    attempt(request, flight, Backoff(base: 0.1, cap: 2))
  }

  private func attempt(_ request: BinaryRequest, _ flight: Int, _ backoff: Backoff) {
    guard flights[flight] != nil else { return }
    publishOnce(request) { [self] isConfirmed in
      guard !isConfirmed else { return settle(flight, isTaken: true) }
      var backoff = backoff
      time.schedule(after: backoff.next(using: &time.random)) { [self] in attempt(request, flight, backoff) }
    }
  }

  /// Ignores an answer of the broker for a notification that is already settled.
  private func settle(_ flight: Int, isTaken: Bool) {
    guard let settled = flights.removeValue(forKey: flight) else { return }
    time.cancel(settled.limit)
    settled.settled(isTaken)
    while open < Self.most, let next = waiting.popFirst() {
      isWaiting.remove(ObjectIdentifier(next))
      next.roomCame()
    }
  }
}
