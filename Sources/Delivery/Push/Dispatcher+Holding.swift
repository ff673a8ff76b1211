import Broker
import Providers
import PushCore
import Wire

/// Moves requests for a provider that serves nothing, or too little, to the hold queue of their application. There they neither
/// hold up other applications nor stay unacknowledged, and no attempt is counted. They come back as fast as the provider
/// accepts them.
extension Dispatcher {
  /// To be called a few times a second.
  /// - Parameter fitting: the number of requests for which there is memory, at their recent size.
  func watchAll(fitting: Int, for pipeline: Pipeline) {
    for index in active { watch(index, for: pipeline) }
    if controls.hasOrders { takeOutPaused(for: pipeline) }
    rest()
    for app in holds.present { adjustFlow(app, fitting) }
    // A question for a paused application's hold queue would stay in it.
    if controls.areKnown { holds.look() }
  }

  /// Updates the pool's bulkhead and moves waiting requests. Called at the end of each turn, and a few times a second.
  func watch(_ index: Int, for pipeline: Pipeline) {
    let now = time.now
    if controls.mode(ofPool: index) == .paused { takeOutPaused(of: index, for: pipeline) }
    let isInTrouble = pools[index].account.isInTrouble(at: now)
    if isInTrouble, !isTroubled(index) { troubleBegan(index) }
    pools[index].bulkhead.note(
      isInTrouble: isInTrouble, grace: sharesShard(index) ? 0 : Self.grace,
      isOverdue: pools[index].isOverdue(after: longestWait(for: index), at: now),
      high: pools[index].wait(in: .sendHigh, overdueAfter: longestWait(for: index), at: now), at: now)
    if isInTrouble, apps.users(of: index).isEmpty { return leave(index, for: pipeline) }
    guard pools[index].bulkhead.isClosed else { return }
    if !isInTrouble, pools[index].isEmpty, !pools[index].usesHoldQueue || hasTroubledNeighbour(index) {
      pools[index].bulkhead.emptied()
    } else {
      takeAside(index, for: pipeline)
    }
  }

  /// Everything in the pool's lanes is waiting from now on.
  private func troubleBegan(_ pool: Int) {
    for entry in table.entries where entry.isInUse && entry.isReplaceable && !entry.ledger.isConcluded {
      let waits = entry.recipients.contains { if case .waiting = $0.state { $0.pool == pool } else { false } }
      if waits { collapses.noteWaitingHere(entry) }
    }
  }

  /// An application's other provider is in trouble. The held requests are for that one, so this one's requests need not wait.
  private func hasTroubledNeighbour(_ index: Int) -> Bool {
    apps.users(of: index).contains { app in
      apps[app].pools.contains { $0 != index && isTroubled($0) && pools[$0].usesHoldQueue }
    }
  }

  /// Seconds that a lane's request may wait for its provider. For a single application, the limit only keeps the delivery below
  /// the broker's timeout of 30 minutes. The push services of web push must not hold up each other.
  private func longestWait(for pool: Int) -> Double { isShared ? 0.3 : pools[pool].usesHoldQueue ? 30 : 1 }

  /// Every provider has served nothing for a while, and each application has requests in hand to probe with: the lanes are not
  /// consumed.
  var areAllInTrouble: Bool {
    apps.indices.allSatisfy { app in
      !apps[app].isConfigured
        || !apps[app].hasWebPush && (holds.broker?.heldInHand(app) ?? 0) > 0 && apps[app].pools.allSatisfy(isTroubledForLong)
    }
  }

  /// Seconds of trouble after which the lanes are no longer consumed, and requests without a hold queue go to the ladder.
  private static let grace = 5.0

  func isTroubled(_ pool: Int) -> Bool { pools[pool].bulkhead.troubledSince != nil }
  private func isTroubledForLong(_ pool: Int) -> Bool {
    pools[pool].bulkhead.troubledSince.map { time.now.seconds(since: $0) > Self.grace } ?? false
  }

  /// Adjusts the prefetch of an application's hold queue to what its provider accepts within seconds.
  private func adjustFlow(_ app: Int, _ bodiesFitting: Int) {
    guard let broker = holds.broker else { return }
    guard controls.areKnown, !controls.isPaused(app) else { return broker.setFlow(.none, app, isForProbe: false) }
    let flow = broker.flow(app)
    guard flow != .none else { return broker.setFlow(.probes, app, isForProbe: false) }
    // The prefetch needs a reserve of memory: held requests are not given back at the first larger body.
    let fitting = HoldFeed.most / (flow == .probes ? 1 : 4)
    guard bodiesFitting >= fitting else { return broker.setFlow(.probes, app, isForProbe: false) }
    let pools = apps[app].pools.filter { self.pools[$0].usesHoldQueue }
    guard !pools.contains(where: isTroubled) else {
      // The requests to probe with may all be on streams that the provider won't answer.
      let isForProbe = pools.contains(where: lacksProbe)
      return broker.setFlow(isForProbe ? .some : .probes, app, isForProbe: isForProbe)
    }
    let oldest = pools.compactMap { self.pools[$0].heldSince }.min()
    let wait = oldest.map { time.now.seconds(since: $0) } ?? 0
    if wait < Self.shortHeldWait {
      broker.setFlow(flow.more, app, isForProbe: false)
    } else if wait > Self.longHeldWait {
      broker.setFlow(flow.less, app, isForProbe: false)
    }
  }

  /// The provider answers again, and no request is there to probe with.
  private func lacksProbe(_ pool: Int) -> Bool {
    pools[pool].isEmpty && pools[pool].account.takesProbe
  }

  /// Bounds in seconds of a held request's wait for its provider. Below the first the prefetch grows, above the second it
  /// shrinks.
  private static let shortHeldWait = 1.0
  private static let longHeldWait = 10.0

  // MARK: requests that go to hold queues at once

  /// All of the pools are closed to the application's requests, and its hold queue is present. With web push, there may be devices
  /// whose pools are not open yet.
  func isHeldBack(_ app: Int, by pools: [Int], _ queue: WorkQueue) -> Bool {
    !pools.isEmpty && pools.allSatisfy { self.pools[$0].bulkhead.isClosed(to: queue) && self.pools[$0].usesHoldQueue }
      && holds.isPresent(app) && !apps[app].hasWebPush
  }

  /// Whether a request goes to the hold queue instead of into the pool's lanes.
  func isHeldBack(_ entry: InFlight, by pool: Int) -> Bool {
    guard pools.indices.contains(pool), pools[pool].bulkhead.isClosed(to: entry.source.queue), pools[pool].usesHoldQueue,
      entry.source.hold == nil, !entry.attempt.isLast,
      let app = entry.identity.app, !controls.isPaused(pool, of: app)
    else { return false }
    return holds.isPresent(app)
  }

  /// True if the request goes to the hold queue for any device, so its devices need no look-up.
  func isWhollyHeldBack(_ entry: InFlight) -> Bool {
    guard let app = entry.identity.app, isHeldBack(app, by: entry.route.routes.pools, entry.source.queue),
      entry.source.hold == nil, !entry.isPage, !entry.attempt.isLast, entry.request?.audience == nil,
      entry.request?.isDryRun == false
    else { return false }
    return !hasOrder(for: entry.route.routes.pools, of: app) && time.wallClock <= entry.identity.deadline
  }

  private func hasOrder(for pools: [Int], of app: Int) -> Bool {
    controls.hasPoolOrders && pools.contains { controls.order(for: $0, of: app) != nil }
  }

  // MARK: requests that leave the lanes

  private func takeAside(_ pool: Int, for pipeline: Pipeline) {
    guard pools[pool].hasLanes, !outbox.isFull else { return }
    // If no held request can probe the provider, a recent one does.
    var isTried = pools[pool].account.expected > 0 || pools[pool].hasHeld
    takeOut(of: pool, withHeld: false, where: pools[pool].bulkhead.isClosed, for: pipeline) { entry, _ in
      exit(of: entry, pool, &isTried)
    }
  }

  /// No application uses the pool any more, after a reload or because other push services took its place. Earlier requests still
  /// wait for it, and its provider is in trouble. They go to the ladder, and get another pool when they come back.
  private func leave(_ pool: Int, for pipeline: Pipeline) {
    guard !pools[pool].isEmpty, !outbox.isFull else { return }
    takeOut(of: pool, withHeld: true, for: pipeline) { _, _ in
      .park(Self.parkingOfLeft, "its connection is no longer used, and the provider answers nothing on it")
    }
  }

  /// Puts held requests that wait too long back at the end of their queue. They wait a shorter time if other requests are
  /// queued behind them, and never as long as the broker's timeout. Ends requests whose time to live has passed while their
  /// provider is in trouble. To be called about once a second.
  func holdAgain(for pipeline: Pipeline) {
    guard time.now >= nextHoldAgain else { return }
    nextHoldAgain = time.now.advanced(bySeconds: 5)
    for pool in active where (pools[pool].hasHeld || isTroubled(pool)) && !outbox.isFull {
      let isTroubled = isTroubled(pool)
      takeOut(of: pool, withHeld: true, where: { _ in isTroubled }, for: pipeline) { entry, _ in
        if time.wallClock > entry.identity.deadline { return .expire }
        guard let app = entry.identity.app, entry.source.hold != nil, !entry.attempt.isLast, holds.isPresent(app) else {
          return nil
        }
        let longest = holds.ready[app, default: 0] > 0 ? Self.longestBeforeOthers : Self.longestAlone
        return time.wallClock - entry.identity.admittedAt > longest ? .hold(Self.holdReason) : nil
      }
    }
  }

  /// Takes waiting recipients out of the pool's lanes.
  /// - Parameter exit: the way out for a recipient; nil if it stays.
  func takeOut(
    of pool: Int, withHeld: Bool, where isTaken: (WorkQueue) -> Bool = { _ in true }, for pipeline: Pipeline,
    _ exit: (InFlight, Int) -> Exit?
  ) {
    func takes(_ entry: InFlight, _ index: Int) -> Bool {
      guard case .waiting = entry.recipients[index].state else { return true }
      guard let way = exit(entry, index) else { return false }
      pipeline.leave(entry, index, by: way)
      return true
    }
    for waiting in pools[pool].takeLanes(withHeld: withHeld, where: isTaken) {
      guard let entry = table[waiting.request], !entry.ledger.isOrphan else { continue }
      var isLeft = false
      pipeline.keepingOpen(entry) {
        for recipient in waiting.recipients(of: entry) where entry.recipients[recipient].pool == pool {
          if !takes(entry, recipient) { isLeft = true }
        }
      }
      guard isLeft else { continue }
      if waiting.isReturned { pools[pool].putBack(waiting, of: entry) } else { pools[pool].append(waiting, of: entry) }
    }
  }

  /// Milliseconds.
  private static let longestBeforeOthers: Int64 = 50_000
  /// A third of RabbitMQ's default timeout.
  private static let longestAlone: Int64 = 600_000

  /// The reason of trouble without a failed connection or a refusal.
  package static let silentProvider = "the provider doesn't answer"

  /// - Parameter isTried: some request probes the provider.
  /// - Returns: nil if the push stays, to probe the provider or because the trouble is recent.
  private func exit(of entry: InFlight, _ pool: Int, _ isTried: inout Bool) -> Exit? {
    if isHeldBack(entry, by: pool) { return .hold(Self.holdReason) }
    let wait = time.wallClock - entry.identity.admittedAt
    if !pools[pool].usesHoldQueue, !entry.attempt.isLast { return exitToLadder(entry, pool, wait, &isTried) }
    // The trouble may be over already: a probe that is under way has its answer soon.
    guard isTroubledForLong(pool), wait >= Self.shortestTrial else { return nil }
    if !isTried, wait < Self.longestTrial {
      isTried = true
      return nil
    }
    let reason = pools[pool].account.state.trouble ?? Self.silentProvider
    return entry.attempt.isLast ? .fail(pools[pool].account.refusalCode, reason) : .park(Self.shortestParking, reason)
  }

  /// The longer the trouble, the longer the wait, so that many waiting requests cost little.
  /// - Parameter wait: milliseconds since the request was admitted.
  /// - Returns: nil for one request, which probes the provider if it can do so soon.
  private func exitToLadder(_ entry: InFlight, _ pool: Int, _ wait: Int64, _ isTried: inout Bool) -> Exit? {
    guard let since = pools[pool].bulkhead.troubledSince else { return .park(Self.pauseOfSlow, "the push service is slow") }
    let untilTrial = pools[pool].pool.nextTrial.map { Int64($0.seconds(since: time.now) * 1_000) } ?? 0
    if !isTried, wait + untilTrial < Self.longestTrial, !entry.isPage || untilTrial < Self.longestTrialOfPage {
      isTried = true
      return nil
    }
    let trouble = Int64(time.now.seconds(since: since) * 1_000)
    let reason = pools[pool].account.state.trouble ?? "the push service doesn't answer"
    return .park(min(max(trouble, untilTrial, Self.shortestParking), Self.longestParking), reason)
  }

  static let holdReason = "waiting for the provider"
  /// Milliseconds on the ladder if the provider is slow.
  private static let pauseOfSlow: Int64 = 1_000
  private static let longestParking: Int64 = 300_000
  /// Milliseconds for which each request waits for a probe's answer.
  private static let shortestTrial: Int64 = 300
  /// Milliseconds for which one request waits to probe a provider.
  private static let longestTrial: Int64 = 10_000
  /// Milliseconds for which a page waits for the next try. Its other devices wait with it.
  private static let longestTrialOfPage: Int64 = 1_000
  /// Milliseconds on the ladder if there is no hold queue.
  private static let shortestParking: Int64 = 10_000
  /// Milliseconds on the ladder before another credential is used.
  private static let parkingOfLeft: Int64 = 1_000
}

extension PoolState {
  /// The reason why nothing can be sent at present, if known.
  package var trouble: String? {
    switch self {
    case .paused(let reason), .backingOff(let reason), .stopped(let reason): reason
    case .idle, .connecting, .probing, .open, .closing, .closed: nil
    }
  }
}
