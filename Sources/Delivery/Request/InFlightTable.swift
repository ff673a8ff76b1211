import Broker
import Wire

/// A reference to a request in the shard's table; stale when the place is reused.
struct RequestReference: Equatable {
  var index: Int
  var generation: Int
}

struct RecipientReference {
  var request: RequestReference
  var recipient: Int
}

/// A shard's unacknowledged requests, bounded by the prefetch. Confined to the shard's thread.
package final class InFlightTable {
  private(set) var entries: [InFlight] = []
  private var free: [Int] = []
  package private(set) var count = 0
  /// Requests whose channel is gone, by fingerprint, until the broker redelivers them here.
  package var orphans: [UInt64: Int] = [:]
  /// Requests that this shard has delivered or is delivering.
  var duplicates: DuplicateWindow

  init(time: Turn) { duplicates = DuplicateWindow(seed: time.random.next()) }

  func insert(from queue: WorkQueue) -> InFlight {
    count += 1
    let entry: InFlight
    if let index = free.popLast() {
      entry = entries[index]
    } else {
      entry = InFlight(index: entries.count)
      entries.append(entry)
    }
    entry.isInUse = true
    entry.source.queue = queue
    return entry
  }

  func remove(_ entry: InFlight) {
    entry.end()
    free.append(entry.index)
    count -= 1
  }

  subscript(index: Int) -> InFlight { entries[index] }

  /// The request, unless its place is reused.
  subscript(reference: RequestReference) -> InFlight? {
    let entry = entries[reference.index]
    return entry.generation == reference.generation ? entry : nil
  }

  func owner(of publication: Publication) -> InFlight? {
    if case .request(let index) = publication.owner { self[index] } else { nil }
  }

  /// Unacknowledged requests.
  package var inHand: some Sequence<InFlight> { entries.lazy.filter { $0.isInUse } }
  /// Those whose channel is open.
  package var acknowledgeable: some Sequence<InFlight> { entries.lazy.filter { $0.isInUse && !$0.ledger.isOrphan } }

  /// Seconds since the arrival of the oldest request in hand; 0 if there is none.
  package func oldestAge(at now: MonotonicTime) -> Double {
    now.seconds(since: acknowledgeable.reduce(now) { min($0, $1.source.takenAt) })
  }

  /// The applications and pools of the requests in hand.
  package var uses: (apps: Set<Int>, pools: Set<Int>) {
    var (apps, pools): (Set<Int>, Set<Int>) = ([], [])
    for entry in inHand {
      if let app = entry.identity.app { apps.insert(app) }
      pools.formUnion(entry.route.routes.pools)
      pools.insert(entry.route.apnsPool)
      // Most devices of a list or page have the same pool.
      var last = -1
      for recipient in entry.recipients where recipient.pool != last {
        last = recipient.pool
        pools.insert(last)
      }
    }
    return (apps, pools)
  }

  // MARK: requests that come again

  enum Recognition {
    case new
    /// The channel of this request was lost; it continues under the new delivery.
    case redelivered(InFlight)
    case inHand(InFlight)
    case delivered
  }

  func recognise(_ entry: InFlight, _ choice: Translator.Choice, at now: Int64) -> Recognition {
    let print = duplicates.fingerprint(
      app: entry.identity.app ?? -1, sender: choice.name, messageID: entry.identity.messageID, body: entry.delivery.body,
      round: entry.lap)
    if !orphans.isEmpty, let index = orphans.removeValue(forKey: print) { return .redelivered(self[index]) }
    if duplicates.insert(print, at: now) {
      entry.identity.fingerprint = print
      return .new
    }
    return acknowledgeable.first { $0.identity.fingerprint == print }.map { .inHand($0) } ?? .delivered
  }

  /// Forgets the request, so that its redelivery counts as new.
  func forget(_ entry: InFlight) {
    guard let print = entry.identity.fingerprint else { return }
    orphans[print] = nil
    duplicates.remove(print)
    entry.identity.fingerprint = nil
  }

  /// Seconds after which an orphan must have gone to another worker. This is longer than two heartbeats, after which the broker
  /// notices a dead connection.
  private static let longestAbsence = 60.0

  /// Removes and returns orphans that have gone to another worker.
  func takeStrayed(at now: MonotonicTime) -> [InFlight] {
    // Ordered by place, so that the order doesn't depend on random fingerprints.
    orphans.sorted(by: { $0.value < $1.value }).compactMap { print, index in
      let entry = self[index]
      guard entry.ledger.isSettled, now.seconds(since: entry.source.orphanedAt) > Self.longestAbsence else { return nil }
      orphans[print] = nil
      return entry
    }
  }

  /// The request is acknowledged.
  /// - Parameter now: unix milliseconds.
  func acknowledged(_ entry: InFlight, at now: Int64) {
    guard let print = entry.identity.fingerprint else { return }
    if !entry.hasReachedDevice { rememberUnreached(entry, print, at: now) }
    if !orphans.isEmpty { orphans[print] = nil }
  }

  /// An acknowledged request without a delivery may come again, from the ladder or as a replayed dead letter.
  private func rememberUnreached(_ entry: InFlight, _ print: UInt64, at now: Int64) {
    if entry.ledger.isOrphan {
      // Its acknowledgement is lost: the redelivery must be recognised once, and a later replay must not.
      duplicates.keep(print, until: now + Int64(Self.longestAbsence * 1_000), isForOne: true)
    } else if let until = entry.attempt.waitsUntil {
      duplicates.keep(print, until: until)
    } else {
      duplicates.remove(print)
    }
  }
}
