import Wire

/// The most that a shard's loop was late for what was due, within the last half minute or so.
struct LoopLag {
  /// Seconds.
  private static let period = 15.0

  private var periodBegan = MonotonicTime(nanoseconds: 0)
  private var earlier = 0.0
  private var present = 0.0

  /// Seconds.
  var most: Double { max(earlier, present) }

  /// - Parameter seconds: how late something was that was due at a time.
  mutating func note(_ seconds: Double, at now: MonotonicTime) {
    if now.seconds(since: periodBegan) >= Self.period {
      periodBegan = now
      (earlier, present) = (present, 0)
    }
    present = max(present, seconds)
  }
}
