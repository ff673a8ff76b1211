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
    case waiting(Waiting, WorkQueue)
  }

  let provider: Provider
  /// Pushes that certainly reached nobody: each goes before what waits in its lane.
  private var returned = Array(repeating: Ring<Returned>(), count: WorkQueue.allCases.count)
  private var lanes = Array(repeating: Ring<Waiting>(), count: WorkQueue.allCases.count)
  /// Of both kinds.
  private(set) var count = 0
  var outage = Outage()

  init(_ provider: Provider) { self.provider = provider }

  var pool: ProviderPool { provider.base }
  var isEmpty: Bool { count == 0 }

  mutating func append(_ waiting: Waiting, to queue: WorkQueue) {
    lanes[queue.rawValue].append(waiting)
    count += 1
  }

  mutating func giveBack(_ push: Returned, to queue: WorkQueue) {
    returned[queue.rawValue].append(push)
    count += 1
  }

  /// The first of the most urgent lane.
  mutating func popFirst() -> Next? {
    guard count > 0 else { return nil }
    for queue in WorkQueue.allCases {
      if let push = returned[queue.rawValue].popFirst() {
        count -= 1
        return .returned(push)
      }
      if let waiting = lanes[queue.rawValue].popFirst() {
        count -= 1
        return .waiting(waiting, queue)
      }
    }
    return nil
  }

  /// Puts back, in front, a request that still has recipients.
  mutating func putBack(_ waiting: Waiting, to queue: WorkQueue) {
    lanes[queue.rawValue].prepend(waiting)
    count += 1
  }
}
