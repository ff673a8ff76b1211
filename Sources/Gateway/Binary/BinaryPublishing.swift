import Wire

/// Publishes notifications until the broker has confirmed each, for a while: a sender of this protocol isn't told to try again, so that what
/// passes within seconds (a connection, a full queue) is waited out here.
final class BinaryPublishing {
  /// Notifications of all connections that may wait for their confirms.
  static let most = 2_000
  /// Seconds for which one is tried, and its confirm is waited for.
  static let retryTime = 10.0

  /// One notification that isn't settled.
  private struct Flight {
    let settled: (_ isTaken: Bool) -> Void
    let limit: TimerToken
  }

  private let time: Turn
  private let broker: any BinaryBroker
  /// When all are settled, one way or the other, in a gateway that stops.
  private var end = MonotonicTime.distantFuture
  private var flights: [Int: Flight] = [:]
  private var lastFlight = 0
  private var waiting = Ring<BinaryConnection>()
  private var isWaiting: Set<ObjectIdentifier> = []

  init(time: Turn, broker: any BinaryBroker) {
    self.time = time
    self.broker = broker
  }

  /// Not settled.
  var open: Int { flights.count }

  /// Nothing is tried or waited for after so many seconds.
  func hurry(_ seconds: Double) {
    end = min(end, time.now.advanced(bySeconds: seconds))
    time.schedule(at: end) { [self] in
      for flight in flights.keys.sorted() { settle(flight, isTaken: false) }
    }
  }

  /// Where there is none, the connection's turn comes by `roomCame`.
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
    broker.publish(request) { [self] isConfirmed in
      guard !isConfirmed else { return settle(flight, isTaken: true) }
      var backoff = backoff
      time.schedule(after: backoff.next(using: &time.random)) { [self] in attempt(request, flight, backoff) }
    }
  }

  /// What the broker says of one that is settled comes too late.
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
