import Providers
import PushCore

/// What has to wait goes to the ladder at no attempt's cost.
extension Pipeline {
  func park(_ entry: InFlight, _ index: Int, _ delay: Int64, _ reason: String) {
    guard case .waiting = entry.recipients[index].state else { return }
    guard !entry.attempt.isLast else {
      return fail(entry, index, dispatcher.pools[entry.recipients[index].pool].account.refusalCode, reason: reason)
    }
    observers.note(.parked, entry, index)
    if entry.attempt.lastFailure == nil { entry.attempt.lastFailure = (.unavailable, reason, nil) }
    settle(entry, index, .postponed(until: time.wallClock + delay))
  }

  /// A stopping worker leaves a list that it has begun to the next one, with what is settled; what it has not begun, it leaves
  /// to the broker.
  func handOverBegunLists() {
    for entry in table.inUse where !entry.ledger.isConcluded && entry.hasBegun {
      keepingOpen(entry) {
        for index in entry.recipients.indices {
          if case .waiting = entry.recipients[index].state { handOver(entry, index) }
        }
      }
    }
  }

  /// One target of such a list. What is for now or never doesn't wait for another worker.
  func handOver(_ entry: InFlight, _ index: Int) {
    if entry.attempt.isLast { return fail(entry, index, .unavailable, reason: "the worker was stopped before this was sent") }
    settle(entry, index, .postponed(until: time.wallClock))
  }
}
