import AMQP
import Broker
import PushCore

/// What has come back twice may have killed the workers that had it, or only have been in their hands. It goes on to a queue of its own, of
/// which a worker takes one at a time: one that kills ends in the dead letters, and what was beside it goes out.
///
/// A lost connection counts as well; what comes back from that takes the same way, and is none the worse for it.
extension Pipeline {
  /// Returns to the queue after which a request is processed alone.
  private static let mostReturns: Int64 = 2
  /// How often what is processed alone may come back before it is given up.
  private static let mostLosses: Int64 = 3

  /// By what the broker says; nothing that a producer wrote is looked at.
  func isSuspect(_ delivery: borrowing Delivery) -> Bool { delivery.returns >= Self.mostReturns }

  func quarantine(_ delivery: consuming Delivery, from queue: WorkQueue, hold: Int?) {
    let entry = insert(delivery, from: queue)
    observers.note(.quarantined, entry)
    entry.source.hold = hold
    putAside(entry, losses: 0)
  }

  // MARK: alone

  /// It was alone in a worker's hands and has come back, and isn't in hand here.
  func hasComeBack(_ delivery: borrowing Delivery) -> Bool {
    guard delivery.returns > 0 else { return false }
    guard let alone, let entry = table[alone] else { return true }
    let mine = entry.delivery
    return mine.body != delivery.body || mine.properties.messageID != delivery.properties.messageID
  }

  /// It begins anew, as a copy that says how often that has been. Where connections are closed one after the other it was in several
  /// workers' hands, as it went from one to the next: that counts once.
  func countLoss(of delivery: consuming Delivery, from queue: WorkQueue) {
    let entry = insert(delivery, from: queue)
    let losses = self.losses(of: entry) + 1
    if losses <= Self.mostLosses { return putAside(entry, losses: losses) }
    intake.identify(entry, entry.delivery, using: &time.random)
    entry.source.reply = replyVerdict(entry, entry.delivery.properties.replyTo)
    if entry.source.reply == .unknown { entry.source.reply = .dropped }
    log.error("given up: \(Self.poison)", ["message_id": entry.identity.messageID])
    giveUp(entry)
  }

  /// A dead letter with what earlier rounds have noted, so that replaying it sends to nobody twice. Whoever asked has a result where there was
  /// no earlier round: of one nothing is known here.
  private func giveUp(_ entry: InFlight) {
    let rejection = Rejection(.internalServerError, "poison: \(Self.poison)")
    let keepsNotes = areNotesOurs(entry)
    let headers = entry.delivery.properties.headers
    var isFirstRound = !keepsNotes
    if case .absent = RetryRecord.read(headers), headers[PageTicket.header] == nil { isFirstRound = true }
    observers.note(.refused(rejection), entry)
    conclude(entry) {
      let letter = DeadLetter(error: rejection.code, reason: rejection.reason, attempts: 0, failedAt: time.wallClock)
      publishDeadLetter(letter, keepsNotes: keepsNotes, of: entry)
      if isFirstRound, !entry.source.queue.isFanOut {
        publishResult(of: entry, targets: [.failed(rejection.code, reason: rejection.reason)])
      }
    }
  }

  private static let poison = "each worker that had it alone has died or lost its connection"

  /// At the end of each turn of a stopping worker: what it has taken from the quarantine and not begun goes back there as a new message. Given
  /// back, it would count as if the worker had died of it.
  func returnToQuarantine() {
    guard let alone, let entry = table[alone] else { return }
    guard !entry.ledger.isConcluded, !entry.ledger.isOrphan, entry.ledger.isSettled, !entry.hasBegun else { return }
    putAside(entry, losses: losses(of: entry))
  }

  private func insert(_ delivery: consuming Delivery, from queue: WorkQueue) -> InFlight {
    let entry = table.insert(from: queue)
    entry.source.takenAt = time.now
    entry.source.producer = noteReader.producer(of: delivery, queue: queue)
    entry.delivery = delivery
    return entry
  }

  private func putAside(_ entry: InFlight, losses: Int64) {
    let keepsNotes = areNotesOurs(entry)
    conclude(entry) { publish(publications.quarantine(entry, keepsNotes: keepsNotes, losses: losses)) }
  }

  private func losses(of entry: InFlight) -> Int64 {
    guard areNotesOurs(entry), case .integer(let losses)? = entry.delivery.properties.headers[OutcomePublications.losses],
      (0...Self.mostLosses).contains(losses)
    else { return 0 }
    return losses
  }

  private func areNotesOurs(_ entry: InFlight) -> Bool {
    noteReader.areNotesOurs(exchange: entry.delivery.exchange, queue: entry.source.queue)
  }
}

extension Delivery {
  /// How often the broker has taken it back from a consumer; what a producer writes into the header doesn't count.
  var returns: Int64 {
    guard redelivered, case .integer(let returns)? = properties.headers["x-delivery-count"] else { return 0 }
    return returns
  }
}
