import AMQP
import Broker

/// Requests that have come back so often that they are suspect.
///
/// What has come back twice may have killed the workers that had it, or only have been in their hands. It goes on to a queue of its own, of
/// which a worker takes one at a time: one that kills ends in the dead letters, and what was beside it goes out. A lost connection counts
/// as well; what comes back from that takes the same way, and is none the worse for it.
struct Quarantine {
  /// The request that came last from the quarantine.
  var alone: RequestReference?
  private let messages: OutcomePublications

  /// Returns to the queue after which a request is processed alone.
  private static let mostReturns: Int64 = 2
  /// How often what is processed alone may come back before it is given up.
  private static let mostLosses: Int64 = 3

  init(_ messages: OutcomePublications) { self.messages = messages }

  /// By what the broker says; nothing that a producer wrote is looked at.
  func isSuspect(_ delivery: borrowing Delivery) -> Bool { delivery.returns >= Self.mostReturns }

  /// It was alone in a worker's hands and has come back, and isn't in hand here.
  func hasComeBack(_ delivery: borrowing Delivery, _ table: InFlightTable) -> Bool {
    guard delivery.returns > 0 else { return false }
    guard let alone, let entry = table[alone] else { return true }
    let mine = entry.delivery
    return mine.body != delivery.body || mine.properties.messageID != delivery.properties.messageID
  }

  func copy(of entry: InFlight, losses: Int64 = 0) -> Publication {
    messages.quarantine(entry, keepsNotes: entry.source.areNotesOurs, losses: losses)
  }

  /// It begins anew, as a copy that says how often that has been. Where connections are closed one after the other it was in several
  /// workers' hands, as it went from one to the next: that counts once. Nil where it is to be given up.
  func copyAfterLoss(of entry: InFlight) -> Publication? {
    let losses = losses(of: entry) + 1
    return losses <= Self.mostLosses ? copy(of: entry, losses: losses) : nil
  }

  /// Of the request that a stopping worker has taken from the quarantine and not begun: a new message for the broker. Given back, it would
  /// count as if the worker had died of it.
  func copyOfUnbegun(in table: InFlightTable) -> (of: InFlight, Publication)? {
    guard let alone, let entry = table[alone] else { return nil }
    guard !entry.ledger.isConcluded, !entry.ledger.isOrphan, entry.ledger.isSettled, !entry.hasBegun else { return nil }
    return (entry, copy(of: entry, losses: losses(of: entry)))
  }

  private func losses(of entry: InFlight) -> Int64 {
    guard entry.source.areNotesOurs,
      case .integer(let losses)? = entry.delivery.properties.headers[OutcomePublications.losses],
      (0...Self.mostLosses).contains(losses)
    else { return 0 }
    return losses
  }
}

extension Delivery {
  /// How often the broker has taken it back from a consumer; what a producer writes into the header doesn't count.
  var returns: Int64 {
    guard redelivered, case .integer(let returns)? = properties.headers["x-delivery-count"] else { return 0 }
    return returns
  }
}
