import AMQP
import PushCore

/// Requests that have come back so often that they are suspect: see ``Quarantine``.
extension Pipeline {
  func isolate(_ delivery: consuming Delivery, from queue: WorkQueue, hold: Int?) {
    let entry = insert(delivery, from: queue)
    entry.delivery = consume delivery
    observers.note(.quarantined, entry)
    entry.source.hold = hold
    putAside(entry, quarantine.copy(of: entry))
  }

  /// The worker that had it alone has died or lost its connection.
  func countLoss(of delivery: consuming Delivery, from queue: WorkQueue) {
    let entry = insert(delivery, from: queue)
    entry.delivery = consume delivery
    if let copy = quarantine.copyAfterLoss(of: entry) { return putAside(entry, copy) }
    intake.identify(entry, entry.delivery, using: &time.random)
    entry.source.reply = rights.replyVerdict(entry, entry.delivery.properties.replyTo)
    if entry.source.reply == .unknown { entry.source.reply = .dropped }
    giveUp(entry)
  }

  /// A dead letter with what earlier rounds have noted, so that replaying it sends to nobody twice. Whoever asked has a result where there was
  /// no earlier round: of one nothing is known here.
  private func giveUp(_ entry: InFlight) {
    let words = "each worker that had it alone has died or lost its connection"
    log.error("given up: \(words)", ["message_id": entry.identity.messageID])
    let rejection = Rejection(.internalServerError, "poison: \(words)")
    let keepsNotes = rights.areNotesOurs(entry)
    let headers = entry.delivery.properties.headers
    var isFirstRound = !keepsNotes
    if case .absent = RetryRecord.read(headers), headers[PageTicket.header] == nil { isFirstRound = true }
    observers.note(.refused(rejection), entry)
    conclude(entry) {
      let letter = DeadLetter(error: rejection.code, reason: rejection.reason, attempts: 0, failedAt: time.wallClock)
      publisher.publish(letter, keepsNotes: keepsNotes, for: entry)
      if isFirstRound, !entry.source.queue.isFanOut {
        publisher.publishResult(of: entry, targets: [.failed(rejection.code, reason: rejection.reason)])
      }
    }
  }

  /// At the end of each turn of a stopping worker.
  func returnToQuarantine() {
    if let (entry, copy) = quarantine.copyOfUnbegun(in: table) { putAside(entry, copy) }
  }

  private func putAside(_ entry: InFlight, _ copy: Publication) {
    conclude(entry) { publisher.publish(copy, for: entry) }
  }
}
