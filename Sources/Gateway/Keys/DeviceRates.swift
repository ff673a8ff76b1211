import Wire

/// Limits the requests of each installation's secret, so that a faulty device or a stolen secret can't fill the queues of all.
struct DeviceRates {
  /// Requests a second, and requests at once.
  private static let (rate, burst) = (10.0, 100.0)
  /// Most remembered installations. After ten quiet seconds an installation needs no entry.
  private static let most = 16_384

  private struct Bucket {
    /// Requests allowed at once, as of `filledAt`.
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

  /// - Returns: true if the request is within the rate. It is counted then.
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
