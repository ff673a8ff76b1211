import Delivery
import Synchronization
import Wire

/// The shards' state, shared between their threads and the main thread: controls, ends and counters.
final class ShardBoard: Sendable {
  private struct State {
    var isStopping = false
    var isReloadRefused = false
    var ended: Set<Int> = []
    var end = Fleet.End.done
    var counters = Counters()
  }

  /// By number.
  let controls: [ShardControl]
  private let state = Mutex(State())

  init(shards: Int, at began: MonotonicTime) {
    let batch = BatchEnd(shards: shards)
    controls = (0..<shards).map { _ in ShardControl(at: began, batch: batch) }
  }

  func stopAll() {
    state.withLock { $0.isStopping = true }
    for control in controls { control.stop() }
  }

  /// - Parameter setup: nil if the new configuration is refused.
  func reloadAll(_ setup: ShardSetup?) {
    state.withLock { $0.isReloadRefused = setup == nil }
    if let setup { for control in controls { control.reload(setup) } }
  }

  /// The latest reports of the shards that have started.
  var reports: [ShardReport] { controls.filter(\.hasBegun).map(\.report) }

  /// True if all shards' loops have started.
  var hasBegun: Bool { controls.allSatisfy(\.hasBegun) }

  func health(at now: MonotonicTime) -> FleetHealth {
    let (ended, isStopping, isReloadRefused) = state.withLock { ($0.ended, $0.isStopping, $0.isReloadRefused) }
    var health = FleetHealth(isDraining: isStopping, isReloadRefused: isReloadRefused)
    for (number, report) in controls.map(\.report).enumerated() {
      if !report.isReady || ended.contains(number) { health.unready.append(number) }
      if report.isDraining { health.isDraining = true }
      if !ended.contains(number), now.seconds(since: report.at) > FleetHealth.silence { health.hanging.append(number) }
    }
    return health
  }

  /// Notes a shard's end; after a failure the other shards stop, too.
  func noteEnd(of number: Int, _ outcome: (end: Fleet.End, counters: Counters)) {
    state.withLock {
      $0.ended.insert(number)
      $0.counters += outcome.counters
      if case .done = $0.end { $0.end = outcome.end }
    }
    if case .done = outcome.end { return }
    stopAll()
  }

  var hasEnded: Bool { state.withLock { $0.ended.count == controls.count } }
  var outcome: (Fleet.End, Counters) { state.withLock { ($0.end, $0.counters) } }
}
