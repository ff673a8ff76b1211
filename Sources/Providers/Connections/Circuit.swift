import Wire

/// Holds a failing provider to one probe at a time, and lets traffic come back gently.
///
/// Failures are answers of the 5xx kind and requests that timed out; a connection that cannot be made has its own back-off.
struct Circuit {
  enum State: Equatable {
    /// No limit. → open
    case closed
    /// Nothing is sent. → halfOpen
    case open(until: MonotonicTime)
    /// One request at a time. → ramping, open
    case halfOpen
    /// As many in flight as there were successes, so the rate doubles every round trip. → closed, open
    case ramping(allowance: Int)
  }

  /// So many failures in a row, with no success between, open the circuit.
  static let tripAfter = 20
  static let tripAfterWhileRamping = 5
  /// An allowance so large no longer limits anything.
  static let fullAllowance = 1024

  private(set) var state = State.closed
  private var failures = 0
  private var backoff = Backoff(base: 0.5, cap: 1.5)

  /// How many requests may be in flight in all.
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

  /// Gives the pause in seconds when this failure opened the circuit.
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

  /// The provider asked for a pause (Retry-After): a pause under way is only ever lengthened. Says whether anything changed.
  mutating func pause(seconds: Double, at now: MonotonicTime) -> Bool {
    let until = now.advanced(bySeconds: seconds)
    if case .open(let already) = state, already >= until { return false }
    state = .open(until: until)
    return true
  }

  /// After an outage the first request is a probe.
  mutating func probe() {
    if case .open = state { return }
    state = .halfOpen
    failures = 0
  }
}
