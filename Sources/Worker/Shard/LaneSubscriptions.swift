import AMQP
import Broker
import Wire

/// A shard's subscriptions to the lanes and the quarantine, and which of them are active.
struct LaneSubscriptions {
  enum Source {
    case lane(WorkQueue)
    /// The part of a lane's prefetch that is not used while requests are large.
    case more(WorkQueue)
    /// Part number `part` of the deliveries that are read ahead, beyond the prefetch.
    case ahead(WorkQueue, part: Int)
    case quarantine
  }

  /// Reading ahead works in parts of this many deliveries, each with its own consumer and channel.
  private static let part = 10_000
  private static let parts = 10

  /// In the order of the consumer's subscriptions.
  let sources: [Source]
  private let prefetch: Int
  private let fanOutPrefetch: Int
  /// False while every provider is in trouble, so that the lanes are not consumed.
  private(set) var takesLanes = true
  /// Lanes that an operator has paused.
  private var paused: Set<WorkQueue> = []
  /// True while the full prefetch is used.
  private var takesMore = false
  private var nextChange = MonotonicTime(nanoseconds: 0)
  /// Deliveries to read ahead, and the earliest time to reduce them.
  private var ahead = 0
  private var aheadUntil = MonotonicTime(nanoseconds: 0)

  private static let basePrefetch = 64
  private static let changePause = 10.0
  private static let aheadPause = 2.0

  /// - Parameter takesQuarantine: true for one shard per process, so that a fatal message takes no second one with it.
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
    case .lane(let queue): takes(queue)
    case .more(let queue): takes(queue) && takesMore
    case .ahead(let queue, let part): takes(queue) && (part + 1) * Self.part <= ahead
    case .quarantine: true
    }
  }

  private func takes(_ queue: WorkQueue) -> Bool { takesLanes && !paused.contains(queue) }

  /// A queue of which each shard of the fleet has one consumer.
  func countedQueue(_ topology: Topology) -> String {
    let pausedQueues = paused.map { topology.name($0.origin) }
    return topology.queuesOfOneConsumer.first { !pausedQueues.contains($0) } ?? topology.acknowledgementQueue
  }

  // MARK: changes, which return whether something changed

  mutating func takeLanes(_ takes: Bool) -> Bool {
    defer { takesLanes = takes }
    return takes != takesLanes
  }

  mutating func pause(_ lanes: Set<WorkQueue>) -> Bool {
    defer { paused = lanes }
    return lanes != paused
  }

  /// The base prefetch is always used, the rest only while requests are small, because everything that the broker sends ahead
  /// must be read before anything else arrives.
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
