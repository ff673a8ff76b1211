import Providers
import PushCore

/// What waits for a provider that can't be reached goes to the ladder, so that it neither holds up other applications nor stays
/// unacknowledged until the broker's consumer timeout; it costs no attempt.
extension Pipeline {
  /// To be called about once a second.
  func parkUnreachable() {
    for index in pools.indices {
      let reason = pools[index].pool.state.trouble
      let delay = pools[index].outage.note(isOutOfReach: reason != nil, at: time.now)
      if let reason, let delay { park(index, because: reason, for: delay) }
    }
  }

  func park(_ pool: Int, because reason: String, for delay: Int64) {
    while let next = pools[pool].popFirst() {
      switch next {
      case .returned(let push):
        if let entry = waitingEntry(push) { park(entry, push.recipient, delay, reason) }
      case .waiting(let waiting, _):
        let entry = table[waiting.entry]
        guard entry.generation == waiting.generation, !entry.ledger.isOrphan else { continue }
        keepingOpen(entry) {
          for recipient in waiting.next..<entry.recipients.count where entry.recipients[recipient].pool == pool {
            park(entry, recipient, delay, reason)
          }
        }
      }
    }
  }

  func park(_ entry: InFlight, _ index: Int, _ delay: Int64, _ reason: String) {
    guard case .waiting = entry.recipients[index].state else { return }
    guard !entry.isNowOrNever else {
      return fail(entry, index, pools[entry.recipients[index].pool].pool.refusalCode, reason: reason)
    }
    counters.parked += 1
    if entry.lastFailure == nil { entry.lastFailure = (.unavailable, reason, nil) }
    settle(entry, index, .postponed(until: time.wallClock + delay))
  }

  /// A stopping worker leaves a list that it has begun to the next one, with what is settled; what it has not begun, it leaves
  /// to the broker.
  func handOverBegunLists() {
    for entry in table.entries {
      guard entry.isHeld, !entry.ledger.isOrphan, !entry.ledger.isConcluded, entry.hasBegun else { continue }
      keepingOpen(entry) {
        for index in entry.recipients.indices {
          if case .waiting = entry.recipients[index].state { handOver(entry, index) }
        }
      }
    }
  }

  /// One target of such a list. What is for now or never doesn't wait for another worker.
  func handOver(_ entry: InFlight, _ index: Int) {
    if entry.isNowOrNever { return fail(entry, index, .unavailable, reason: "the worker was stopped before this was sent") }
    settle(entry, index, .postponed(until: time.wallClock))
  }
}

extension PoolState {
  /// Why nothing can be sent at present, when the reason is not just that a connection is being made.
  fileprivate var trouble: String? {
    switch self {
    case .paused(let reason), .backingOff(let reason), .stopped(let reason): reason
    case .idle, .connecting, .probing, .open, .closing, .closed: nil
    }
  }
}
