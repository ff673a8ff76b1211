import Providers
import Wire

/// A pool and what waits for it, in lanes: references to requests, never the pushes themselves, which are made when there is room.
struct PoolLanes {
  enum Provider {
    case apns(APNsPool)
    case fcm(FCMPool)

    var base: ProviderPool {
      switch self {
      case .apns(let pool): pool
      case .fcm(let pool): pool
      }
    }
  }

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

  /// Requests of one kind; a push that certainly reached nobody goes before the others.
  private struct Lane {
    var returned = Ring<Returned>()
    var waiting = Ring<Waiting>()
    var isEmpty: Bool { returned.isEmpty && waiting.isEmpty }

    mutating func popFirst() -> Next? {
      returned.popFirst().map { .returned($0) } ?? waiting.popFirst().map { .waiting($0) }
    }
  }

  let provider: Provider
  /// The most urgent first; what was held comes before what the normal lane has brought since.
  private var lanes = Array(repeating: Lane(), count: WorkQueue.allCases.count + 1)
  private static let held = WorkQueue.sendNormal.rawValue
  /// Of all lanes.
  private(set) var count = 0
  var bulkhead = Bulkhead()
  /// It is among those that the pipeline looks at.
  var isActive = false

  init(_ provider: Provider) { self.provider = provider }

  var pool: ProviderPool { provider.base }
  var isEmpty: Bool { count == 0 }
  /// Something from a hold queue waits.
  var hasHeld: Bool { !lanes[Self.held].isEmpty }

  private static func lane(of entry: InFlight) -> Int {
    if entry.hold != nil { return held }
    return entry.queue.rawValue < held ? entry.queue.rawValue : entry.queue.rawValue + 1
  }

  mutating func append(_ waiting: Waiting, of entry: InFlight) {
    lanes[Self.lane(of: entry)].waiting.append(waiting)
    count += 1
  }

  mutating func giveBack(_ push: Returned, of entry: InFlight) {
    lanes[Self.lane(of: entry)].returned.append(push)
    count += 1
  }

  /// Puts back, in front, a request that still has recipients.
  mutating func putBack(_ waiting: Waiting, of entry: InFlight) {
    lanes[Self.lane(of: entry)].waiting.prepend(waiting)
    count += 1
  }

  /// The first of the most urgent lane.
  mutating func popFirst() -> Next? {
    guard count > 0 else { return nil }
    for lane in lanes.indices {
      if let next = lanes[lane].popFirst() {
        count -= 1
        return next
      }
    }
    return nil
  }

  /// Since when the oldest request waits that came by a lane of the broker's; nil where none does.
  var waitingSince: MonotonicTime? {
    lanes.indices.lazy.filter { $0 != Self.held }.compactMap { lanes[$0].waiting.first?.since }.min()
  }

  /// Takes everything out that came by a lane of the broker's, and what was held if it is to go as well.
  mutating func takeLanes(withHeld: Bool) -> [Next] {
    var taken: [Next] = []
    for lane in lanes.indices where withHeld || lane != Self.held {
      while let next = lanes[lane].popFirst() { taken.append(next) }
    }
    count -= taken.count
    return taken
  }
}
