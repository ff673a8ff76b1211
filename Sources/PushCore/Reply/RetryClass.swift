/// Why something is tried again, and so how long it waits. The caller picks the ladder's step that is not shorter.
public enum RetryClass: String, CaseIterable, Sendable {
  /// This device only (429 TooManyRequests); nobody else is slowed down.
  case perDevice
  /// APNs answers 500 or 503: fifteen minutes by Apple's rule, unless it names a time itself.
  case outage
  /// The connection ended under the request; the provider is not to blame.
  case connection
  /// FCM answers 500 or 503: never sooner than ten seconds.
  case fcm
  /// The project's quota is used up: what the provider says, else a minute.
  case quota
  /// The provider token has just been replaced: once at once, then slowly.
  case refreshedToken

  /// Whom the wait concerns.
  public enum Scope: String, Sendable { case device, connection, provider }

  public var scope: Scope { row.scope }

  /// Milliseconds before attempt `attempt + 1`, when attempt `attempt` (from 1) has failed: the class's base, doubled for every
  /// further failure up to its cap. A `retryAfter` (seconds, from the provider) replaces that, but never undercuts the class's
  /// least wait. What spreads the load is added by whoever chooses the ladder's step.
  public func delay(afterAttempt attempt: Int, retryAfter: Int? = nil) -> Int64 {
    let row = row
    if let retryAfter { return max(Int64(retryAfter) * 1000, row.least) }
    if attempt <= 1, let first = row.first { return first }
    let doublings = min(max(attempt, 1) - 1, 30)
    return min(row.base << Int64(doublings), row.cap)
  }

  /// All in milliseconds.
  struct Row {
    let first: Int64?
    let base: Int64
    let cap: Int64
    let least: Int64
    let scope: Scope
    let words: String
  }

  var row: Row {
    switch self {
    case .perDevice:
      Row(first: nil, base: 10_000, cap: 3_600_000, least: 1000, scope: .device, words: "429 for one device")
    case .outage:
      Row(first: nil, base: 900_000, cap: 3_600_000, least: 1000, scope: .provider, words: "APNs 500, 503")
    case .connection:
      Row(first: nil, base: 1000, cap: 60_000, least: 1000, scope: .connection, words: "connection shut down or lost")
    case .fcm:
      Row(first: nil, base: 10_000, cap: 3_600_000, least: 10_000, scope: .provider, words: "FCM 500, 503")
    case .quota:
      Row(first: nil, base: 60_000, cap: 3_600_000, least: 10_000, scope: .provider, words: "FCM 429")
    case .refreshedToken:
      Row(first: 0, base: 30_000, cap: 3_600_000, least: 0, scope: .connection, words: "provider token expired")
    }
  }
}
