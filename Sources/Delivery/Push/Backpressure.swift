import AMQP
import Broker
import Logging
import PushCore
import Wire

/// How much a shard takes from the broker: the room for requests and their bodies, and what is taken from the lanes beyond it, where several
/// applications share the worker or outcome queues confirm nothing. Others' requests stand behind those that wait. Confined to the shard's thread.
package final class Backpressure {
  package weak var acknowledger: (any Acknowledger)?
  private let table: InFlightTable
  private let dispatcher: Dispatcher
  private let log: Log
  private let pagePrefetch: Int
  var bodies = BodiesInHand()
  package private(set) var ahead = DeliveriesAhead()
  /// Requests on their way to hold queues, by their applications.
  private var leavingForHold = Tally<Int>()
  /// Requests that came by hold queues, as this turn's end began.
  private var heldInHand = 0
  /// When it was last logged that there is no room for an application's requests.
  private var crowdedSince: [Int: MonotonicTime] = [:]

  /// - Parameter pagePrefetch: pages that a lane brings.
  init(dispatcher: Dispatcher, pagePrefetch: Int, log: Log) {
    self.dispatcher = dispatcher
    self.log = log
    self.pagePrefetch = pagePrefetch
    table = dispatcher.table
  }

  private var apps: Applications { dispatcher.apps }
  private var outbox: Outbox { dispatcher.outbox }
  private var time: Turn { dispatcher.time }
  private var prefetch: Int { dispatcher.prefetch }

  /// At the end of each turn: as much is taken from the broker as there is room for.
  package func adjustIntake() {
    if bodies.adjustReading() { acknowledger?.isReadingPaused = bodies.isReadingPaused }
    acknowledger?.adjustPrefetch(fitting: bodies.fitting, ahead: wantedAhead)
  }

  // MARK: requests

  func acknowledge(_ token: DeliveryToken, _ hold: Int?) {
    if let hold { dispatcher.holds.broker?.acknowledgeHeld(token, hold) } else { acknowledger?.acknowledge(token) }
  }

  /// The request stays, if there is room for its body.
  func keep(_ entry: InFlight) -> Bool {
    guard let app = entry.identity.app, bodies.keep(entry.delivery.weight, for: app, isShared: dispatcher.isShared) else {
      return false
    }
    entry.source.keptFor = app
    return true
  }

  func released(_ entry: InFlight) { bodies.remove(entry.delivery.weight, keptFor: entry.source.keptFor) }

  /// Milliseconds for which a request without room waits on the ladder: longer and longer, for nothing calls it back when there is room.
  func delay(of entry: InFlight) -> Int64 {
    if let app = entry.identity.app, crowdedSince[app].map({ time.now.seconds(since: $0) >= 60 }) ?? true {
      crowdedSince[app] = time.now
      log.warning(
        "an application's requests fill what it may hold: what comes waits on the ladder",
        ["app": String(decoding: apps[app].id, as: UTF8.self)])
    }
    return min(1_000 << (2 * Int64(min(max(entry.attempt.round, 0), 3))), Self.longestWait)
  }

  /// Milliseconds.
  private static let longestWait: Int64 = 60_000

  // MARK: publications

  func leaving(_ publication: Publication, _ app: Int?) {
    bodies.addLeaving(publication.weight)
    if publication.kind == .hold, let app { leavingForHold.add(to: app) }
  }

  func left(_ publication: Publication, _ app: Int?) {
    bodies.remove(publication.weight, keptFor: nil)
    if publication.kind == .hold, let app { leavingForHold.remove(from: app) }
  }

  // MARK: taken ahead

  /// Requests on their way to hold queues: to all that confirm, and of one application.
  private static let mostLeavingForHold = 2_000
  /// Requests at most that wait for stuck queues beside those that there is always room for.
  private static let mostStuck = 16_000
  /// Bytes of bodies in hand below which requests of an application whose providers are well are begun though all others fill the room.
  private static let little = 8 << 10
  /// Deliveries to be taken ahead: at first, and where these are of few applications.
  private static let firstAhead = 10_000
  private static let mostAhead = 100_000
  /// Applications whose deliveries are acknowledged near enough to their order.
  private static let fewApps = 4

  /// Requests that may be begun: of the lanes, of those of pages, and one of the quarantine; those that only wait for a queue to confirm, or for
  /// their redelivery, don't count.
  private var mostBegun: Int {
    2 * prefetch + 2 * pagePrefetch + 1 + heldInHand + min(leavingForHold.total, 2 * Self.mostLeavingForHold)
      + table.orphans.count + min(outbox.stuck, Self.mostStuck)
  }
  private var isTableFull: Bool { table.count >= mostBegun }
  private var isHoldCrowded: Bool { leavingForHold.total >= Self.mostLeavingForHold }

  /// Whether a delivery of a lane has to wait: for room, or behind those of its application that do.
  func hasToWait(_ delivery: borrowing Delivery, from queue: WorkQueue) -> Bool {
    guard isTableFull || isHoldCrowded || !ahead.isEmpty else { return false }
    let line = line(of: delivery, queue)
    return ahead.contains(line) || !mayBegin(line)
  }

  private func mayBegin(_ line: DeliveriesAhead.Line) -> Bool {
    guard isTableFull || isHoldCrowded else { return true }
    guard line.app >= 0 else { return !isTableFull }
    let isClosed = apps[line.app].pools.contains { dispatcher.pools[$0].bulkhead.isClosed(to: line.queue) }
    if isTableFull { return !isClosed && table.count < 2 * mostBegun && bodies.kept(for: line.app) < Self.little }
    let isCrowded =
      leavingForHold.total - outbox.stuckHolds >= Self.mostLeavingForHold
      || leavingForHold[line.app] >= Self.mostLeavingForHold
    return !isCrowded || !isClosed
  }

  func takeAhead(_ delivery: consuming Delivery, from queue: WorkQueue) {
    let line = line(of: delivery, queue)
    bodies.add(delivery.weight)
    bodies.remove(delivery.weight, keptFor: nil)
    let packed = PackedDelivery(delivery)
    bodies.addLeaving(packed.count + BodiesInHand.aheadOverhead)
    ahead.append(.init(delivery: packed, moment: .init(at: time.wallClock, number: dispatcher.collapses.arrival())), line)
  }

  /// Of those taken ahead, as many as there is room for are begun; the high lane's first.
  func beginAhead(_ begin: (consuming Delivery, WorkQueue, DeliveriesAhead.Moment) -> Void) {
    heldInHand = dispatcher.holds.broker?.heldInHand ?? 0
    guard !ahead.isEmpty else { return }
    // A stopping worker still puts into hold queues what goes there; the broker gives the rest to others.
    if dispatcher.isDraining { forgetAhead { !self.isWhollyHeldBack($0) } }
    for isHigh in [true, false] {
      while let next = ahead.takeFirst(high: isHigh, mayBegin) {
        let taken = next.taken
        bodies.remove(taken.delivery.count + BodiesInHand.aheadOverhead, keptFor: nil)
        begin(taken.delivery.delivery, next.queue, taken.moment)
      }
    }
  }

  /// The broker delivers them again.
  func forgetAhead(where isForgotten: (DeliveriesAhead.Line) -> Bool = { _ in true }) {
    ahead.removeAll(where: isForgotten) { bodies.remove($0.count + BodiesInHand.aheadOverhead, keptFor: nil) }
  }

  /// How many deliveries are to be in hand beyond the prefetch, as others' requests may stand behind those that wait.
  private var wantedAhead: Int {
    let isStuck = outbox.stuck > prefetch / 2
    let isCrowded =
      dispatcher.isShared && (leavingForHold.total > prefetch / 5 || table.count - heldInHand >= prefetch / 10 * 9)
    guard isStuck || isCrowded else { return 0 }
    // Of many applications, they are acknowledged out of their order, which costs the broker the more the more there are. So a few are
    // looked at first.
    let isOfFew = max(leavingForHold.keys, ahead.lineCount) <= Self.fewApps
    return min(isOfFew && ahead.count >= Self.firstAhead / 2 ? Self.mostAhead : Self.firstAhead, bodies.fittingAhead)
  }

  private func line(of delivery: borrowing Delivery, _ queue: WorkQueue) -> DeliveriesAhead.Line {
    guard let id = delivery.properties.appID, !id.isEmpty else { return .init(app: apps.only ?? -1, queue: queue) }
    return .init(app: apps.index(of: id) ?? -1, queue: queue)
  }

  /// Whatever comes for the application goes to its hold queue.
  private func isWhollyHeldBack(_ line: DeliveriesAhead.Line) -> Bool {
    line.app >= 0 && dispatcher.isHeldBack(line.app, by: apps[line.app].pools, line.queue)
  }
}
