import Broker
import Providers
import Wire

/// The waiting requests of a pool's account, in lanes. Lanes have references to requests; pushes are made when a stream is
/// free.
package struct PoolLanes {
  struct Waiting {
    var request: RequestReference
    /// The first recipient not yet looked at.
    var next = 0
    var since = MonotonicTime(nanoseconds: 0)
    /// A push that must be repeated: only the recipient `next` waits.
    var isReturned = false

    func recipients(of entry: InFlight) -> Range<Int> { next..<(isReturned ? next + 1 : entry.recipients.count) }
  }

  /// A lane's requests: first pushes that certainly reached nobody, then requests for now or never (GS-064), then the others.
  private struct Lane {
    var returned = Ring<Waiting>()
    var nowOrNever = Ring<Waiting>()
    var waiting = Ring<Waiting>()
    var isEmpty: Bool { returned.isEmpty && nowOrNever.isEmpty && waiting.isEmpty }

    /// - Parameter oldest: whether the longest waiting request comes first.
    mutating func popFirst(oldest: Bool) -> Waiting? {
      if let push = returned.popFirst() { return push }
      if oldest, let first = waiting.first, nowOrNever.first.map({ first.since < $0.since }) ?? true {
        return waiting.popFirst()
      }
      return nowOrNever.popFirst() ?? waiting.popFirst()
    }

    var since: MonotonicTime? {
      switch (nowOrNever.first?.since, waiting.first?.since) {
      case (let one?, let other?): min(one, other)
      case (let one, let other): one ?? other
      }
    }
  }

  package private(set) var account: PoolAccount
  /// The most urgent lane first. Held requests come before the normal lane's.
  private var lanes = Array(repeating: Lane(), count: WorkQueue.allCases.count + 1)
  private static let held = WorkQueue.sendNormal.rawValue
  private static let otherQueues = WorkQueue.allCases.filter { $0 != .sendHigh }
  private var turns = 0
  /// One in so many turns serves the longest waiting lane.
  private static let turnsOfUrgency = 8
  /// Seconds.
  private static let longestPageWait = 5.0
  private(set) var count = 0
  package var bulkhead = Bulkhead()
  var isActive = false
  /// The last turn in which it had free streams.
  var servedTurn = 0

  init(_ account: PoolAccount) { self.account = account }

  /// Everything that waits uses another pool from now on.
  mutating func move(to account: PoolAccount) { self.account = account }

  package var pool: ProviderPool { account.pool }
  /// Requests that the provider can't serve wait in the application's hold queue. Web push has a provider for each push service:
  /// one of them in trouble would hold up the requests for the others there, so these requests wait on the ladder.
  var usesHoldQueue: Bool { pool.platform != .webpush }
  var isEmpty: Bool { count == 0 }
  var hasHeld: Bool { !lanes[Self.held].isEmpty }

  private static func lane(of queue: WorkQueue, isHeld: Bool = false) -> Int {
    isHeld ? held : queue.rawValue < held ? queue.rawValue : queue.rawValue + 1
  }

  mutating func append(_ waiting: Waiting, of entry: InFlight) {
    let lane = Self.lane(of: entry.source.queue, isHeld: entry.source.hold != nil)
    if entry.attempt.isLast { lanes[lane].nowOrNever.append(waiting) } else { lanes[lane].waiting.append(waiting) }
    count += 1
  }

  /// Puts back, in front, a request that still has recipients; or a push, behind the others that must be repeated.
  mutating func putBack(_ waiting: Waiting, of entry: InFlight) {
    let lane = Self.lane(of: entry.source.queue, isHeld: entry.source.hold != nil)
    if waiting.isReturned {
      lanes[lane].returned.append(waiting)
    } else if entry.attempt.isLast {
      lanes[lane].nowOrNever.prepend(waiting)
    } else {
      lanes[lane].waiting.prepend(waiting)
    }
    count += 1
  }

  /// The first entry of the most urgent lane; now and then the longest waiting one, so that no lane waits for ever.
  mutating func popFirst() -> Waiting? {
    guard count > 0 else { return nil }
    turns &+= 1
    let isOldestsTurn = turns.isMultiple(of: Self.turnsOfUrgency)
    guard let lane = (isOldestsTurn ? oldestLane : nil) ?? lanes.firstIndex(where: { !$0.isEmpty }) else { return nil }
    count -= 1
    return lanes[lane].popFirst(oldest: isOldestsTurn)
  }

  private var oldestLane: Int? {
    var oldest: (lane: Int, since: MonotonicTime)?
    for lane in lanes.indices {
      guard let since = lanes[lane].since, since < oldest?.since ?? .distantFuture else { continue }
      oldest = (lane, since)
    }
    return oldest?.lane
  }

  /// A request or page from a lane of the broker waits.
  var hasLanes: Bool { lanes.indices.contains { $0 != Self.held && !lanes[$0].isEmpty } }

  /// When the oldest held request began to wait; nil if there is none.
  var heldSince: MonotonicTime? { lanes[Self.held].since }

  /// The wait of a lane's requests. A page may wait longer, because pages have their own prefetch.
  func wait(in queue: WorkQueue, overdueAfter seconds: Double, at now: MonotonicTime) -> Bulkhead.Wait {
    guard let since = lanes[Self.lane(of: queue)].since else { return .none }
    return now.seconds(since: since) > (queue.isFanOut ? max(seconds, Self.longestPageWait) : seconds) ? .overdue : .short
  }

  /// Whether a page, or a request of a lane other than the high one, has waited too long.
  func isOverdue(after seconds: Double, at now: MonotonicTime) -> Bool {
    Self.otherQueues.contains { wait(in: $0, overdueAfter: seconds, at: now) == .overdue }
  }

  /// Takes out the entries of the given lanes, and held ones if `withHeld`.
  mutating func takeLanes(withHeld: Bool, where isTaken: (WorkQueue) -> Bool = { _ in true }) -> [Waiting] {
    var taken: [Waiting] = []
    let lanes = WorkQueue.allCases.filter(isTaken).map { Self.lane(of: $0) } + (withHeld ? [Self.held] : [])
    for lane in lanes.sorted() {
      while let next = self.lanes[lane].popFirst(oldest: false) { taken.append(next) }
    }
    count -= taken.count
    return taken
  }
}
