import Delivery
import Synchronization
import Wire

/// Where the shards of a process meet its main thread: who runs, how each ended, what each did.
final class ShardBoard: Sendable {
  private struct State {
    /// The shards whose loops run or have run, by number.
    var controls: [Int: ShardControl] = [:]
    var stops = 0
    /// What the shards were last asked to take over.
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

  /// A shard's loop is about to run.
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

  /// The latest report of each shard that has begun.
  var reports: [ShardReport] { state.withLock { $0.controls }.sorted { $0.key < $1.key }.map(\.value.report) }

  /// Every shard's loop runs or has run.
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

  /// A shard has ended; one that ended badly takes the others along.
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
