import PushCore
import Wire

/// The broker's channel is lost, and what was in hand comes back, here or elsewhere.
extension Pipeline {
  /// The channel is gone and with it every delivery tag. What has not been begun is forgotten, for the broker delivers it again,
  /// here or elsewhere; what has been is kept, to be recognised when it comes back.
  /// - Parameter ofHolds: the channel of the hold queues, not that of the lanes.
  func channelLost(ofHolds: Bool = false) {
    withdrawRetries(ofHolds)
    if !ofHolds { backpressure.forgetAhead() }
    for entry in table.inUse {
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
    let withdrawn = outbox.withdraw(.retry, where: isMeant) + outbox.withdraw(.hold, where: isMeant)
    for publication in withdrawn {
      guard let entry = self.owner(of: publication) else { continue }
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
}
