import Wire

/// The longest delay of a shard's loop within the last 15 to 30 seconds.
struct LoopLag {
  private static let period = 15.0

  private var periodBegan = MonotonicTime(nanoseconds: 0)
  private var earlier = 0.0
  private var present = 0.0

  var most: Double { max(earlier, present) }

  /// - Parameter seconds: the delay of something that was due.
  mutating func note(_ seconds: Double, at now: MonotonicTime) {
    if now.seconds(since: periodBegan) >= Self.period {
      periodBegan = now
      (earlier, present) = (present, 0)
    }
    present = max(present, seconds)
  }
}
