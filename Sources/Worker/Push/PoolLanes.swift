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
    var entry: Int
    var generation: Int
    /// The first recipient not yet looked at.
    var next = 0
    var since = MonotonicTime(nanoseconds: 0)
  }

  struct Returned {
    var entry: Int
    var generation: Int
    var recipient: Int
  }

  /// What to send next.
  enum Next {
    /// One push, again.
    case returned(Returned)
    case waiting(Waiting)
  }

  let provider: Provider
  /// Pushes that certainly reached nobody: each goes before what waits in its lane.
  private var returned = Array(repeating: Ring<Returned>(), count: WorkQueue.allCases.count)
  private var lanes = Array(repeating: Ring<Waiting>(), count: WorkQueue.allCases.count)
  /// The same of requests from hold queues.
  private var heldReturned = Ring<Returned>()
  private var held = Ring<Waiting>()
  /// Of both kinds.
  private(set) var count = 0
  var bulkhead = Bulkhead()
  var wasInTrouble = false

  init(_ provider: Provider) { self.provider = provider }

  var pool: ProviderPool { provider.base }
  var isEmpty: Bool { count == 0 }

  mutating func append(_ waiting: Waiting, of entry: InFlight) {
    if entry.hold == nil { lanes[entry.queue.rawValue].append(waiting) } else { held.append(waiting) }
    count += 1
  }

  mutating func giveBack(_ push: Returned, of entry: InFlight) {
    if entry.hold == nil { returned[entry.queue.rawValue].append(push) } else { heldReturned.append(push) }
    count += 1
  }

  /// Something from a hold queue waits.
  var hasHeld: Bool { !held.isEmpty || !heldReturned.isEmpty }

  /// Since when the oldest request waits that came by a lane; nil where none does.
  var waitingSince: MonotonicTime? { lanes.lazy.compactMap(\.first?.since).min() }

  /// Takes everything out that came by the lanes.
  mutating func takeLanes() -> [Next] {
    var taken: [Next] = []
    for queue in WorkQueue.allCases {
      while let push = returned[queue.rawValue].popFirst() { taken.append(.returned(push)) }
      while let waiting = lanes[queue.rawValue].popFirst() { taken.append(.waiting(waiting)) }
    }
    count -= taken.count
    return taken
  }

  /// The first of the most urgent lane; what was held comes before what the normal lane has brought since.
  mutating func popFirst() -> Next? {
    guard count > 0 else { return nil }
    for queue in WorkQueue.allCases {
      if queue == .sendNormal {
        if let push = heldReturned.popFirst() {
          count -= 1
          return .returned(push)
        }
        if let waiting = held.popFirst() {
          count -= 1
          return .waiting(waiting)
        }
      }
      if let push = returned[queue.rawValue].popFirst() {
        count -= 1
        return .returned(push)
      }
      if let waiting = lanes[queue.rawValue].popFirst() {
        count -= 1
        return .waiting(waiting)
      }
    }
    return nil
  }

  /// Puts back, in front, a request that still has recipients.
  mutating func putBack(_ waiting: Waiting, of entry: InFlight) {
    if entry.hold == nil { lanes[entry.queue.rawValue].prepend(waiting) } else { held.prepend(waiting) }
    count += 1
  }
}
