import Providers
import PushCore

/// Handles a provider's answer for one recipient.
extension Pipeline: PoolHandler {
  package func answered(tag: Int, meaning: consuming ReplyMeaning, name: [UInt8]?, from pool: ProviderPool) {
    let tag = PushTag(rawValue: tag)
    let entry = table[tag.entry]
    entry.ledger.pushReturned()
    observers.note(.answered(meaning, by: pool), entry, tag.recipient)
    if !feedback.take(&meaning, entry, tag.recipient) { broadcasts.holdCampaign(of: entry) }
    switch meaning.reaction {
    case .delivered:
      if entry.collapse.arrival != nil { collapses.noteDelivered(entry, tag.recipient) }
      settle(entry, tag.recipient, .delivered(name: name ?? []))
    case .gone(let code) where entry.recipients[tag.recipient].kind == .device:
      settle(entry, tag.recipient, .failed(code))
    case .drop(let code), .gone(let code), .suspect(let code), .credential(let code):
      fail(entry, tag.recipient, code, reason: meaning.reason, status: meaning.status, attempts: entry.attempt.earlier + 1)
    case .retry(let kind, let code):
      let delay = publisher.delay(of: kind, retryAfter: meaning.retryAfter, entry)
      postpone(entry, tag.recipient, by: delay, code, reason: meaning.reason, status: meaning.status)
    }
  }

  package func notSent(tag: Int, why: NotSentReason, from pool: ProviderPool) {
    let tag = PushTag(rawValue: tag)
    let entry = table[tag.entry]
    entry.ledger.pushReturned()
    entry.recipients[tag.recipient].state = .waiting
    observers.note(.notSent(reason: "\(why)", by: pool), entry, tag.recipient)
    switch why {
    case _ where entry.ledger.isOrphan: perform(.forget, entry)
    case .refused:
      let delay = publisher.delay(of: .connection, entry)
      postpone(entry, tag.recipient, by: delay, .unavailable, reason: "the provider refuses its stream")
    case .unreachable, .unauthorised, .unwanted, .shutDown:
      // A stopping worker sends nothing more, and leaves the rest of a begun list to another worker.
      if dispatcher.isDraining, entry.hasBegun { return handOver(entry, tag.recipient) }
      let push = PoolLanes.Waiting(request: entry.reference, next: tag.recipient, isReturned: true)
      dispatcher.giveBack(push, to: entry.recipients[tag.recipient].pool, entry)
    }
  }

  package func isWanted(tag: Int) -> Bool {
    let tag = PushTag(rawValue: tag)
    let entry = table[tag.entry]
    return !entry.ledger.isOrphan && time.wallClock <= entry.identity.deadline
      && !(entry.collapse.hasWaited && collapses.isReplaced(entry, tag.recipient))
  }

  package func unknown(tag: Int, reason: String, from pool: ProviderPool) {
    let tag = PushTag(rawValue: tag)
    let entry = table[tag.entry]
    entry.ledger.pushReturned()
    observers.note(.unknown(reason: reason, by: pool), entry, tag.recipient)
    let words = "outcome unknown: \(reason)"
    guard entry.route.unknownOutcome == .retry else {
      return fail(entry, tag.recipient, .unknown, reason: words, attempts: entry.attempt.earlier + 1)
    }
    postpone(entry, tag.recipient, by: publisher.delay(of: .connection, entry), .unknown, reason: words)
  }

  /// Dispatches at the end of the turn, or in an extra turn if the capacity comes from the flush after it.
  package func capacityAvailable(in pool: ProviderPool) { time.ensureHooksRun() }

  // MARK: one recipient

  func settle(_ entry: InFlight, _ index: Int, _ state: Recipient.State) {
    switch state {
    case .failed(let code): observers.note(.failed(code), entry, index)
    case .postponed(let until): entry.attempt.longestWait = max(entry.attempt.longestWait, until - time.wallClock)
    default: break
    }
    entry.recipients[index].state = state
    perform(entry.ledger.closed(), entry)
  }

  func fail(_ entry: InFlight, _ index: Int, _ code: PushError, reason: String, status: Int? = nil, attempts: Int? = nil) {
    let letter = DeadLetter(
      error: code, reason: reason, status: status, attempts: attempts ?? entry.attempt.earlier, failedAt: time.wallClock)
    observers.note(.refused(Rejection(code, reason)), entry, index)
    publisher.publish(letter, naming: index, for: entry)
    if !entry.isPage, entry.wantsResult(publisher.results) { entry.attempt.reasons[index] = reason }
    settle(entry, index, .failed(code))
  }

  /// Puts the recipient on the ladder, or ends it with a dead letter if its time or attempts are used up.
  func postpone(_ entry: InFlight, _ index: Int, by delay: Int64, _ code: PushError, reason: String, status: Int? = nil) {
    guard let until = publisher.nextAttempt(of: entry, after: delay) else {
      return fail(entry, index, code, reason: reason, status: status, attempts: entry.attempt.earlier + 1)
    }
    entry.attempt.lastFailure = (code, reason, status)
    entry.attempt.hasAsked = true
    observers.note(.postponed(code, delay), entry, index)
    settle(entry, index, .postponed(until: until))
  }
}
