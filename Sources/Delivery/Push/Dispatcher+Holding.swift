import Broker
import Providers
import PushCore
import Wire

/// What waits for a provider that serves nothing, or less than what comes, goes to the hold queue of its application, so that it neither holds
/// up other applications nor stays unacknowledged; it costs no attempt. It comes back as fast as the provider takes it.
extension Dispatcher {
  /// To be called a few times a second.
  /// - Parameter fitting: how many requests of the size that they have of late may be in hand.
  func watchAll(fitting: Int, for handler: some DispatchHandler) {
    for index in active { watch(index, for: handler) }
    rest()
    for app in holds.present { adjustFlow(app, fitting) }
    holds.look()
  }

  /// How the pool stands, and what follows for what waits for it. At the end of each turn, and a few times a second.
  func watch(_ index: Int, for handler: some DispatchHandler) {
    let now = time.now
    let isInTrouble = pools[index].account.isInTrouble(at: now)
    if isInTrouble, !isTroubled(index) { troubleBegan(index) }
    pools[index].bulkhead.note(
      isInTrouble: isInTrouble, grace: isShared ? 0 : Self.grace,
      isOverdue: pools[index].isOverdue(after: longestWait, at: now),
      high: pools[index].wait(in: .sendHigh, overdueAfter: longestWait, at: now), at: now)
    if isInTrouble, apps.users(of: index).isEmpty { return leave(index, for: handler) }
    guard pools[index].bulkhead.isClosed else { return }
    if !isInTrouble, pools[index].isEmpty, hasTroubledNeighbour(index) {
      pools[index].bulkhead.emptied()
    } else {
      takeAside(index, for: handler)
    }
  }

  /// What is in the pool's lanes waits from here on.
  private func troubleBegan(_ pool: Int) {
    for entry in table.entries where entry.isInUse && entry.isReplaceable && !entry.ledger.isConcluded {
      let waits = entry.recipients.contains { if case .waiting = $0.state { $0.pool == pool } else { false } }
      if waits { collapses.noteWaitingHere(entry) }
    }
  }

  /// An application's other provider is in trouble: what is held then is that one's, and no reason for this one's requests to wait.
  private func hasTroubledNeighbour(_ index: Int) -> Bool {
    apps.users(of: index).contains { app in apps[app].pools.contains { $0 != index && isTroubled($0) } }
  }

  /// Seconds that a request of a lane may wait for its provider. Where nobody else is held up it is only not to be kept until the broker's
  /// time limit for a delivery (30 minutes).
  private var longestWait: Double { isShared ? 0.3 : 30 }

  /// Every provider that requests are sent to has served nothing for a while, and there are requests in hand to try each with: nothing is
  /// taken from the lanes.
  var areAllInTrouble: Bool {
    apps.indices.allSatisfy { app in
      !apps[app].isConfigured || (holds.broker?.heldInHand(app) ?? 0) > 0 && apps[app].pools.allSatisfy(isTroubledForLong)
    }
  }

  /// Seconds of trouble after which the lanes are left alone, and what has no hold queue goes to the ladder.
  private static let grace = 5.0

  func isTroubled(_ pool: Int) -> Bool { pools[pool].bulkhead.troubledSince != nil }
  private func isTroubledForLong(_ pool: Int) -> Bool {
    pools[pool].bulkhead.troubledSince.map { time.now.seconds(since: $0) > Self.grace } ?? false
  }

  /// As much is taken of an application's hold queue as its provider sends within seconds.
  private func adjustFlow(_ app: Int, _ bodiesFitting: Int) {
    guard let broker = holds.broker else { return }
    let flow = broker.flow(app)
    // What is taken is not given back at the first larger body.
    let fitting = HoldFeed.most / (flow == .probes ? 1 : 4)
    guard bodiesFitting >= fitting else { return broker.setFlow(.probes, app, isForProbe: false) }
    guard !apps[app].pools.contains(where: isTroubled) else {
      // Those that the provider was to be tried with may all be on streams that it won't answer.
      let isForProbe = apps[app].pools.contains(where: lacksProbe)
      return broker.setFlow(isForProbe ? .some : .probes, app, isForProbe: isForProbe)
    }
    let oldest = apps[app].pools.compactMap { pools[$0].heldSince }.min()
    let wait = oldest.map { time.now.seconds(since: $0) } ?? 0
    if wait < Self.shortHeldWait {
      broker.setFlow(flow.more, app, isForProbe: false)
    } else if wait > Self.longHeldWait {
      broker.setFlow(flow.less, app, isForProbe: false)
    }
  }

  /// The provider answers again, and there is nothing to try it with.
  private func lacksProbe(_ pool: Int) -> Bool {
    pools[pool].isEmpty && pools[pool].account.takesProbe
  }

  /// Seconds that what is held waits here for its provider: below it more is taken, above it less.
  private static let shortHeldWait = 1.0
  private static let longHeldWait = 10.0

  // MARK: what is held back before it waits

  /// Each of the pools is closed to the application's requests, and they can be held.
  func isHeldBack(_ app: Int, by pools: [Int], _ queue: WorkQueue) -> Bool {
    !pools.isEmpty && pools.allSatisfy { self.pools[$0].bulkhead.isClosed(to: queue) } && holds.isPresent(app)
  }

  /// Whether a request goes to the hold queue instead of into the pool's lanes.
  func isHeldBack(_ entry: InFlight, by pool: Int) -> Bool {
    guard pools.indices.contains(pool), pools[pool].bulkhead.isClosed(to: entry.source.queue), entry.source.hold == nil,
      !entry.attempt.isLast,
      let app = entry.identity.app
    else { return false }
    return holds.isPresent(app)
  }

  /// Whichever device it is for: there is nothing to look up.
  func isWhollyHeldBack(_ entry: InFlight) -> Bool {
    guard entry.source.hold == nil, !entry.isPage, !entry.attempt.isLast, entry.parsed?.audience == nil,
      entry.parsed?.isDryRun == false,
      let app = entry.identity.app, time.wallClock <= entry.identity.deadline
    else { return false }
    return isHeldBack(app, by: entry.route.routes.pools, entry.source.queue)
  }

  // MARK: what leaves the lanes

  /// Empties the pool's lanes into the hold queues.
  private func takeAside(_ pool: Int, for handler: some DispatchHandler) {
    guard pools[pool].hasLanes, !outbox.isFull else { return }
    // Where nothing held is there to try the provider with, one request that has come of late is.
    var isTried = pools[pool].account.expected > 0 || pools[pool].hasHeld
    takeOut(of: pool, withHeld: false, where: pools[pool].bulkhead.isClosed, for: handler) { exit(of: $0, $1, pool, &isTried) }
  }

  /// What was here before a reload is all that waits for the pool, and its provider is in trouble: it goes to the ladder, and by whatever its
  /// application is configured with when it comes back.
  private func leave(_ pool: Int, for handler: some DispatchHandler) {
    guard !pools[pool].isEmpty, !outbox.isFull else { return }
    takeOut(of: pool, withHeld: true, for: handler) { _, _ in
      .park(Self.parkingOfLeft, "its credential is no longer configured, and the provider serves nothing by it")
    }
  }

  /// What was held and doesn't go out goes back to its queue's end: soon where others wait behind it, whose provider may be another one, and
  /// otherwise so that it isn't kept until the broker's time limit for a delivery. To be called about once a second.
  func holdAgain(for handler: some DispatchHandler) {
    guard time.now >= nextHoldAgain else { return }
    nextHoldAgain = time.now.advanced(bySeconds: 5)
    for pool in active where pools[pool].hasHeld && !outbox.isFull {
      takeOut(of: pool, withHeld: true, where: { _ in false }, for: handler) { entry, _ in
        guard let app = entry.identity.app, !entry.attempt.isLast, holds.isPresent(app) else { return nil }
        let longest = holds.ready[app, default: 0] > 0 ? Self.longestBeforeOthers : Self.longestAlone
        return time.wallClock - entry.identity.admittedAt > longest ? .hold : nil
      }
    }
  }

  /// Has what waits for the pool put somewhere else.
  /// - Parameter exit: by which way a recipient leaves; nil if it stays.
  private func takeOut(
    of pool: Int, withHeld: Bool, where isTaken: (WorkQueue) -> Bool = { _ in true }, for handler: some DispatchHandler,
    _ exit: (InFlight, Int) -> Exit?
  ) {
    func takes(_ entry: InFlight, _ index: Int) -> Bool {
      guard case .waiting = entry.recipients[index].state else { return true }
      guard let way = exit(entry, index) else { return false }
      handler.leave(entry, index, by: way)
      return true
    }
    for next in pools[pool].takeLanes(withHeld: withHeld, where: isTaken) {
      switch next {
      case .returned(let push):
        guard let entry = waitingEntry(push) else { continue }
        if !takes(entry, push.recipient) { pools[pool].giveBack(push, of: entry) }
      case .waiting(let waiting):
        guard let entry = table[waiting.request], !entry.ledger.isOrphan else { continue }
        var isLeft = false
        handler.keepingOpen(entry) {
          for recipient in waiting.next..<entry.recipients.count where entry.recipients[recipient].pool == pool {
            if !takes(entry, recipient) { isLeft = true }
          }
        }
        if isLeft { pools[pool].append(waiting, of: entry) }
      }
    }
  }

  /// Milliseconds.
  private static let longestBeforeOthers: Int64 = 50_000
  /// A third of what RabbitMQ allows unless it is changed.
  private static let longestAlone: Int64 = 600_000

  /// - Parameter isTried: there is something to try the provider with.
  /// - Returns: nil where the push stays: to try the provider with, or because the trouble is young.
  private func exit(of entry: InFlight, _ index: Int, _ pool: Int, _ isTried: inout Bool) -> Exit? {
    if isHeldBack(entry, by: pool) { return .hold }
    // The trouble may be an old one, over before anybody tried again: what tries the provider now has its answer soon.
    let wait = time.wallClock - entry.identity.admittedAt
    guard isTroubledForLong(pool), wait >= Self.shortestTrial else { return nil }
    if !isTried, wait < Self.longestTrial {
      isTried = true
      return nil
    }
    let reason = pools[pool].account.state.trouble ?? "the provider doesn't answer"
    return entry.attempt.isLast ? .fail(pools[pool].account.refusalCode, reason) : .park(Self.shortestParking, reason)
  }

  /// Milliseconds for which each request waits for one that tries its provider.
  private static let shortestTrial: Int64 = 300
  /// Milliseconds for which one request waits to try a provider.
  private static let longestTrial: Int64 = 10_000
  /// On the ladder where there is no hold queue, in milliseconds.
  private static let shortestParking: Int64 = 10_000
  /// For what is to go by another credential, in milliseconds.
  private static let parkingOfLeft: Int64 = 1_000
}

extension PoolState {
  /// Why nothing can be sent at present, where that is known.
  package var trouble: String? {
    switch self {
    case .paused(let reason), .backingOff(let reason), .stopped(let reason): reason
    case .idle, .connecting, .probing, .open, .closing, .closed: nil
    }
  }
}
