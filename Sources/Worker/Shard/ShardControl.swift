import Synchronization
import Wire

/// Requests of other threads to a shard, and its reports to them.
package final class ShardControl: Sendable {
  struct Requests {
    /// Number of stop requests: the first drains, the second ends at once.
    var stops = 0
    var setup: ShardSetup?
  }

  let batch: BatchEnd
  private let requests = Mutex(Requests())
  private let hasRequests = Atomic(false)
  private let latest: Mutex<ShardReport>
  /// Makes the shard's loop turn soon; callable from any thread.
  private let wake: @Sendable () -> Void

  package convenience init(at now: MonotonicTime, wake: @escaping @Sendable () -> Void) {
    self.init(at: now, batch: BatchEnd(shards: 1), wake: wake)
  }

  init(at now: MonotonicTime, batch: BatchEnd, wake: @escaping @Sendable () -> Void) {
    self.batch = batch
    self.wake = wake
    latest = Mutex(ShardReport(at: now))
  }

  /// Callable from any thread.
  func stop() { ask { $0.stops += 1 } }

  /// Callable from any thread.
  func reload(_ setup: ShardSetup) { ask { $0.setup = setup } }

  private func ask(_ change: (inout Requests) -> Void) {
    requests.withLock { change(&$0) }
    hasRequests.store(true, ordering: .releasing)
    wake()
  }

  /// Called by the shard at the end of each turn.
  func take() -> Requests? {
    guard hasRequests.exchange(false, ordering: .acquiringAndReleasing) else { return nil }
    return requests.withLock { pending in
      defer { pending = Requests() }
      return pending
    }
  }

  /// Called by the shard about once a second.
  func report(_ report: ShardReport) { latest.withLock { $0 = report } }

  /// The shard's latest report; callable from any thread.
  package var report: ShardReport { latest.withLock { $0 } }
}
