import Synchronization
import Wire

/// What other threads may ask of a shard, and what it reports to them.
package final class ShardControl: Sendable {
  struct Requests {
    /// How often stopping was asked for: once drains, twice ends at once.
    var stops = 0
    /// Credentials and settings to take over.
    var setup: ShardSetup?
  }

  /// Shared by the shards of a process.
  let batch: BatchEnd
  private let requests = Mutex(Requests())
  private let hasRequests = Atomic(false)
  private let latest: Mutex<ShardReport>
  /// Has the shard take what is asked of it in a turn soon; from any thread.
  private let wake: @Sendable () -> Void

  package convenience init(at now: MonotonicTime, wake: @escaping @Sendable () -> Void) {
    self.init(at: now, batch: BatchEnd(shards: 1), wake: wake)
  }

  init(at now: MonotonicTime, batch: BatchEnd, wake: @escaping @Sendable () -> Void) {
    self.batch = batch
    self.wake = wake
    latest = Mutex(ShardReport(at: now))
  }

  /// From any thread.
  func stop() { ask { $0.stops += 1 } }

  /// From any thread: credentials have changed.
  func reload(_ setup: ShardSetup) { ask { $0.setup = setup } }

  private func ask(_ change: (inout Requests) -> Void) {
    requests.withLock { change(&$0) }
    hasRequests.store(true, ordering: .releasing)
    wake()
  }

  /// By the shard, at the end of each turn.
  func take() -> Requests? {
    guard hasRequests.exchange(false, ordering: .acquiringAndReleasing) else { return nil }
    return requests.withLock { pending in
      defer { pending = Requests() }
      return pending
    }
  }

  /// By the shard, about once a second.
  func report(_ report: ShardReport) { latest.withLock { $0 = report } }

  /// From any thread: the shard's latest report.
  package var report: ShardReport { latest.withLock { $0 } }
}
