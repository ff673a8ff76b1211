import Synchronization

/// Where the shards of a process meet its main thread: who runs, how each ended, what each did.
final class ShardBoard: Sendable {
  private struct State {
    var running: [ShardControl] = []
    var stops = 0
    var ended = 0
    var end = Fleet.End.done
    var counters = Counters()
  }

  private let state = Mutex(State())

  /// A shard's loop is about to run.
  func register(_ control: ShardControl) {
    let stops = state.withLock {
      $0.running.append(control)
      return $0.stops
    }
    for _ in 0..<stops { control.stop() }
  }

  func stopAll() {
    let running = state.withLock {
      $0.stops += 1
      return $0.running
    }
    for control in running { control.stop() }
  }

  func reloadAll(_ configuration: Configuration) {
    for control in state.withLock({ $0.running }) { control.reload(configuration) }
  }

  /// The latest report of each shard that has begun.
  var reports: [ShardReport] { state.withLock { $0.running }.map(\.report) }

  /// A shard has ended; one that ended badly takes the others along.
  func note(_ end: Fleet.End, _ counters: Counters) {
    state.withLock {
      $0.ended += 1
      $0.counters += counters
      if case .done = $0.end { $0.end = end }
    }
    if case .done = end { return }
    stopAll()
  }

  var ended: Int { state.withLock { $0.ended } }
  var outcome: (Fleet.End, Counters) { state.withLock { ($0.end, $0.counters) } }
}
