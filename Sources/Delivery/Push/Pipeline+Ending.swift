import AMQP
import Broker
import DeviceRegistry
import PushCore

/// Ended: what follows from a request is decided, published and confirmed, and then the request is acknowledged.
extension Pipeline: OutboxOwner {
  // MARK: what the ledger calls for

  /// A publication was confirmed, or the registry has what it is owed.
  func consequenceEnded(of entry: InFlight) { perform(entry.ledger.met(), entry) }

  /// Does what a request's ledger calls for: nothing else acknowledges a request.
  func perform(_ step: Ledger.Step, _ entry: InFlight) {
    switch step {
    case .nothing: return
    case .conclude: conclude(entry) { publishConsequences(of: entry) }
    case .report: handle(.reportDue, entry)
    case .putOff:
      if entry.broadcast.work?.beginsAgain == true {
        handle(.beginsAgain, entry)
      } else {
        publisher.publishRetry(of: entry, at: entry.attempt.copyDue)
      }
    case .acknowledge: acknowledge(entry)
    case .forget: forgetIfUnknowable(entry)
    case .resume:
      switch entry.broadcast.work?.stage {
      case nil, .sending: passGates(entry)
      // A page's copy for the ladder was taken back before it left, and the page has come back here: its ticket says what is left.
      case .ending: conclude(entry) { putOffWhenSafe(entry) }
      case .asking, .chaining: return
      }
    }
  }

  /// What follows from the request is handed over here; it is acknowledged when all of it is confirmed.
  func conclude(_ entry: InFlight, _ handOver: () -> Void) {
    observers.figures.enterAccount(entry)
    entry.ledger.conclude()
    handOver()
    perform(entry.ledger.concluded(), entry)
  }

  /// For a loop over the request's recipients: the request doesn't end, and its place is no other one's, before the loop is over.
  package func keepingOpen(_ entry: InFlight, _ loop: () -> Void) {
    entry.ledger.opened()
    loop()
    perform(entry.ledger.closed(), entry)
  }

  /// What follows once every recipient has ended or waits: the ladder, or the result.
  private func publishConsequences(of entry: InFlight) {
    if entry.isPage { return handle(.devicesEnded, entry) }
    if entry.earliestRetry != nil {
      putOffWhenSafe(entry)
    } else if entry.wantsResult(publisher.results) {
      publisher.publishResult(of: entry, targets: entry.resultTargets, report: entry.attempt.dryRun)
    }
  }

  // MARK: never admitted, or too late

  /// Never admitted: a dead letter as it came, and the same word to whoever waits.
  func reject(_ entry: InFlight, _ rejection: Rejection) {
    observers.note(.refused(rejection), entry)
    conclude(entry) {
      publisher.publish(rejection, for: entry)
      if entry.isWholePage { broadcasts.pageRejected(entry, rejection) }
    }
  }

  /// Too late: not sent to whom it has not reached.
  func expire(_ entry: InFlight) {
    observers.note(.late, entry)
    conclude(entry) {
      publisher.expireAll(of: entry)
      if let page = entry.broadcast.page, let left = page.pending {
        handle(.expired(page, left), entry)
      } else {
        publisher.publishResult(of: entry, targets: entry.recipients.isEmpty ? [.failed(.expired)] : entry.resultTargets)
      }
    }
  }

  func expire(_ entry: InFlight, _ index: Int) {
    publisher.expire(entry, index)
    perform(entry.ledger.closed(), entry)
  }

  // MARK: put off

  /// While the registry can't answer, sends with provider tokens go on; what needs it goes to the ladder.
  func refuseOrPutOff(_ entry: InFlight, _ error: RegistryError) {
    guard !entry.ledger.isConcluded else { return }
    // Nothing was sent since it was delivered here, and the broker delivers it again: a copy would be one too many.
    if entry.ledger.isOrphan {
      table.forget(entry)
      return forgetIfUnknowable(entry)
    }
    if case .refused = error { return reject(entry, Rejection(.invalidParameters, "\(error)")) }
    putOff(entry, by: OutcomePublisher.registryDelay, "\(error)")
  }

  /// To the ladder as it came, at no attempt's cost. What is too late, or for now or never, ends instead; but a campaign's page must
  /// be accounted for, and a request that may have its campaign already asks for it when the registry is back.
  func putOff(_ entry: InFlight, by delay: Int64, _ reason: String) {
    entry.forgetUnsentAudience()
    let isPage = entry.isOfCampaign
    let mayHaveCampaign = entry.broadcast.work != nil && !entry.isPage && entry.isNamed
    let now = time.wallClock
    var delay = delay
    if !isPage, now > entry.identity.deadline {
      guard mayHaveCampaign else { return expire(entry) }
      guard let longer = broadcasts.delayOfDoubt(since: entry.identity.deadline) else {
        let words = "its time to live passed while the registry was unreachable: whether it had been begun is not known"
        return reject(entry, Rejection(.unavailable, words))
      }
      delay = longer
    }
    if !isPage, entry.attempt.isLast, !(mayHaveCampaign && entry.delivery.redelivered) {
      return reject(entry, Rejection(.unavailable, reason))
    }
    entry.broadcast.work?.ends()
    observers.note(.parked, entry)
    if entry.attempt.lastFailure == nil { entry.attempt.lastFailure = (.unavailable, reason, nil) }
    entry.attempt.longestWait = max(entry.attempt.longestWait, delay)
    conclude(entry) { putOffWhenSafe(entry, until: now + delay) }
  }

  /// To the ladder or the hold queue, as soon as what has ended is safe.
  /// - Parameter due: unix milliseconds before which nothing is to be tried; where it isn't said, the earliest of its recipients' times.
  func putOffWhenSafe(_ entry: InFlight, until due: Int64? = nil) {
    if let due = due ?? entry.earliestRetry {
      entry.attempt.copyDue = due
    } else {
      entry.attempt.copyDue = time.wallClock + OutcomePublisher.registryDelay
      entry.attempt.longestWait = max(entry.attempt.longestWait, OutcomePublisher.registryDelay)
    }
    let step = entry.ledger.owesCopy()
    // What comes meanwhile is newer.
    if step == .nothing, entry.isReplaceable { collapses.noteWaitingHere(entry) }
    perform(step, entry)
  }

  // MARK: confirmed and acknowledged

  package func body(of publication: Publication) -> [UInt8] {
    guard let recipient = publication.naming, let entry = table.owner(of: publication) else { return publication.body }
    return publisher.deadLetterBody(entry, recipient)
  }

  package func publicationConfirmed(_ publication: Publication) {
    guard let entry = table.owner(of: publication) else { return }
    publisher.left(publication, entry, isConfirmed: true)
    if publication.kind == .page { handle(.pageConfirmed, entry) } else { consequenceEnded(of: entry) }
  }

  package func replyReachedNobody() { observers.figures.counters.repliesUnroutable += 1 }
  package func outboxDrained() { dispatchAll() }

  private func acknowledge(_ entry: InFlight) {
    observers.note(.acknowledged(pools: dispatcher.pools), entry)
    if !entry.ledger.isOrphan {
      backpressure.acknowledge(entry.delivery.token, entry.source.hold)
      for (token, hold) in entry.source.repeats { backpressure.acknowledge(token, hold) }
    }
    if entry.broadcast.work != nil { broadcasts.noteResultPublished(entry) }
    if !entry.ledger.isOrphan { observers.figures.closeAccount(entry, entry.attempt.isPutOff ? .putOff : .settled) }
    table.acknowledged(entry, at: time.wallClock)
    release(entry)
  }

  func release(_ entry: InFlight) {
    observers.figures.closeAccount(entry, .givenBack)
    backpressure.released(entry)
    table.remove(entry)
  }
}

/// Requests to audiences, and pages.
extension Pipeline {
  func handle(_ event: AudienceEvent, _ entry: InFlight) {
    carryOut(broadcasts.handle(event, entry, isDraining: dispatcher.isDraining), entry)
  }

  func carryOut(_ steps: [AudienceStep], _ entry: InFlight) { for step in steps { step.carryOut(entry, in: self) } }
}
