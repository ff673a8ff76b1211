import Wire

/// A token bucket that limits pushes in any minute, with a linear ramp after an outage. FCM's quota is 600,000 a minute for
/// each project, in minutes aligned to no clock. After an outage the rate must rise from 0 to full over at least 60 s
/// (Firebase, "Throttling and quotas").
struct RateLimiter {
  static let rampSeconds = 60.0
  /// A ramp starts at this share of the full rate, so that a first request can be sent.
  static let rampFloor = 0.01

  /// Each time the quota is used up, the rate is multiplied by `lowering`, but stays above `leastShare` of the quota.
  static let lowering = 0.75
  static let leastShare = 1.0 / 16
  static let raisePerMinute = 0.01

  /// A full burst and a minute's refill are together at most this number, which counts as at least 1.
  private var quota: Int
  /// The share of the quota that the provider actually grants.
  private(set) var granted = 1.0
  private var raisedAt: MonotonicTime
  private(set) var perSecond: Double
  private(set) var burst: Double
  private var tokens: Double
  private var filledAt: MonotonicTime
  private(set) var rampStart: MonotonicTime?

  init(perMinute quota: Int, at now: MonotonicTime) {
    self.quota = quota
    (burst, perSecond) = Self.shape(quota, 1)
    tokens = burst
    filledAt = now
    raisedAt = now
  }

  private static func shape(_ quota: Int, _ share: Double) -> (burst: Double, perSecond: Double) {
    let limit = max(Double(quota) * share, 1)
    let burst = max(limit / 61, 1)
    // Below two a minute, the only push is the burst; the next comes after more than a minute.
    return (burst, limit < 2 ? 1 / 61 : (limit - burst) / 60)
  }

  mutating func change(perMinute quota: Int, at now: MonotonicTime) {
    refill(to: now)
    self.quota = quota
    reshape()
  }

  /// The provider says that the quota is used up.
  mutating func lower(at now: MonotonicTime) {
    refill(to: now)
    granted = max(granted * Self.lowering, Self.leastShare)
    raisedAt = now
    reshape()
  }

  private mutating func raise(at now: MonotonicTime) {
    let minutes = (now.seconds(since: raisedAt) / 60).rounded(.down)
    guard minutes >= 1 else { return }
    granted = min(granted + minutes * Self.raisePerMinute, 1)
    raisedAt = raisedAt.advanced(bySeconds: minutes * 60)
    reshape()
  }

  private mutating func reshape() {
    (burst, perSecond) = Self.shape(quota, granted)
    tokens = min(tokens, burst)
  }

  mutating func available(at now: MonotonicTime) -> Int {
    refill(to: now)
    return Int(tokens)
  }

  mutating func take() { tokens -= 1 }

  mutating func ramp(from now: MonotonicTime) {
    refill(to: now)
    rampStart = now
    tokens = min(tokens, 1)
  }

  /// When the next push may be sent; not after `now` if one may already.
  func nextToken(after now: MonotonicTime) -> MonotonicTime {
    guard tokens < 1 else { return now }
    return now.advanced(bySeconds: max((1 - tokens) / (perSecond * share(at: now)), 0.001))
  }

  private func share(at time: MonotonicTime) -> Double {
    guard let rampStart else { return 1 }
    return min(1, max(Self.rampFloor, time.seconds(since: rampStart) / Self.rampSeconds))
  }

  private mutating func refill(to now: MonotonicTime) {
    let elapsed = now.seconds(since: filledAt)
    guard elapsed > 0 else { return }
    // The share rises linearly, so the mean of its ends is exact except at the end of the ramp.
    let mean = (share(at: filledAt) + share(at: now)) / 2
    let ceiling = rampStart == nil ? burst : max(1, burst * share(at: now))
    tokens = min(ceiling, tokens + elapsed * perSecond * mean)
    filledAt = now
    if granted < 1 { raise(at: now) }
    if let start = rampStart, now.seconds(since: start) >= Self.rampSeconds { rampStart = nil }
  }
}
