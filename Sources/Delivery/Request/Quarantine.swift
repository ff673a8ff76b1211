import AMQP
import Broker

/// Isolates requests that have come back repeatedly. A request that came back twice may have killed its workers, or was only in
/// hand with such a request. It goes to a queue from which a worker takes one request at a time. A harmful request then ends as
/// a dead letter, and others are sent. A request that comes back because of lost connections is sent too.
struct Quarantine {
  /// The last request from the quarantine.
  var alone: RequestReference?
  let messages: OutcomePublications

  /// The number of returns after which a request is processed alone.
  private static let mostReturns: Int64 = 2
  /// The number of losses in the quarantine after which a request is given up.
  private static let mostLosses: Int64 = 3

  init(_ messages: OutcomePublications) { self.messages = messages }

  /// Uses the broker's count only, nothing from the producer. A request that this worker began, and whose channel was lost, has
  /// killed nobody.
  func isSuspect(_ delivery: borrowing Delivery, _ table: InFlightTable) -> Bool {
    delivery.returns >= Self.mostReturns && !table.orphans.values.contains { Self.isSame(delivery, table[$0].delivery) }
  }

  /// A worker had the delivery alone and lost it, and this worker doesn't have it in hand.
  func hasComeBack(_ delivery: borrowing Delivery, _ table: InFlightTable) -> Bool {
    guard delivery.returns > 0 else { return false }
    guard let alone, let entry = table[alone] else { return true }
    return !Self.isSame(delivery, entry.delivery)
  }

  private static func isSame(_ delivery: borrowing Delivery, _ mine: borrowing Delivery) -> Bool {
    mine.properties.messageID == delivery.properties.messageID && mine.body == delivery.body
  }

  /// A new copy with the number of losses; nil if the request is to be given up. Connections that are closed one after the
  /// other count as one loss, though several workers had the request.
  func copyAfterLoss(of entry: InFlight) -> Publication? {
    let losses = losses(of: entry) + 1
    return losses <= Self.mostLosses ? messages.quarantine(entry, losses: losses) : nil
  }

  /// A stopping worker's copy of an unbegun request from the quarantine. A return to the broker would count as a loss.
  func copyOfUnbegun(in table: InFlightTable) -> (of: InFlight, Publication)? {
    guard let alone, let entry = table[alone] else { return nil }
    guard !entry.ledger.isConcluded, !entry.ledger.isOrphan, entry.ledger.isSettled, !entry.hasBegun else { return nil }
    return (entry, messages.quarantine(entry, losses: losses(of: entry)))
  }

  private func losses(of entry: InFlight) -> Int64 {
    guard entry.source.areNotesOurs, let losses = entry.delivery.properties.headers.integer(OutcomePublications.losses) else {
      return 0
    }
    return (0...Self.mostLosses).contains(losses) ? losses : 0
  }
}

extension Delivery {
  /// How often the broker has taken the delivery back from a consumer. A producer's header doesn't count.
  var returns: Int64 {
    redelivered ? properties.headers.integer("x-delivery-count") ?? 0 : 0
  }
}
