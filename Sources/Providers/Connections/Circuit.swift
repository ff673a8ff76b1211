import Wire

/// A circuit breaker: limits a failing provider to one probe at a time, and then raises the load gradually. Failures are 5xx
/// answers and timeouts. Failed connections have their own backoff.
struct Circuit {
  enum State: Equatable {
    /// No limit. → open
    case closed
    /// Nothing is sent. → halfOpen
    case open(until: MonotonicTime)
    /// One request at a time. → ramping, open
    case halfOpen
    /// The allowance grows by one with each success, so the rate doubles every round trip. → closed, open
    case ramping(allowance: Int)
  }

  /// This number of failures in a row opens the circuit.
  static let tripAfter = 20
  static let tripAfterWhileRamping = 5
  /// From this allowance on, the circuit is closed.
  static let fullAllowance = 1024

  private(set) var state = State.closed
  private var failures = 0
  private var backoff = Backoff(base: 0.5, cap: 1.5)

  var allowance: Int {
    switch state {
    case .closed: .max
    case .open: 0
    case .halfOpen: 1
    case .ramping(let allowance): allowance
    }
  }

  var deadline: MonotonicTime { if case .open(let until) = state { until } else { .distantFuture } }

  mutating func advance(to now: MonotonicTime) {
    if case .open(let until) = state, now >= until { state = .halfOpen }
  }

  mutating func succeeded() {
    failures = 0
    switch state {
    case .closed, .open: break
    case .halfOpen:
      backoff.reset()
      state = .ramping(allowance: 2)
    case .ramping(let allowance): state = allowance >= Self.fullAllowance ? .closed : .ramping(allowance: allowance + 1)
    }
  }

  /// Returns the pause in seconds if this failure opened the circuit.
  mutating func failed(at now: MonotonicTime, using random: inout RandomSource) -> Double? {
    failures += 1
    switch state {
    case .open: return nil
    case .closed where failures < Self.tripAfter: return nil
    case .ramping where failures < Self.tripAfterWhileRamping: return nil
    case .closed, .ramping, .halfOpen:
      failures = 0
      let pause = backoff.next(using: &random)
      state = .open(until: now.advanced(bySeconds: pause))
      return pause
    }
  }

  /// The provider asked for a pause (Retry-After), which can only lengthen a current pause. Returns true if it did.
  mutating func pause(seconds: Double, at now: MonotonicTime) -> Bool {
    let until = now.advanced(bySeconds: seconds)
    if case .open(let already) = state, already >= until { return false }
    state = .open(until: until)
    return true
  }

  /// Makes the first request after an outage a probe.
  mutating func probe() {
    if case .open = state { return }
    state = .halfOpen
    failures = 0
  }
}
