import AMQP
import Broker

/// What follows from a request is published and confirmed, and then the request is acknowledged.
extension Pipeline {
  func publish(_ publication: Publication) {
    guard let entry = owner(of: publication) else { return }
    var publication = publication
    publication.weight = publication.size
    if publication.kind == .retry || publication.kind == .hold { entry.attempt.isPutOff = true }
    entry.ledger.owes()
    observers.note(.published(publication.kind, routingKey: publication.routingKey), entry)
    bodies.addLeaving(publication.weight)
    if publication.kind == .hold, let app = entry.identity.app { leavingForHold.add(to: app) }
    outbox.publish(publication)
  }

  func body(of publication: Publication) -> [UInt8] {
    guard let recipient = publication.naming, let entry = owner(of: publication) else { return publication.body }
    return deadLetterBody(entry, recipient)
  }

  func publicationConfirmed(_ publication: Publication) {
    guard let entry = owner(of: publication) else { return }
    bodies.remove(publication.weight, keptFor: nil)
    if publication.kind == .hold {
      if let app = entry.identity.app { leavingForHold.remove(from: app) }
      observers.note(.putToHold, entry)
    }
    if publication.kind == .page { broadcasts.pageConfirmed(entry) } else { consequenceEnded(of: entry) }
  }

  func owner(of publication: Publication) -> InFlight? {
    if case .request(let index) = publication.owner { table[index] } else { nil }
  }

  /// A publication was confirmed, or the registry has what it is owed.
  func consequenceEnded(of entry: InFlight) { perform(entry.ledger.met(), entry) }

  func replyReachedNobody() { observers.figures.counters.repliesUnroutable += 1 }
  func outboxDrained() { dispatchAll() }

  /// Every recipient has ended or been put off: what follows from the whole request is published, then it is acknowledged.
  func finishIfSettled(_ entry: InFlight) { perform(entry.ledger.stepOfRecipients, entry) }

  /// Does what a request's ledger calls for: nothing else acknowledges a request.
  func perform(_ step: Ledger.Step, _ entry: InFlight) {
    switch step {
    case .nothing: return
    case .conclude: conclude(entry) { publishConsequences(of: entry) }
    case .report: broadcasts.reportPage(entry)
    case .putOff:
      if entry.broadcast.work?.beginsAgain == true {
        broadcasts.beginAgain(entry)
      } else {
        publishRetry(of: entry, at: entry.attempt.copyDue)
      }
    case .acknowledge: acknowledge(entry)
    case .forget: forgetIfUnknowable(entry)
    case .resume:
      switch entry.broadcast.work?.stage {
      case nil, .sending: passGates(entry)
      case .ending: broadcasts.publishWithdrawn(entry)
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

  /// To the ladder or the hold queue, as soon as what has ended is safe.
  /// - Parameter due: unix milliseconds before which nothing is to be tried; where it isn't said, the earliest of its recipients' times.
  func putOffWhenSafe(_ entry: InFlight, until due: Int64? = nil) {
    if let due = due ?? entry.earliestRetry {
      entry.attempt.copyDue = due
    } else {
      entry.attempt.copyDue = time.wallClock + Self.registryDelay
      entry.attempt.longestWait = max(entry.attempt.longestWait, Self.registryDelay)
    }
    let step = entry.ledger.owesCopy()
    // What comes meanwhile is newer.
    if step == .nothing, entry.isReplaceable { noteWaitingHere(entry) }
    perform(step, entry)
  }

  /// For a loop over the request's recipients: the request doesn't end, and its place is no other one's, before the loop is over.
  func keepingOpen(_ entry: InFlight, _ loop: () -> Void) {
    entry.ledger.opened()
    loop()
    perform(entry.ledger.closed(), entry)
  }

  private func acknowledge(_ entry: InFlight) {
    observers.note(.acknowledged(pools: pools), entry)
    if !entry.ledger.isOrphan {
      acknowledge(entry.delivery.token, entry.source.hold)
      for (token, hold) in entry.source.repeats { acknowledge(token, hold) }
    }
    if entry.broadcast.work != nil { broadcasts.noteResultPublished(entry) }
    if !entry.ledger.isOrphan { observers.figures.closeAccount(entry, entry.attempt.isPutOff ? .putOff : .settled) }
    if let print = entry.identity.fingerprint {
      if !entry.hasReachedDevice { rememberUnreached(entry, print) }
      if !orphans.isEmpty { orphans[print] = nil }
    }
    release(entry)
  }

  private func rememberUnreached(_ entry: InFlight, _ print: UInt64) {
    if entry.ledger.isOrphan {
      // Its acknowledgement reaches nobody: the redelivery is to be recognised, and no replay of its dead letter after that.
      duplicates.keepForOne(print, until: time.wallClock + Int64(Self.longestAbsence * 1_000))
    } else if let until = entry.attempt.waitsUntil {
      duplicates.keep(print, until: until)
    } else {
      duplicates.remove(print)
    }
  }

  private func acknowledge(_ token: DeliveryToken, _ hold: Int?) {
    if let hold { holds.broker?.acknowledgeHeld(token, hold) } else { acknowledger?.acknowledge(token) }
  }

  func release(_ entry: InFlight) {
    observers.figures.closeAccount(entry, .givenBack)
    bodies.remove(entry.delivery.weight, keptFor: entry.source.keptFor)
    table.remove(entry)
  }
}
