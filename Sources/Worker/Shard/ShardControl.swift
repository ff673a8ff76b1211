import Synchronization
import Wire

/// Requests of other threads to a shard, and its reports to them.
package final class ShardControl: Sendable {
  private struct State {
    /// Number of stop requests: the first drains, the second ends at once.
    var stops = 0
    var setup: ShardSetup?
    /// Makes the shard's loop turn soon; callable from any thread. Nil before the loop has started.
    var wake: (@Sendable () -> Void)?
    var report: ShardReport
  }

  let batch: BatchEnd
  private let state: Mutex<State>
  private let hasRequests = Atomic(false)

  package init(at now: MonotonicTime, batch: BatchEnd = BatchEnd(shards: 1)) {
    self.batch = batch
    state = Mutex(State(report: ShardReport(at: now)))
  }

  /// The shard's loop has started. Earlier requests are waiting for it.
  func begin(wake: @escaping @Sendable () -> Void) {
    state.withLock { $0.wake = wake }
    if hasRequests.load(ordering: .acquiring) { wake() }
  }

  var hasBegun: Bool { state.withLock { $0.wake != nil } }

  /// Callable from any thread.
  func stop() { ask { $0.stops += 1 } }

  /// Callable from any thread.
  func reload(_ setup: ShardSetup) { ask { $0.setup = setup } }

  private func ask(_ change: (inout State) -> Void) {
    let wake = state.withLock {
      change(&$0)
      hasRequests.store(true, ordering: .releasing)
      return $0.wake
    }
    wake?()
  }

  /// Called by the shard at the end of each turn. Nil if there are no requests.
  func take() -> (setup: ShardSetup?, stops: Int)? {
    guard hasRequests.exchange(false, ordering: .acquiringAndReleasing) else { return nil }
    return state.withLock { state in
      defer { (state.setup, state.stops) = (nil, 0) }
      return (state.setup, state.stops)
    }
  }

  /// Called by the shard about once a second.
  func report(_ report: ShardReport) { state.withLock { $0.report = report } }

  /// The shard's latest report; callable from any thread.
  package var report: ShardReport { state.withLock { $0.report } }
}
