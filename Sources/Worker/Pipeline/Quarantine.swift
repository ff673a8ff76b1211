import AMQP

/// What has come back twice may have killed the workers that had it, or only have been in their hands. It goes on to a queue of its own, of
/// which a worker takes one at a time: one that kills ends in the dead letters, and what was beside it goes out.
///
/// A lost connection counts as well; what comes back from that takes the same way, and is none the worse for it.
extension Pipeline {
  /// Returns to the queue after which a request is processed alone.
  private static let mostReturns: Int64 = 2

  /// By what the broker says; nothing that a producer wrote is looked at.
  func isSuspect(_ delivery: borrowing Delivery) -> Bool {
    guard delivery.redelivered, case .integer(let returns)? = delivery.properties.headers["x-delivery-count"] else {
      return false
    }
    return returns >= Self.mostReturns
  }

  func quarantine(_ delivery: consuming Delivery, from queue: WorkQueue) {
    counters.quarantined += 1
    let keepsNotes = noteReader.areNotesOurs(exchange: delivery.exchange, queue: queue)
    let entry = table.insert(from: queue)
    entry.delivery = consume delivery
    conclude(entry) { publish(publications.quarantine(entry, keepsNotes: keepsNotes)) }
  }

  /// At the end of each turn of a stopping worker: what it has taken from the quarantine and not begun goes back there as a new message. Given
  /// back, it would count as if the worker had died of it.
  func returnToQuarantine() {
    guard let alone else { return }
    with(alone.entry, alone.generation) { entry in
      guard !entry.ledger.isConcluded, !entry.ledger.isOrphan, entry.ledger.isSettled, !entry.hasBegun else { return }
      let keepsNotes = noteReader.areNotesOurs(exchange: entry.delivery.exchange, queue: entry.queue)
      conclude(entry) { publish(publications.quarantine(entry, keepsNotes: keepsNotes)) }
    }
  }
}
