import AMQP
import Broker
import Wire

/// A shard's subscriptions to the lanes and the quarantine, and which of them are active.
struct LaneSubscriptions {
  /// A source of a lane has the number of the lane's queue.
  enum Source {
    case lane(WorkQueue, Int)
    /// The part of a lane's prefetch that is not used while requests are large.
    case more(WorkQueue, Int)
    /// Part number `part` of the deliveries that are read ahead, beyond the prefetch.
    case ahead(WorkQueue, Int, part: Int)
    case quarantine
  }

  /// Reading ahead works in parts of this many deliveries, each with its own consumer and channel.
  private static let part = 10_000
  private static let parts = 10

  /// In the order of the consumer's subscriptions.
  let sources: [Source]
  private let prefetch: Int
  private let fanOutPrefetch: Int
  /// The consumer priority for each queue of a lane of several queues. A queue gives a request to the consumer with the highest
  /// priority that has room, so a repeated request comes to the shard that knows it. Empty for lanes of one queue.
  private let priorities: [Int64]
  private let laneQueues: Int
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

  /// - Parameters:
  ///   - laneQueues: the queues of each lane of requests.
  ///   - takesQuarantine: true for one shard per process, so that a fatal message takes no second one with it.
  init(prefetch: Int, fanOutPrefetch: Int, laneQueues: Int, takesQuarantine: Bool, random: inout RandomSource) {
    self.prefetch = prefetch
    self.fanOutPrefetch = fanOutPrefetch
    self.laneQueues = laneQueues
    let queues = 0..<laneQueues
    priorities = laneQueues == 1 ? [] : queues.map { _ in Int64.random(in: 1..<1 << 30, using: &random) }
    var sources = WorkQueue.allCases.flatMap { lane in (lane.isFanOut ? 0..<1 : queues).map { Source.lane(lane, $0) } }
    if prefetch / laneQueues > Self.basePrefetch / laneQueues {
      sources += WorkQueue.allCases.filter { !$0.isFanOut }.flatMap { lane in queues.map { .more(lane, $0) } }
    }
    sources += queues.map { .ahead(.sendHigh, $0, part: 0) }
    sources += (0..<Self.parts).flatMap { part in queues.map { .ahead(.sendNormal, $0, part: part) } }
    if takesQuarantine { sources.append(.quarantine) }
    self.sources = sources
  }

  private var basePrefetch: Int { min(prefetch, Self.basePrefetch) }

  /// The share of each queue of a lane in the lane's prefetch.
  private func share(_ prefetch: Int) -> Int { max(prefetch / laneQueues, 1) }

  func subscription(_ source: Source, _ topology: Topology) -> Consumer.Subscription {
    func of(
      _ lane: WorkQueue, _ number: Int, prefetch: Int, isOptional: Bool = true, channel: Int = 1
    ) -> Consumer.Subscription {
      var arguments = FieldTable()
      if !lane.isFanOut, laneQueues > 1 { arguments.append("x-priority", .integer(priorities[number])) }
      return .init(
        queue: topology.queue(of: lane, number: number), prefetch: UInt16(prefetch), isOptional: isOptional,
        channel: UInt16(channel), arguments: arguments)
    }
    switch source {
    case .lane(let lane, let number):
      return of(lane, number, prefetch: lane.isFanOut ? fanOutPrefetch : share(basePrefetch), isOptional: false)
    case .more(let lane, let number): return of(lane, number, prefetch: share(prefetch) - share(basePrefetch))
    case .ahead(let lane, let number, let part): return of(lane, number, prefetch: share(Self.part), channel: 2 + part)
    case .quarantine: return .init(queue: topology.quarantineQueue, prefetch: 1)
    }
  }

  func isWanted(_ source: Source) -> Bool {
    switch source {
    case .lane(let lane, _): takes(lane)
    case .more(let lane, _): takes(lane) && takesMore
    case .ahead(let lane, _, let part): takes(lane) && (part + 1) * Self.part <= ahead
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
