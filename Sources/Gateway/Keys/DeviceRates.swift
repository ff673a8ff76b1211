import Wire

/// How often each installation may ask with its secret: a device that is in trouble, or whose secret somebody else has, must not fill the
/// queues of all. Time is an argument.
struct DeviceRates {
  /// Requests a second, and at once.
  private static let (rate, burst) = (10.0, 100.0)
  /// Installations that are remembered: one that has been quiet for ten seconds has nothing to be remembered for.
  private static let most = 16_384

  private struct Bucket {
    /// Requests that may come at once, as of `filledAt`.
    var tokens: Double
    var filledAt: MonotonicTime

    func filled(at now: MonotonicTime) -> Double {
      min(DeviceRates.burst, tokens + now.seconds(since: filledAt) * DeviceRates.rate)
    }
  }

  private struct Name: Hashable {
    var app: [UInt8]
    var installation: [UInt8]
  }

  private var buckets: [Name: Bucket] = [:]

  /// - Returns: the request is within the rate, and counted.
  mutating func admits(_ app: [UInt8], _ installation: [UInt8], at now: MonotonicTime) -> Bool {
    if buckets.count >= Self.most {
      buckets = buckets.filter { $0.value.filled(at: now) < Self.burst }
      if buckets.count >= Self.most { buckets.removeAll() }
    }
    let name = Name(app: app, installation: installation)
    let tokens = buckets[name]?.filled(at: now) ?? Self.burst
    guard tokens >= 1 else { return false }
    buckets[name] = Bucket(tokens: tokens - 1, filledAt: now)
    return true
  }
}
