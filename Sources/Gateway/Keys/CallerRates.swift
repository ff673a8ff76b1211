import Wire

/// Limits what each caller may do, so that a faulty device, a stolen secret or a guesser can't fill the queues of all.
struct CallerRates {
  /// Most remembered callers. A caller with a full bucket needs no entry.
  private static let most = 16_384

  /// Requests a second, and requests at once.
  let (rate, burst): (Double, Double)
  private var buckets: [[[UInt8]]: TokenBucket] = [:]

  init(rate: Double, burst: Double) { (self.rate, self.burst) = (rate, burst) }

  /// - Parameter caller: an application and an installation, or an address.
  /// - Returns: true if the request is within the rate. It is counted then.
  mutating func admits(_ caller: [[UInt8]], at now: MonotonicTime) -> Bool {
    if buckets.count >= Self.most {
      buckets = buckets.filter { $0.value.filled(rate: rate, burst: burst, at: now).tokens < burst }
      if buckets.count >= Self.most { buckets.removeAll() }
    }
    return buckets[caller, default: TokenBucket(tokens: burst, filledAt: now)].admits(rate: rate, burst: burst, at: now)
  }

  /// Takes back the count of an admitted request.
  mutating func giveBack(_ caller: [[UInt8]]) { buckets[caller]?.tokens += 1 }
}

/// The requests that a caller may still make.
struct TokenBucket {
  /// Requests allowed at once, as of `filledAt`.
  var tokens: Double
  var filledAt: MonotonicTime

  func filled(rate: Double, burst: Double, at now: MonotonicTime) -> TokenBucket {
    TokenBucket(tokens: min(burst, tokens + now.seconds(since: filledAt) * rate), filledAt: now)
  }

  /// - Returns: true if the request is within the rate. It is counted then.
  mutating func admits(rate: Double, burst: Double, at now: MonotonicTime) -> Bool {
    self = filled(rate: rate, burst: burst, at: now)
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }
}
