import Synchronization

/// Ends all shards of a batch (`worker --until-empty`) together: once each has found the queues empty since any of them was
/// last busy. A shard that ended earlier could leave messages that only it consumes.
package final class BatchEnd: Sendable {
  private struct State {
    var empty: Set<Int> = []
    /// Never reset.
    var isOver = false
  }

  private let shards: Int
  private let state = Mutex(State())

  package init(shards: Int) { self.shards = shards }

  /// Called by each shard about ten times a second, from the shard's thread.
  /// - Returns: true if the shard must end.
  func note(_ shard: Int, isEmpty: Bool) -> Bool {
    state.withLock {
      if isEmpty { $0.empty.insert(shard) } else { $0.empty = [] }
      $0.isOver = $0.isOver || $0.empty.count == shards
      return $0.isOver
    }
  }
}
