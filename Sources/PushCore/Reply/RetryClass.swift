/// Why a push is retried, and how long it waits. The caller picks a step of the retry ladder that is at least as long.
public enum RetryClass: String, CaseIterable, Sendable {
  /// 429 TooManyRequests, or a push service limits one browser: concerns this device only.
  case perDevice
  /// APNs answers 500 or 503: fifteen minutes by Apple's rule, or the time that APNs names.
  case outage
  /// The connection ended during the request; the provider is not to blame.
  case connection
  /// FCM answers 500 or 503, or a push service answers with a fault: at least ten seconds.
  case fcm
  /// The project's quota is used up: the time that FCM names, or one minute.
  case quota
  /// The provider token has just been replaced: the first retry is immediate, later ones are slow.
  case refreshedToken

  public enum Scope: String, Sendable { case device, connection, provider }

  public var scope: Scope { row.scope }

  /// Milliseconds to wait after attempt `attempt` (from 1): the base of the class, doubled for each further failure up to the
  /// cap. The caller adds jitter. A `retryAfter` (seconds, from the provider) replaces this above the minimum.
  public func delay(afterAttempt attempt: Int, retryAfter: Int? = nil) -> Int64 {
    let row = row
    if let retryAfter { return max(Int64(retryAfter) * 1000, row.least) }
    if attempt <= 1, let first = row.first { return first }
    let doublings = min(max(attempt, 1) - 1, 30)
    return min(row.base << Int64(doublings), row.cap)
  }

  /// Times in milliseconds.
  struct Row {
    let first: Int64?
    let base: Int64
    let cap: Int64
    let least: Int64
    let scope: Scope
  }

  var row: Row {
    switch self {
    case .perDevice: Row(first: nil, base: 10_000, cap: 3_600_000, least: 1000, scope: .device)
    case .outage: Row(first: nil, base: 900_000, cap: 3_600_000, least: 1000, scope: .provider)
    case .connection: Row(first: nil, base: 1000, cap: 60_000, least: 1000, scope: .connection)
    case .fcm: Row(first: nil, base: 10_000, cap: 3_600_000, least: 10_000, scope: .provider)
    case .quota: Row(first: nil, base: 60_000, cap: 3_600_000, least: 10_000, scope: .provider)
    case .refreshedToken: Row(first: 0, base: 30_000, cap: 3_600_000, least: 0, scope: .connection)
    }
  }
}
