import Wire

/// The fleet's number of consuming shards, counted as the consumers of a queue of which each shard has one.
/// A lost shard still counts for a while: if many lose the broker at once and return one by one, no shard must believe that it
/// is alone.
struct FleetSize {
  static let memory = 30.0
  /// Seconds between two counts.
  static let interval = 3.0

  private var counts: [(at: MonotonicTime, shards: Int)] = []

  /// - Parameter consumers: the queue's consumers, including this shard.
  /// - Returns: the highest count within the remembered time.
  mutating func counted(_ consumers: Int, at now: MonotonicTime) -> Int {
    counts.removeAll { now.seconds(since: $0.at) >= Self.memory || $0.shards <= consumers }
    counts.append((now, consumers))
    return counts[0].shards
  }
}
