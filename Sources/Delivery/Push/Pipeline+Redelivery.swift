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
    withdrawRetries(ofHolds)
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
        if let print = entry.identity.fingerprint { table.duplicates.remove(print) }
        release(entry)
      }
    }
  }

  /// The broker delivers the original again, here or elsewhere: a copy for the ladder that has not left would be a second one. What was
  /// only parked goes on as if it had never come; a page's ticket stays as it is, and its copy is published again if it comes back here.
  /// What else is owed then is the registry's word that the request waits.
  private func withdrawRetries(_ ofHolds: Bool) {
    let isMeant = { (owner: Int) in
      let entry = self.table[owner]
      return !entry.ledger.isOrphan && (entry.source.hold != nil) == ofHolds
        && !entry.source.repeats.contains { ($0.hold != nil) != ofHolds }
    }
    let outbox = dispatcher.outbox
    for publication in outbox.withdraw(.retry, where: isMeant) + outbox.withdraw(.hold, where: isMeant) {
      guard let entry = owner(of: publication) else { continue }
      publisher.left(publication, entry, isConfirmed: false)
      entry.ledger.withdrawn()
      entry.attempt.isPutOff = false
      entry.attempt.waitsUntil = nil
      guard entry.broadcast.work == nil, !entry.attempt.hasAsked, !entry.hasReachedDevice else { continue }
      for index in entry.recipients.indices {
        if case .postponed = entry.recipients[index].state { entry.recipients[index].state = .waiting }
      }
    }
  }

  /// Seconds after which a request that has not come back has gone to another worker. Longer than the broker takes to notice a
  /// connection that died without a word (two heartbeats).
  static let longestAbsence = 60.0

  /// To be called about once a second.
  func forgetStrayed() {
    // In one order, whatever the fingerprints are.
    for (print, index) in table.orphans.sorted(by: { $0.value < $1.value }) {
      let entry = table[index]
      guard entry.ledger.isSettled, time.now.seconds(since: entry.source.orphanedAt) > Self.longestAbsence else {
        continue
      }
      table.orphans[print] = nil
      // If it is redelivered later it must be processed again, unless nothing of it is outstanding: no result, and no page's report.
      if !entry.isDelivered || entry.wantsResult(publisher.results) || entry.isPage { table.duplicates.remove(print) }
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
    giveUp(entry)
  }

  /// A dead letter with what earlier rounds have noted, so that replaying it sends to nobody twice. Whoever asked has a result where there was
  /// no earlier round: of one nothing is known here.
  private func giveUp(_ entry: InFlight) {
    let words = "each worker that had it alone has died or lost its connection"
    log.error("given up: \(words)", ["message_id": entry.identity.messageID])
    let rejection = Rejection(.internalServerError, "poison: \(words)")
    let keepsNotes = entry.source.areNotesOurs
    let headers = entry.delivery.properties.headers
    var isFirstRound = !keepsNotes
    if case .absent = RetryRecord.read(headers), headers[PageTicket.header] == nil { isFirstRound = true }
    observers.note(.refused(rejection), entry)
    conclude(entry) {
      publisher.publish(DeadLetter(rejection, failedAt: time.wallClock), keepsNotes: keepsNotes, for: entry)
      if isFirstRound, !entry.source.queue.isFanOut {
        publisher.publishResult(of: entry, targets: [.failed(rejection.code, reason: rejection.reason)])
      }
    }
  }

  /// At the end of each turn of a stopping worker.
  package func returnToQuarantine() {
    if let (entry, copy) = quarantine.copyOfUnbegun(in: table) { putAside(entry, copy) }
  }

  private func putAside(_ entry: InFlight, _ copy: Publication) {
    conclude(entry) { publisher.publish(copy, for: entry) }
  }
}
