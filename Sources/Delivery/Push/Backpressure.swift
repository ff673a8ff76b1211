import AMQP
import Broker
import Logging
import PushCore
import Wire

/// Limits the requests and bodies that a shard reads from the broker. If several applications share the worker, or outcome
/// queues confirm nothing, it reads ahead, because other applications' requests may be queued behind waiting ones. Confined to
/// the shard's thread.
package final class Backpressure {
  package weak var acknowledger: (any Acknowledger)?
  private let table: InFlightTable
  private let dispatcher: Dispatcher
  private let log: Log
  private let pagePrefetch: Int
  var bodies = BodiesInHand()
  package private(set) var ahead = DeliveriesAhead()
  /// Unconfirmed publications to hold queues, by application.
  private var leavingForHold = Tally<Int>()
  /// Requests from hold queues, as counted in ``beginAhead(_:)``.
  private var heldInHand = 0
  /// The time of the last log line about an application that fills its memory.
  private var crowdedSince: [Int: MonotonicTime] = [:]

  /// - Parameter pagePrefetch: the prefetch of pages in each lane.
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

  package func adjustIntake() {
    if bodies.adjustReading() { acknowledger?.isReadingPaused = bodies.isReadingPaused }
    acknowledger?.adjustPrefetch(fitting: bodies.fitting, ahead: wantedAhead)
  }

  // MARK: requests

  func acknowledge(_ token: DeliveryToken, _ hold: Int?) {
    if let hold { dispatcher.holds.broker?.acknowledgeHeld(token, hold) } else { acknowledger?.acknowledge(token) }
  }

  /// Keeps the request if there is memory for its body.
  func keep(_ entry: InFlight) -> Bool {
    guard let app = entry.identity.app, bodies.keep(entry.delivery.weight, for: app, isShared: dispatcher.isShared) else {
      return false
    }
    entry.source.keptFor = app
    return true
  }

  /// The delay in milliseconds on the ladder for a request without room. It grows, because no event brings the request back
  /// when there is room.
  func delay(of entry: InFlight) -> Int64 {
    if let app = entry.identity.app, crowdedSince[app].map({ time.now.seconds(since: $0) >= 60 }) ?? true {
      crowdedSince[app] = time.now
      log.warning(
        "an application's requests fill its share of the memory: further ones wait on the ladder",
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

  // MARK: reading ahead

  /// The limit of unconfirmed publications to hold queues: of all queues that confirm, and of one application.
  private static let mostLeavingForHold = 2_000
  /// The limit of extra requests while outcome queues are stuck.
  private static let mostStuck = 16_000
  /// Bytes of an application's bodies below which its requests begin although the table is full, if its providers are well.
  private static let little = 8 << 10
  /// The limits of deliveries read ahead: at first, and later if few applications have them.
  private static let firstAhead = 10_000
  private static let mostAhead = 100_000
  /// The number of applications whose deliveries are acknowledged nearly in order.
  private static let fewApps = 4

  /// The limit of begun requests: of the lanes, the page queues and the quarantine. Requests that only wait for a confirm or
  /// for their redelivery are extra.
  private var mostBegun: Int {
    2 * prefetch + 2 * pagePrefetch + 1 + heldInHand + min(leavingForHold.total, 2 * Self.mostLeavingForHold)
      + table.orphans.count + min(outbox.stuck, Self.mostStuck)
  }
  private var isTableFull: Bool { table.count > 2 * (prefetch + pagePrefetch) && table.count >= mostBegun }
  private var isHoldCrowded: Bool { leavingForHold.total >= Self.mostLeavingForHold }

  /// Whether a lane's delivery must wait for room, or behind waiting ones of its application.
  func hasToWait(_ delivery: borrowing Delivery, from queue: WorkQueue) -> Bool {
    guard isTableFull || isHoldCrowded || !ahead.isEmpty else { return false }
    let line = line(of: delivery, queue)
    return ahead.contains(line) || !mayBegin(line)
  }

  private func mayBegin(_ line: DeliveriesAhead.Line) -> Bool {
    guard isTableFull || isHoldCrowded else { return true }
    guard line.app >= 0 else { return !isTableFull }
    let isClosed =
      dispatcher.controls.isPaused(line.app)
      || apps[line.app].pools.contains { dispatcher.pools[$0].bulkhead.isClosed(to: line.queue) }
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

  /// Begins deliveries read ahead as far as there is room, those of the high lane first.
  func beginAhead(_ begin: (consuming Delivery, WorkQueue, DeliveriesAhead.Moment) -> Void) {
    heldInHand = dispatcher.holds.broker?.heldInHand ?? 0
    guard !ahead.isEmpty else { return }
    // A stopping worker still moves requests to hold queues. The broker delivers the others to another worker.
    if dispatcher.isDraining { forgetAhead { !self.isWhollyHeldBack($0) } }
    for isHigh in [true, false] {
      while let next = ahead.takeFirst(high: isHigh, mayBegin) {
        let taken = next.taken
        bodies.remove(taken.delivery.count + BodiesInHand.aheadOverhead, keptFor: nil)
        begin(taken.delivery.delivery, next.queue, taken.moment)
      }
    }
  }

  /// Drops deliveries read ahead; the broker delivers them again.
  func forgetAhead(where isForgotten: (DeliveriesAhead.Line) -> Bool = { _ in true }) {
    ahead.removeAll(where: isForgotten) { bodies.remove($0.count + BodiesInHand.aheadOverhead, keptFor: nil) }
  }

  private var wantedAhead: Int {
    let isStuck = outbox.stuck > prefetch / 2
    let isCrowded =
      dispatcher.isShared && (leavingForHold.total > prefetch / 5 || table.count - heldInHand >= prefetch / 10 * 9)
    guard isStuck || isCrowded else { return 0 }
    // Deliveries of many applications are acknowledged out of order, which costs the broker more with each application. So the
    // first step is small.
    let isOfFew = max(leavingForHold.keys, ahead.lineCount) <= Self.fewApps
    return min(isOfFew && ahead.count >= Self.firstAhead / 2 ? Self.mostAhead : Self.firstAhead, bodies.fittingAhead)
  }

  private func line(of delivery: borrowing Delivery, _ queue: WorkQueue) -> DeliveriesAhead.Line {
    guard let id = delivery.properties.appID, !id.isEmpty else { return .init(app: apps.only ?? -1, queue: queue) }
    return .init(app: apps.index(of: id) ?? -1, queue: queue)
  }

  /// True if all of the application's requests go to its hold queue.
  private func isWhollyHeldBack(_ line: DeliveriesAhead.Line) -> Bool {
    line.app >= 0 && dispatcher.isHeldBack(line.app, by: apps[line.app].pools, line.queue)
  }
}
