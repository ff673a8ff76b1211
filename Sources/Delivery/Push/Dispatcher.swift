import Broker
import Providers
import PushCore
import Wire

/// Chooses the next pushes. Recipients wait in the lanes of their pools, as references to their requests, until there are free
/// streams. All pushes with free streams go out together at the end of a turn. ``watchAll(fitting:for:)`` finds pools whose
/// provider is in trouble, and moves waiting requests out of their lanes. Confined to the shard's thread.
package final class Dispatcher {
  /// The way of a recipient that leaves its lane unsent.
  package enum Exit {
    /// To the hold queue without counting an attempt; with the reason.
    case hold(String)
    /// To the ladder without counting an attempt; with the delay in milliseconds and the reason.
    case park(Int64, String)
    case fail(PushError, String)
    /// Its time to live has passed.
    case expire
    /// No pool matches.
    case refused(Rejection)
  }

  let apps: Applications
  let table: InFlightTable
  package let holds: Holds
  package let controls: Controls
  let collapses: Collapses
  let outbox: Outbox
  let ladder: Ladder
  let time: Turn
  /// The limit of a lane's requests in hand.
  let prefetch: Int
  package var pools: [PoolLanes]
  /// Pools with waiting or unanswered pushes, or in trouble.
  private(set) var active: [Int] = []
  /// The worker is stopping: no more pushes are sent.
  package var isDraining = false
  private var turns = 0
  /// Requests with refused devices, whose dead letters are to be published.
  private var refusals = Ring<PoolLanes.Waiting>()
  var nextHoldAgain = MonotonicTime(nanoseconds: 0)

  init(_ tools: ShardTools, table: InFlightTable, accounts: [PoolAccount], collapses: Collapses, prefetch: Int) {
    apps = tools.apps
    self.table = table
    pools = accounts.map(PoolLanes.init)
    holds = Holds(tools)
    controls = Controls(tools)
    self.collapses = collapses
    outbox = tools.outbox
    ladder = tools.publications.ladder
    self.prefetch = prefetch
    time = tools.time
    holds.isNeeded = { [controls] in controls.isPaused($0) }
    holds.onEmptied = { [weak self, apps] app in
      for index in apps[app].pools { self?.pools[index].bulkhead.emptied() }
    }
  }

  package var isShared: Bool { apps.count > 1 }
  /// True if pushes by other pools, of other applications or push services, must not wait for this pool's.
  func sharesShard(_ pool: Int) -> Bool { isShared || !pools[pool].usesHoldQueue }
  package var onStreams: Int { active.reduce(0) { $0 + pools[$1].account.inFlight } }

  // MARK: waiting requests

  func append(_ entry: InFlight, to numbers: PoolNumbers) {
    let waiting = PoolLanes.Waiting(request: entry.reference, since: time.now)
    numbers.forEach { pool in
      pools[pool].append(waiting, of: entry)
      if !pools[pool].isActive { activate(pool) }
    }
  }

  /// Puts a push or request before everything else that waits for the pool.
  func giveBack(_ waiting: PoolLanes.Waiting, to pool: Int, _ entry: InFlight) {
    pools[pool].putBack(waiting, of: entry)
    if !pools[pool].isActive { activate(pool) }
  }

  func refuse(_ entry: InFlight, for pipeline: Pipeline) {
    refusals.append(.init(request: entry.reference))
    failRefused(for: pipeline)
  }

  private func activate(_ pool: Int) {
    pools[pool].isActive = true
    active.append(pool)
  }

  /// To be called a few times a second. Removes idle pools from ``active``.
  func rest() {
    active.removeAll { index in
      let lanes = pools[index]
      let rests =
        lanes.isEmpty && lanes.account.inFlight == 0 && !lanes.bulkhead.isClosed && lanes.bulkhead.troubledSince == nil
      if rests { pools[index].isActive = false }
      return rests
    }
  }

  // MARK: dispatching

  /// Called at the end of each turn: sends all pushes with free streams, then flushes once.
  func dispatchAll(for pipeline: Pipeline) {
    failRefused(for: pipeline)
    var all = active.reduce(0) { $0 + counted($1) }
    var waiting = active.filter { !pools[$0].isEmpty }
    if waiting.contains(where: { pools[$0].pool.openAccounts > 1 }) {
      waiting.sort { (pools[$0].servedTurn, $0) < (pools[$1].servedTurn, $1) }
    }
    turns += 1
    for index in waiting { watch(index, for: pipeline) }
    // A pool without waiting pushes must not connect.
    waiting.removeAll { pools[$0].isEmpty }
    while !waiting.isEmpty { waiting = serve(waiting, &all, for: pipeline) }
  }

  /// Publishes dead letters of devices without a pool while the outbox has room. A list may have a thousand of them.
  private func failRefused(for pipeline: Pipeline) {
    while !outbox.isFull, let waiting = refusals.popFirst() {
      guard let entry = table[waiting.request], !entry.ledger.isOrphan else { continue }
      pipeline.keepingOpen(entry) {
        for next in waiting.next..<entry.recipients.count {
          guard case .refused(let rejection) = entry.recipients[next].state else { continue }
          guard !outbox.isFull else {
            return refusals.prepend(.init(request: waiting.request, next: next))
          }
          pipeline.leave(entry, next, by: .refused(rejection))
        }
      }
    }
  }

  /// Gives accounts with a common connection equal shares of its free streams.
  /// - Parameter waiting: pools, the longest unserved first.
  /// - Returns: pools that have used their share and have more to send.
  private func serve(_ waiting: [Int], _ all: inout Int, for pipeline: Pipeline) -> [Int] {
    for index in waiting { pools[index].pool.contenders += 1 }
    return waiting.filter { index in
      let own = counted(index)
      let hasMore = dispatch(index, beside: all - own, for: pipeline)
      all += counted(index) - own
      return hasMore
    }
  }

  /// The pool's unanswered pushes, limited to the prefetch; 0 for a pool that shares the prefetch with no other.
  private func counted(_ index: Int) -> Int {
    sharesShard(index) ? min(pools[index].account.inFlight, prefetch) : 0
  }

  /// - Returns: true if the pool has used its share and has more to send.
  private func dispatch(_ index: Int, beside others: Int, for pipeline: Pipeline) -> Bool {
    let account = pools[index].account
    let contenders = account.pool.contenders
    account.pool.contenders -= 1
    guard !isDraining else { return false }
    let allowed = controls.hasRates ? controls.allowance(of: apps.users(of: index)) : .max
    guard allowed > 0 else { return false }
    var room = share(of: index, account.capacity, beside: others)
    guard room > 0 else {
      account.wantsCapacity()
      return false
    }
    pools[index].servedTurn = turns
    let fair = contenders > 1 ? (account.capacity + contenders - 1) / contenders : allowed
    let most = min(fair, allowed) == .max ? .max : account.inFlight + min(fair, allowed)
    while !outbox.isFull {
      if room == 0 { room = share(of: index, account.capacity, beside: others) }
      guard room > 0 else { break }
      room = min(room, most - account.inFlight)
      guard room > 0 else { return !pools[index].isEmpty }
      guard let waiting = pools[index].popFirst() else { return false }
      let before = room
      sendNext(waiting, pool: index, account, &room, for: pipeline)
      // A push that isn't repeated counts too.
      if waiting.isReturned { room = before - 1 }
    }
    if account.capacity == 0, !pools[index].isEmpty { account.wantsCapacity() }
    return false
  }

  /// Sends to as many of the request's recipients as there are free streams. If some remain for this pool, it goes back to the
  /// front.
  private func sendNext(
    _ waiting: PoolLanes.Waiting, pool: Int, _ account: PoolAccount, _ room: inout Int, for pipeline: Pipeline
  ) {
    guard let entry = table[waiting.request], !entry.ledger.isOrphan else { return }
    guard !(entry.collapse.hasWaited && collapses.asksFirst(entry, waiting, pool)) else {
      room -= 1
      return
    }
    pipeline.keepingOpen(entry) {
      for next in waiting.recipients(of: entry) {
        guard entry.recipients[next].pool == pool, case .waiting = entry.recipients[next].state else { continue }
        guard room > 0, !outbox.isFull else {
          var rest = waiting
          rest.next = next
          return pools[pool].putBack(rest, of: entry)
        }
        room -= 1
        pipeline.send(entry, next, by: account)
      }
    }
  }

  /// The number of further pushes that may go to the pool. If it shares the shard, unanswered single pushes use at most half of
  /// the prefetch that other pools leave.
  /// - Parameter others: the sum of the other pools' ``counted(_:)``.
  func share(of index: Int, _ capacity: Int, beside others: Int) -> Int {
    guard capacity > 0, sharesShard(index) else { return capacity }
    return min(capacity, max((prefetch - others) / 2, 8) - pools[index].account.expected)
  }

  // MARK: reloads

  /// Adds pools, and moves pools to other accounts.
  /// - Parameter accounts: by the number of their pool. A reused number has been forgotten before.
  package func follow(_ accounts: [PoolAccount]) {
    for (number, account) in accounts.enumerated() {
      if number == pools.count { pools.append(PoolLanes(account)) } else { pools[number].move(to: account) }
    }
    controls.findOrdersForPools()
  }

  /// These pools are closed and no request uses them. Their numbers may be reused.
  package func forget(pools closed: [Int]) {
    guard !closed.isEmpty else { return }
    for number in closed { pools[number] = PoolLanes(pools[number].account) }
    active.removeAll { !pools[$0].isActive }
  }

  /// The limit of other pools in a report.
  private static let mostReported = 100

  /// The pools in a report: those in trouble, those of applications with a hold queue, and those of the first applications up
  /// to a limit.
  package var reportedPools: Set<Int> {
    var reported = holds.present.reduce(into: Set(active.filter(isTroubled))) { $0.formUnion(apps[$1].pools) }
    var others = 0
    for app in apps.indices.prefix(AppSeries.most) {
      for pool in apps[app].pools where others < Self.mostReported && reported.insert(pool).inserted { others += 1 }
    }
    return reported
  }
}
