import Wire

/// When a shard consumes the registry's changes, and when it gives those back that the registry doesn't take. Seconds.
///
/// The queue has one active consumer at a time: whoever can't apply changes must not keep them from those who can. But every return of a
/// change counts towards its queue's delivery limit, so a shard whose registry is known to be down takes none, and one that learns it with
/// changes in hand waits the longer with them the more often they have been returned: with 25 minutes a return, the limit of 50 is most of
/// a day away, and RabbitMQ's own time-out of 30 minutes is never reached.
package struct ChangeThrottle {
  private static let grace = 5.0
  private static let firstHold = 60.0
  private static let longestHold = 1_500.0
  private static let firstRest = 10.0
  private static let longestRest = 600.0

  private var isRegistryUsable = false
  private var unusableSince = MonotonicTime(nanoseconds: 0)
  private var restsUntil = MonotonicTime(nanoseconds: 0)
  private var rests = 0

  mutating func registryChanged(isUsable: Bool, at now: MonotonicTime) {
    if isRegistryUsable, !isUsable { unusableSince = now }
    isRegistryUsable = isUsable
  }

  /// The registry has taken a change: the next rest is short again.
  mutating func progressed() { rests = 0 }

  /// Whether to begin to consume.
  func begins(at now: MonotonicTime) -> Bool { isRegistryUsable && now >= restsUntil }

  /// Whether to stop with nothing in hand, which costs nothing.
  func leaves(at now: MonotonicTime) -> Bool { !isRegistryUsable && now.seconds(since: unusableSince) >= Self.grace }

  /// Whether to give back what the registry hasn't taken since `stuckSince`.
  /// - Parameter returns: how often the oldest of it has been returned before.
  package static func givesBack(stuckSince: MonotonicTime, returns: Int64, at now: MonotonicTime) -> Bool {
    now.seconds(since: stuckSince) >= hold(returns)
  }

  private static func hold(_ returns: Int64) -> Double {
    min(firstHold * Double(1 << max(0, min(returns, 10))), longestHold)
  }

  /// The changes in hand have been returned: another worker is to have them, here they come back after a rest.
  mutating func gaveBack(at now: MonotonicTime) {
    restsUntil = now.advanced(bySeconds: min(Self.firstRest * Double(1 << min(rests, 10)), Self.longestRest))
    rests += 1
  }
}
