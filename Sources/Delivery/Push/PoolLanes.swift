import Broker
import Providers
import Wire

/// An account with a pool and what waits for it, in lanes: references to requests, never the pushes themselves, which are made when there is room.
package struct PoolLanes {
  struct Waiting {
    var request: RequestReference
    /// The first recipient not yet looked at.
    var next = 0
    var since = MonotonicTime(nanoseconds: 0)
  }

  struct Returned {
    var request: RequestReference
    var recipient: Int
  }

  /// What to send next.
  enum Next {
    /// One push, again.
    case returned(Returned)
    case waiting(Waiting)
  }

  /// Requests of one kind; a push that certainly reached nobody goes before the others, then what is for now or never (GS-064).
  private struct Lane {
    var returned = Ring<Returned>()
    var nowOrNever = Ring<Waiting>()
    var waiting = Ring<Waiting>()
    var isEmpty: Bool { returned.isEmpty && nowOrNever.isEmpty && waiting.isEmpty }

    /// - Parameter oldest: the turn is that of what waits longest.
    mutating func popFirst(oldest: Bool) -> Next? {
      if let push = returned.popFirst() { return .returned(push) }
      if oldest, let first = waiting.first, nowOrNever.first.map({ first.since < $0.since }) ?? true {
        return waiting.popFirst().map { .waiting($0) }
      }
      return (nowOrNever.popFirst() ?? waiting.popFirst()).map { .waiting($0) }
    }

    /// Since when the oldest request waits.
    var since: MonotonicTime? {
      switch (nowOrNever.first?.since, waiting.first?.since) {
      case (let one?, let other?): min(one, other)
      case (let one, let other): one ?? other
      }
    }
  }

  package private(set) var account: PoolAccount
  /// The most urgent first; what was held comes before what the normal lane has brought since.
  private var lanes = Array(repeating: Lane(), count: WorkQueue.allCases.count + 1)
  private static let held = WorkQueue.sendNormal.rawValue
  private static let otherQueues = WorkQueue.allCases.filter { $0 != .sendHigh }
  private var turns = 0
  /// In one of so many turns that which waits longest is served.
  private static let turnsOfUrgency = 8
  /// Seconds.
  private static let longestPageWait = 5.0
  /// Of all lanes.
  private(set) var count = 0
  package var bulkhead = Bulkhead()
  /// It is among those that the pipeline looks at.
  var isActive = false
  /// In which turn it was last given streams.
  var servedTurn = 0

  package init(_ account: PoolAccount) { self.account = account }

  /// Another pool sends everything that waits from now on.
  package mutating func move(to account: PoolAccount) { self.account = account }

  package var pool: ProviderPool { account.pool }
  var isEmpty: Bool { count == 0 }
  /// Something from a hold queue waits.
  var hasHeld: Bool { !lanes[Self.held].isEmpty }

  private static func lane(of entry: InFlight) -> Int {
    entry.source.hold != nil ? held : lane(of: entry.source.queue)
  }

  private static func lane(of queue: WorkQueue) -> Int { queue.rawValue < held ? queue.rawValue : queue.rawValue + 1 }

  mutating func append(_ waiting: Waiting, of entry: InFlight) {
    if entry.attempt.isLast {
      lanes[Self.lane(of: entry)].nowOrNever.append(waiting)
    } else {
      lanes[Self.lane(of: entry)].waiting.append(waiting)
    }
    count += 1
  }

  mutating func giveBack(_ push: Returned, of entry: InFlight) {
    lanes[Self.lane(of: entry)].returned.append(push)
    count += 1
  }

  /// Puts back, in front, a request that still has recipients.
  mutating func putBack(_ waiting: Waiting, of entry: InFlight) {
    if entry.attempt.isLast {
      lanes[Self.lane(of: entry)].nowOrNever.prepend(waiting)
    } else {
      lanes[Self.lane(of: entry)].waiting.prepend(waiting)
    }
    count += 1
  }

  /// The first of the most urgent lane; now and then that which waits longest, so that no lane waits for ever.
  mutating func popFirst() -> Next? {
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

  /// Whether a request waits that came by a lane of the broker's.
  var hasLanes: Bool { lanes.indices.contains { $0 != Self.held && !lanes[$0].isEmpty } }

  /// Since when the oldest request waits that was held; nil where none does.
  var heldSince: MonotonicTime? { lanes[Self.held].since }

  /// How those wait that came by one of the broker's lanes; a page may wait longer than a request, for pages have a prefetch of their own.
  func wait(in queue: WorkQueue, overdueAfter seconds: Double, at now: MonotonicTime) -> Bulkhead.Wait {
    guard let since = lanes[Self.lane(of: queue)].since else { return .none }
    return now.seconds(since: since) > (queue.isFanOut ? max(seconds, Self.longestPageWait) : seconds) ? .overdue : .short
  }

  /// Whether a page, or a request of another lane than the high one, has waited too long.
  func isOverdue(after seconds: Double, at now: MonotonicTime) -> Bool {
    Self.otherQueues.contains { wait(in: $0, overdueAfter: seconds, at: now) == .overdue }
  }

  /// Takes out what came by certain lanes of the broker's, and what was held if it is to go as well.
  mutating func takeLanes(withHeld: Bool, where isTaken: (WorkQueue) -> Bool = { _ in true }) -> [Next] {
    var taken: [Next] = []
    let lanes = WorkQueue.allCases.filter(isTaken).map(Self.lane) + (withHeld ? [Self.held] : [])
    for lane in lanes.sorted() {
      while let next = self.lanes[lane].popFirst(oldest: false) { taken.append(next) }
    }
    count -= taken.count
    return taken
  }
}
