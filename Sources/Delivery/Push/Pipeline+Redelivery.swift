import AMQP
import Broker
import PushCore

/// Handles redelivered messages: duplicates, requests whose channel was lost, and suspects for the quarantine.
extension Pipeline {
  // MARK: duplicates

  /// Acknowledges a redelivery of a request that this shard has delivered or is delivering. A request whose channel was lost
  /// continues under its new delivery tag.
  /// - Returns: false for a new request, which is remembered.
  func isDuplicate(_ entry: InFlight, _ choice: Translator.Choice) -> Bool {
    switch table.recognise(entry, choice, at: time.wallClock) {
    case .new: return false
    case .redelivered(let orphan):
      orphan.delivery.token = entry.delivery.token
      orphan.source.hold = entry.source.hold
      release(entry)
      perform(orphan.ledger.redelivered(), orphan)
    case .inHand(let first):
      observers.note(.duplicate, entry)
      // A broker that lost contact with a node redelivers on the same channel, and ignores the acknowledgement of the first
      // delivery. So both are acknowledged when the request ends; earlier, the broker would forget it too soon.
      first.source.repeats.append((entry.delivery.token, entry.source.hold))
      release(entry)
    case .delivered:
      observers.note(.duplicate, entry)
      conclude(entry) {}
    }
    return true
  }

  // MARK: lost channels

  /// The channel and all its delivery tags are gone, and the broker delivers its requests again. Unbegun requests are dropped;
  /// begun ones are kept, to be recognised when they come back.
  /// - Parameter ofHolds: true for the channel of the hold queues, false for that of the lanes.
  package func channelLost(ofHolds: Bool = false) {
    publisher.withdrawCopies(ofHolds)
    if !ofHolds { backpressure.forgetAhead() }
    for entry in table.acknowledgeable {
      // A later connection reuses the tags.
      entry.source.repeats.removeAll { ($0.hold != nil) == ofHolds }
      guard (entry.source.hold != nil) == ofHolds else { continue }
      if let other = entry.source.repeats.popLast() {
        entry.delivery.token = other.token
        entry.source.hold = other.hold
        continue
      }
      entry.ledger.channelLost()
      entry.source.orphanedAt = time.now
      broadcasts.saveBegunPage(entry)
      if let print = entry.identity.fingerprint, entry.ledger.owed > 0 || entry.hasBegun {
        table.orphans[print] = entry.index
      } else if entry.ledger.isSettled {
        table.forget(entry)
        release(entry)
      }
    }
  }

  /// To be called about once a second.
  func forgetStrayed() {
    for entry in table.takeStrayed(at: time.now) {
      // A later redelivery must be processed again, unless everything was delivered and neither a result nor a report is owed.
      if !entry.isDelivered || entry.wantsResult(publisher.results) || entry.isPage { table.forget(entry) }
      release(entry)
    }
  }

  /// Without a message id a redelivery can't be recognised: the broker's copy replaces this one.
  func forgetIfUnknowable(_ entry: InFlight) {
    if entry.identity.fingerprint == nil, entry.ledger.isSettled { release(entry) }
  }

  // MARK: the quarantine

  func isolate(_ delivery: consuming Delivery, from queue: WorkQueue, hold: Int?) {
    let entry = insert(delivery, from: queue)
    entry.delivery = consume delivery
    observers.note(.quarantined, entry)
    entry.source.hold = hold
    putAside(entry, quarantine.messages.quarantine(entry, losses: 0))
  }

  /// The worker that had the message alone has died or lost its connection.
  func countLoss(of delivery: consuming Delivery, from queue: WorkQueue) {
    let entry = insert(delivery, from: queue)
    entry.delivery = consume delivery
    if let copy = quarantine.copyAfterLoss(of: entry) { return putAside(entry, copy) }
    intake.identify(entry, entry.delivery, using: &time.random)
    if let queue = entry.delivery.properties.replyTo { entry.source.reply = rights.replyVerdict(entry, queue) }
    if entry.source.reply == .unknown { entry.source.reply = .dropped }
    let words = "each worker that had it alone has died or lost its connection"
    log.error("given up: \(words)", ["message_id": entry.identity.messageID])
    let rejection = Rejection(.internalServerError, "poison: \(words)")
    observers.note(.refused(rejection), entry)
    conclude(entry) { publisher.publishAsGivenUp(rejection, for: entry) }
  }

  /// Called at the end of each turn of a stopping worker.
  package func returnToQuarantine() {
    if let (entry, copy) = quarantine.copyOfUnbegun(in: table) { putAside(entry, copy) }
  }

  private func putAside(_ entry: InFlight, _ copy: Publication) {
    conclude(entry) { publisher.publish(copy, for: entry) }
  }
}
