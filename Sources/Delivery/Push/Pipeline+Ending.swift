import AMQP
import Broker
import DeviceRegistry
import PushCore

/// Publishes the consequences of a request, then acknowledges it once they are confirmed.
extension Pipeline: OutboxOwner {
  // MARK: the ledger's steps

  /// The broker has confirmed a publication, or the registry has stored a note.
  func consequenceEnded(of entry: InFlight) { perform(entry.ledger.met(), entry) }

  /// Takes the step that a request's ledger requires. Only this acknowledges requests.
  func perform(_ step: Ledger.Step, _ entry: InFlight) {
    switch step {
    case .nothing: return
    case .conclude: conclude(entry) { publishConsequences(of: entry) }
    case .report: carryOut(broadcasts.reportPage(entry), entry)
    case .putOff:
      if entry.broadcast.work?.beginsAgain == true {
        carryOut(broadcasts.beginAgain(entry), entry)
      } else {
        publisher.publishRetry(of: entry, at: entry.attempt.copyDue)
      }
    case .acknowledge: acknowledge(entry)
    case .forget: forgetIfUnknowable(entry)
    case .resume:
      switch entry.broadcast.work?.stage {
      case nil where entry.recipients.isEmpty: start(entry)
      case nil, .sending:
        passGates(entry)
        if dispatcher.isDraining { handOverBegunLists() }
      // The copy for the ladder was withdrawn unsent, and the page was redelivered here. Its ticket has the remaining devices.
      case .ending: conclude(entry) { putOffWhenSafe(entry) }
      case .asking, .chaining: return
      }
    }
  }

  /// Hands over the consequences. The request is acknowledged when all of them are confirmed.
  func conclude(_ entry: InFlight, _ handOver: () -> Void) {
    observers.figures.enterAccount(entry)
    entry.ledger.conclude()
    handOver()
    perform(entry.ledger.concluded(), entry)
  }

  /// Runs a loop over the request's recipients. The request doesn't end, and its place isn't reused, before the loop is over.
  func keepingOpen(_ entry: InFlight, _ loop: () -> Void) {
    entry.ledger.opened()
    loop()
    perform(entry.ledger.closed(), entry)
  }

  /// Publishes the copy for the ladder, or the result, once every recipient has ended or waits.
  private func publishConsequences(of entry: InFlight) {
    if entry.isPage { return carryOut(broadcasts.devicesEnded(entry), entry) }
    if entry.earliestRetry != nil {
      putOffWhenSafe(entry)
    } else if entry.wantsResult(publisher.results) {
      publisher.publishResult(of: entry, targets: entry.resultTargets, report: entry.attempt.dryRun)
    }
  }

  // MARK: never admitted, or too late

  /// Ends a request that was not admitted: a dead letter, and a result if one is wanted.
  func reject(_ entry: InFlight, _ rejection: Rejection) {
    observers.note(.refused(rejection), entry)
    conclude(entry) {
      publisher.publish(rejection, for: entry)
      if entry.isWholePage { broadcasts.pageRejected(entry, rejection) }
    }
  }

  /// Ends a request after its deadline, without sending to the remaining recipients.
  func expire(_ entry: InFlight) {
    observers.note(.late, entry)
    conclude(entry) {
      publisher.expireAll(of: entry)
      if let page = entry.broadcast.page, let left = page.pending {
        carryOut(broadcasts.expired(entry, page, left), entry)
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

  /// The registry can't answer, so the request goes to the ladder. Requests with provider tokens don't need it and go on.
  func refuseOrPutOff(_ entry: InFlight, _ error: RegistryError) {
    guard !entry.ledger.isConcluded else { return }
    // The broker delivers the request again, and nothing was sent since: a copy would be a duplicate.
    if entry.ledger.isOrphan {
      table.forget(entry)
      return forgetIfUnknowable(entry)
    }
    if case .refused = error { return reject(entry, Rejection(.invalidParameters, "\(error)")) }
    putOff(entry, by: OutcomePublisher.registryDelay, "\(error)")
  }

  /// Puts the unchanged request on the ladder without counting an attempt. A request after its deadline, or one for now or
  /// never, ends instead. Exceptions are a campaign's page, which must be reported, and a request that may have a campaign: it
  /// asks the registry later.
  func putOff(_ entry: InFlight, by delay: Int64, _ reason: String) {
    entry.forgetUnsentAudience()
    let isPage = entry.isOfCampaign
    let mayHaveCampaign = entry.broadcast.work != nil && !entry.isPage && entry.isNamed
    let now = time.wallClock
    var delay = delay
    if !isPage, now > entry.identity.deadline {
      guard mayHaveCampaign else { return expire(entry) }
      guard let longer = broadcasts.delayOfDoubt(since: entry.identity.deadline) else {
        let words = "its time to live passed while the registry was unreachable: it is not known whether it had been begun"
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

  /// Puts the request on the ladder or into the hold queue once the consequences of ended recipients are confirmed.
  /// - Parameter due: unix milliseconds of the next attempt; nil for the earliest time of its recipients.
  func putOffWhenSafe(_ entry: InFlight, until due: Int64? = nil) {
    if let due = due ?? entry.earliestRetry {
      entry.attempt.copyDue = due
    } else {
      entry.attempt.copyDue = time.wallClock + OutcomePublisher.registryDelay
      entry.attempt.longestWait = max(entry.attempt.longestWait, OutcomePublisher.registryDelay)
    }
    let step = entry.ledger.owes(.putOff)
    // Requests that arrive meanwhile are newer.
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
    if publication.kind == .page { carryOut(broadcasts.pageConfirmed(entry), entry) } else { consequenceEnded(of: entry) }
  }

  package func replyReachedNobody() { observers.figures.counters.repliesUnroutable += 1 }
  package func outboxDrained() { dispatchAll() }

  private func acknowledge(_ entry: InFlight) {
    // A stopping worker waits for the redelivery, which it acknowledges.
    if entry.ledger.isOrphan, dispatcher.isDraining, entry.identity.fingerprint != nil, entry.broadcast.work == nil { return }
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
    backpressure.bodies.remove(entry.delivery.weight, keptFor: entry.source.keptFor)
    table.remove(entry)
  }
}

extension Pipeline {
  func carryOut(_ steps: [AudienceStep], _ entry: InFlight) { for step in steps { step.carryOut(entry, in: self) } }
}
