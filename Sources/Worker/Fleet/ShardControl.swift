import Reactor
import Synchronization

/// What other threads may ask of a shard, and what it tells them.
final class ShardControl: Sendable {
  struct Requests {
    /// How often stopping was asked for: once drains, twice ends at once.
    var stops = 0
  }

  private let requests = Mutex(Requests())
  private let hasRequests = Atomic(false)
  private let latest = Mutex(Counters())
  private let mailbox: Mailbox

  init(mailbox: Mailbox) { self.mailbox = mailbox }

  /// From any thread.
  func stop() {
    requests.withLock { $0.stops += 1 }
    hasRequests.store(true, ordering: .releasing)
    mailbox.post { _ in }
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
  func report(_ counters: Counters) { latest.withLock { $0 = counters } }

  /// From any thread: the shard's latest report.
  var counters: Counters { latest.withLock { $0 } }
}
