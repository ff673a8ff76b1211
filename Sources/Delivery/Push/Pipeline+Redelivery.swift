import AMQP
import Broker
import PushCore

/// What the broker delivers again: duplicates, requests whose channel was lost, and requests that have come back so often that they are suspect.
extension Pipeline {
  // MARK: duplicates

  /// A retransmission of what this shard has delivered or is delivering is acknowledged, not sent again. What was in flight
  /// when its channel was lost goes on under its new delivery.
  /// - Returns: false for a new one, which is remembered.
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
      // A broker that has lost touch with one of its nodes delivers again what is in hand here, on the same channel, and takes no
      // acknowledgement of the first delivery: this one is acknowledged when the request is, or the broker would forget it too early.
      first.source.repeats.append((entry.delivery.token, entry.source.hold))
      release(entry)
    case .delivered:
      observers.note(.duplicate, entry)
      conclude(entry) {}
    }
    return true
  }

  // MARK: lost channels

  /// The channel is gone and with it every delivery tag. What has not been begun is forgotten, for the broker delivers it again,
  /// here or elsewhere; what has been is kept, to be recognised when it comes back.
  /// - Parameter ofHolds: the channel of the hold queues, not that of the lanes.
  package func channelLost(ofHolds: Bool = false) {
    publisher.withdrawCopies(ofHolds)
    if !ofHolds { backpressure.forgetAhead() }
    for entry in table.acknowledgeable {
      // A later connection has the same tags for other deliveries.
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
      // If it is redelivered later it must be processed again, unless nothing of it is outstanding: no result, and no page's report.
      if !entry.isDelivered || entry.wantsResult(publisher.results) || entry.isPage { table.forget(entry) }
      release(entry)
    }
  }

  /// Without a message id a redelivery can't be recognised: the broker's copy takes over.
  func forgetIfUnknowable(_ entry: InFlight) {
    if entry.identity.fingerprint == nil, entry.ledger.isSettled { release(entry) }
  }

  // MARK: the quarantine

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
    if let queue = entry.delivery.properties.replyTo { entry.source.reply = rights.replyVerdict(entry, queue) }
    if entry.source.reply == .unknown { entry.source.reply = .dropped }
    let words = "each worker that had it alone has died or lost its connection"
    log.error("given up: \(words)", ["message_id": entry.identity.messageID])
    let rejection = Rejection(.internalServerError, "poison: \(words)")
    observers.note(.refused(rejection), entry)
    conclude(entry) { publisher.publishAsGivenUp(rejection, for: entry) }
  }

  /// At the end of each turn of a stopping worker.
  package func returnToQuarantine() {
    if let (entry, copy) = quarantine.copyOfUnbegun(in: table) { putAside(entry, copy) }
  }

  private func putAside(_ entry: InFlight, _ copy: Publication) {
    conclude(entry) { publisher.publish(copy, for: entry) }
  }
}
