import Wire

/// Limits what each caller may do, so that a faulty device, a stolen secret or a guesser can't fill the queues of all.
struct CallerRates {
  /// Most remembered callers. A caller with a full bucket needs no entry.
  private static let most = 16_384

  private struct Bucket {
    /// Requests allowed at once, as of `filledAt`.
    var tokens: Double
    var filledAt: MonotonicTime
  }

  /// Requests a second, and requests at once.
  let (rate, burst): (Double, Double)
  private var buckets: [[[UInt8]]: Bucket] = [:]

  init(rate: Double, burst: Double) { (self.rate, self.burst) = (rate, burst) }

  /// - Parameter caller: an application and an installation, or an address.
  /// - Returns: true if the request is within the rate. It is counted then.
  mutating func admits(_ caller: [[UInt8]], at now: MonotonicTime) -> Bool {
    if buckets.count >= Self.most {
      buckets = buckets.filter { filled($0.value, at: now) < burst }
      if buckets.count >= Self.most { buckets.removeAll() }
    }
    let tokens = buckets[caller].map { filled($0, at: now) } ?? burst
    guard tokens >= 1 else { return false }
    buckets[caller] = Bucket(tokens: tokens - 1, filledAt: now)
    return true
  }

  /// Takes back the count of an admitted request.
  mutating func giveBack(_ caller: [[UInt8]]) { buckets[caller]?.tokens += 1 }

  private func filled(_ bucket: Bucket, at now: MonotonicTime) -> Double {
    min(burst, bucket.tokens + now.seconds(since: bucket.filledAt) * rate)
  }
}
