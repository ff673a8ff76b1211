import Wire

/// The fleet's number of consuming shards, counted as the consumers of a queue of which each shard has one.
/// A lost shard still counts for a while: if many lose the broker at once and return one by one, no shard must believe that it
/// is alone.
struct FleetSize {
  static let memory = 30.0
  /// Seconds between two counts.
  static let interval = 3.0

  /// Seconds after which a shard without any count assumes that its worker is alone.
  static let patience = 5.0

  private var counts: [(at: MonotonicTime, shards: Int)] = []
  private var askedAt: MonotonicTime?

  /// - Parameters:
  ///   - consumers: the queue's consumers, including this shard; nil if the broker didn't tell.
  ///   - own: the worker's shards.
  /// - Returns: the highest count within the remembered time; nil if nothing new is known.
  mutating func counted(_ consumers: Int?, orElse own: Int, at now: MonotonicTime) -> Int? {
    let asked = askedAt ?? now
    askedAt = asked
    guard let consumers else { return counts.isEmpty && now.seconds(since: asked) > Self.patience ? own : nil }
    counts.removeAll { now.seconds(since: $0.at) >= Self.memory || $0.shards <= consumers }
    counts.append((now, consumers))
    return counts[0].shards
  }
}
