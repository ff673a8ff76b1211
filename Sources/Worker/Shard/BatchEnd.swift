import Synchronization

/// When the shards of a batch (`worker --until-empty`) end: together, once each of them has found everything empty since any of them was
/// last busy. One that ended before could leave what only it consumes to nobody.
final class BatchEnd: Sendable {
  private struct State {
    var empty: Set<Int> = []
    /// Stays.
    var isOver = false
  }

  private let shards: Int
  private let state = Mutex(State())

  init(shards: Int) { self.shards = shards }

  /// By each shard about ten times a second, from its thread.
  /// - Returns: true when it is to end.
  func note(_ shard: Int, isEmpty: Bool) -> Bool {
    state.withLock {
      if isEmpty { $0.empty.insert(shard) } else { $0.empty = [] }
      $0.isOver = $0.isOver || $0.empty.count == shards
      return $0.isOver
    }
  }
}
