import Wire

/// A token bucket: so many pushes a minute, never more in any minute, and a linear ramp after an outage.
///
/// FCM's quota is 600,000 a minute and project, counted in minutes that are not aligned to any clock; after an outage the
/// rate must take at least 60 s from 0 to full (Firebase, "Throttling and quotas").
struct Pacer {
  static let rampSeconds = 60.0
  /// A ramp starts at this share of the full rate, so that the first request ever leaves.
  static let rampFloor = 0.01

  /// What a quota that isn't what it is said to be has the rate multiplied with, each time it is used up; at least `leastShare` of it is used.
  static let lowering = 0.75
  static let leastShare = 1.0 / 16
  /// By so much of the quota the rate rises again in each minute.
  static let raisePerMinute = 0.01

  private var perMinute: Int
  /// Of the quota, that the provider has been seen to grant.
  private(set) var granted = 1.0
  private var raisedAt: MonotonicTime
  private(set) var perSecond: Double
  private(set) var burst: Double
  private var tokens: Double
  private var filledAt: MonotonicTime
  private(set) var rampStart: MonotonicTime?

  /// A full burst and a minute's refill are together no more than `perMinute`, of which there is at least one.
  init(perMinute: Int, at now: MonotonicTime) {
    self.perMinute = perMinute
    (burst, perSecond) = Self.shape(perMinute, 1)
    tokens = burst
    filledAt = now
    raisedAt = now
  }

  private static func shape(_ perMinute: Int, _ share: Double) -> (burst: Double, perSecond: Double) {
    let limit = max(Double(perMinute) * share, 1)
    let burst = max(limit / 61, 1)
    // Of less than two in a minute the burst is the only one: the next comes when more than a minute has passed.
    return (burst, limit < 2 ? 1 / 61 : (limit - burst) / 60)
  }

  /// Another rate from now on; a ramp goes on.
  mutating func change(perMinute: Int, at now: MonotonicTime) {
    refill(to: now)
    self.perMinute = perMinute
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
    (burst, perSecond) = Self.shape(perMinute, granted)
    tokens = min(tokens, burst)
  }

  /// Whole pushes that may leave now.
  mutating func available(at now: MonotonicTime) -> Int {
    refill(to: now)
    return Int(tokens)
  }

  /// One push left.
  mutating func take() { tokens -= 1 }

  mutating func ramp(from now: MonotonicTime) {
    refill(to: now)
    rampStart = now
    tokens = min(tokens, 1)
  }

  /// When one push may leave again; now or the past when one may already.
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
    // The share rises linearly, so the mean of its ends is exact but for the step at the ramp's very end.
    let mean = (share(at: filledAt) + share(at: now)) / 2
    let ceiling = rampStart == nil ? burst : max(1, burst * share(at: now))
    tokens = min(ceiling, tokens + elapsed * perSecond * mean)
    filledAt = now
    if granted < 1 { raise(at: now) }
    if let start = rampStart, now.seconds(since: start) >= Self.rampSeconds { rampStart = nil }
  }
}
