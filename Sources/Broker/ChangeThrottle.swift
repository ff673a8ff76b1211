import Wire

/// Decides when a shard consumes the registry's changes, and when it returns changes that the registry doesn't accept. Seconds.
///
/// The queue has one active consumer at a time, so a shard that can't apply changes must leave them to others. But each return
/// counts towards the queue's delivery limit. Therefore a shard whose registry is known to be down consumes nothing. A shard
/// that has changes in hand keeps them longer the more often they were returned, up to 25 minutes. At that rate the limit of 50
/// returns is most of a day away, and RabbitMQ's timeout of 30 minutes is never reached.
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

  /// The registry accepted a change, so the next rest is short again.
  mutating func progressed() { rests = 0 }

  func begins(at now: MonotonicTime) -> Bool { isRegistryUsable && now >= restsUntil }

  /// True if consumption should end. Only for a shard with nothing in hand, so nothing is returned.
  func leaves(at now: MonotonicTime) -> Bool { !isRegistryUsable && now.seconds(since: unusableSince) >= Self.grace }

  /// True if changes that the registry hasn't accepted since `stuckSince` should be returned.
  /// - Parameter returns: how often the oldest change has been returned before.
  package static func givesBack(stuckSince: MonotonicTime, returns: Int64, at now: MonotonicTime) -> Bool {
    now.seconds(since: stuckSince) >= hold(returns)
  }

  private static func hold(_ returns: Int64) -> Double {
    min(firstHold * Double(1 << max(0, min(returns, 10))), longestHold)
  }

  /// The changes in hand were returned to the queue. This shard rests before it consumes again.
  mutating func gaveBack(at now: MonotonicTime) {
    restsUntil = now.advanced(bySeconds: min(Self.firstRest * Double(1 << min(rests, 10)), Self.longestRest))
    rests += 1
  }
}
