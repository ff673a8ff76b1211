import Wire

/// For how long a provider has been unreachable, by a clock that nobody sets, and what follows for what waits for it.
struct Outage {
  private var since: MonotonicTime?

  /// How long it may last, in seconds, before what waits is parked.
  static let grace = 5.0
  private static let shortestParking = 10.0
  private static let longestParking = 300.0

  /// To be called about once a second.
  /// - Returns: for how many milliseconds what waits now is to be parked; nil while it may stay.
  mutating func note(isOutOfReach: Bool, at now: MonotonicTime) -> Int64? {
    guard isOutOfReach else {
      since = nil
      return nil
    }
    let lasted = now.seconds(since: since ?? now)
    since = since ?? now
    guard lasted >= Self.grace else { return nil }
    return Int64(min(max(lasted, Self.shortestParking), Self.longestParking) * 1000)
  }
}
