import Wire

/// How many shards take requests, of all workers, as the broker counts them: each consumes the normal pages' queue once.
///
/// A shard that is gone counts for a while: where many lose the broker at once and come back one by one, none is to take itself for the only one.
struct FleetSize {
  /// Seconds.
  static let memory = 30.0
  /// Seconds between two questions.
  static let interval = 3.0

  private var counts: [(at: MonotonicTime, shards: Int)] = []

  /// - Parameter consumers: of the queue, this shard among them.
  /// - Returns: the most in the time that is remembered.
  mutating func counted(_ consumers: Int, at now: MonotonicTime) -> Int {
    counts.removeAll { now.seconds(since: $0.at) >= Self.memory || $0.shards <= consumers }
    counts.append((now, consumers))
    return counts[0].shards
  }
}
