import Delivery
import Synchronization
import Wire

/// The shards' state, shared between their threads and the main thread: controls, ends and counters.
final class ShardBoard: Sendable {
  private struct State {
    /// The controls of shards that have started, by number.
    var controls: [Int: ShardControl] = [:]
    var stops = 0
    var setup: ShardSetup?
    var ended: Set<Int> = []
    var end = Fleet.End.done
    var counters = Counters()
  }

  let shards: Int
  private let began: MonotonicTime
  private let state = Mutex(State())

  init(shards: Int, at began: MonotonicTime) {
    self.shards = shards
    self.began = began
  }

  func register(_ control: ShardControl, as number: Int) {
    let (stops, setup) = state.withLock {
      $0.controls[number] = control
      return ($0.stops, $0.setup)
    }
    if let setup { control.reload(setup) }
    for _ in 0..<stops { control.stop() }
  }

  func stopAll() {
    let controls = state.withLock {
      $0.stops += 1
      return $0.controls.values
    }
    for control in controls { control.stop() }
  }

  func reloadAll(_ setup: ShardSetup) {
    let controls = state.withLock {
      $0.setup = setup
      return $0.controls.values
    }
    for control in controls { control.reload(setup) }
  }

  /// The latest reports of the shards that have started.
  var reports: [ShardReport] { state.withLock { $0.controls }.sorted { $0.key < $1.key }.map(\.value.report) }

  /// True if all shards' loops have started.
  var hasBegun: Bool { state.withLock { $0.controls.count == shards } }

  func health(at now: MonotonicTime) -> FleetHealth {
    let (controls, ended, stops) = state.withLock { ($0.controls, $0.ended, $0.stops) }
    var health = FleetHealth(isDraining: stops > 0)
    for number in 0..<shards {
      let report = controls[number]?.report ?? ShardReport(at: began)
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

  var hasEnded: Bool { state.withLock { $0.ended.count == shards } }
  var outcome: (Fleet.End, Counters) { state.withLock { ($0.end, $0.counters) } }
}
