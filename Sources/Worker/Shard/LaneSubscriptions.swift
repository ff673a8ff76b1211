import AMQP
import Broker
import Wire

/// What a shard consumes of the lanes and the quarantine, and how much of it is wanted at present.
struct LaneSubscriptions {
  /// Where a subscription's deliveries come from.
  enum Source {
    case lane(WorkQueue)
    /// The part of a lane's prefetch that large requests do without.
    case more(WorkQueue)
    /// One of the parts, from 0, of what is taken beyond what there is room for, where so many are wanted.
    case ahead(WorkQueue, part: Int)
    /// Messages of any lane.
    case quarantine
  }

  /// What is taken beyond what there is room for comes in parts of so many deliveries, each a consumer on a channel of its own.
  private static let part = 10_000
  private static let parts = 10

  /// In the order of the consumer's subscriptions.
  let sources: [Source]
  private let prefetch: Int
  private let fanOutPrefetch: Int
  /// Whether the lanes are consumed; not while every provider is in trouble.
  private(set) var takesLanes = true
  /// The whole prefetch is consumed with.
  private var takesMore = false
  private var nextChange = MonotonicTime(nanoseconds: 0)
  /// How much is consumed beyond what there is room for, and until when at least.
  private var ahead = 0
  private var aheadUntil = MonotonicTime(nanoseconds: 0)

  private static let basePrefetch = 64
  /// Seconds.
  private static let changePause = 10.0
  private static let aheadPause = 2.0

  /// - Parameter takesQuarantine: one shard of the process does: what kills it takes no other of them along.
  init(prefetch: Int, fanOutPrefetch: Int, takesQuarantine: Bool) {
    self.prefetch = prefetch
    self.fanOutPrefetch = fanOutPrefetch
    var sources = WorkQueue.allCases.map { Source.lane($0) }
    if prefetch > Self.basePrefetch { sources += WorkQueue.allCases.filter { !$0.isFanOut }.map { .more($0) } }
    sources += [.ahead(.sendHigh, part: 0)] + (0..<Self.parts).map { .ahead(.sendNormal, part: $0) }
    if takesQuarantine { sources.append(.quarantine) }
    self.sources = sources
  }

  func subscription(_ source: Source, _ topology: Topology) -> Consumer.Subscription {
    let base = min(prefetch, Self.basePrefetch)
    switch source {
    case .lane(let queue):
      return .init(queue: topology.name(queue.origin), prefetch: UInt16(queue.isFanOut ? fanOutPrefetch : base))
    case .more(let queue):
      return .init(queue: topology.name(queue.origin), prefetch: UInt16(prefetch - base), isOptional: true)
    case .ahead(let queue, let part):
      return .init(
        queue: topology.name(queue.origin), prefetch: UInt16(Self.part), isOptional: true, channel: UInt16(2 + part))
    case .quarantine: return .init(queue: topology.quarantineQueue, prefetch: 1)
    }
  }

  func isWanted(_ source: Source) -> Bool {
    switch source {
    case .lane: takesLanes
    case .more: takesLanes && takesMore
    case .ahead(_, let part): takesLanes && (part + 1) * Self.part <= ahead
    case .quarantine: true
    }
  }

  // MARK: changes, which say whether there was one

  mutating func takeLanes(_ takes: Bool) -> Bool {
    defer { takesLanes = takes }
    return takes != takesLanes
  }

  /// A few requests of each queue are always taken, the rest of the prefetch only while they are small: all that the broker sends ahead
  /// has to be read before it gets to what comes next.
  mutating func adjust(fitting: Int, at now: MonotonicTime) -> Bool {
    guard prefetch > Self.basePrefetch, takesMore ? fitting < prefetch / 4 : fitting >= prefetch, now >= nextChange else {
      return false
    }
    takesMore.toggle()
    nextChange = now.advanced(bySeconds: takesMore ? 0 : Self.changePause)
    return true
  }

  mutating func takeAhead(_ wanted: Int, at now: MonotonicTime) -> Bool {
    let total = min(wanted / Self.part, Self.parts) * Self.part
    if total >= ahead { aheadUntil = now.advanced(bySeconds: Self.aheadPause) }
    guard total > ahead || total < ahead && now >= aheadUntil else { return false }
    ahead = total
    return true
  }
}
