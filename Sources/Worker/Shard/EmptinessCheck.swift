import AMQP
import Broker
import Wire

/// Whether everything is done: the send, fan-out, retry and quarantine queues empty at several looks in a row.
///
/// A look or two are not enough: a message on its way from an expired retry step to its work queue is counted in neither, and a busy
/// broker can take hundreds of milliseconds to move it.
struct EmptinessCheck {
  /// A tenth of a second apart.
  static let looks = 10

  let queues: [String]
  private var emptyLooks = 0
  /// When the first look of those in a row was.
  private(set) var emptySince = MonotonicTime(nanoseconds: 0)

  init(prefix: String, steps: [RetryStep]) {
    let topology = Topology(prefix: prefix, ladder: steps)
    queues = Topology.lanes.map(topology.name) + steps.map(topology.retryQueue) + [topology.quarantineQueue]
  }

  /// - Parameter counts: ready messages of each queue.
  /// - Returns: true when all have been empty for long enough.
  mutating func observe(_ counts: [Int], at now: MonotonicTime) -> Bool {
    emptyLooks = counts.allSatisfy { $0 == 0 } ? emptyLooks + 1 : 0
    if emptyLooks <= 1 { emptySince = now }
    return emptyLooks >= Self.looks
  }
}

/// What a batch that has nothing in hand waits for: said at once, then every half minute.
struct BatchNotice {
  /// Seconds.
  static let pause = 30.0
  private var next: MonotonicTime?

  /// - Parameter queues: with what is ready in each.
  /// - Returns: those that aren't empty, where they are to be said.
  mutating func due(_ queues: [(name: String, ready: Int)], at now: MonotonicTime) -> [String] {
    let filled = queues.filter { $0.ready > 0 }
    guard !filled.isEmpty, next.map({ now >= $0 }) ?? true else { return [] }
    next = now.advanced(bySeconds: Self.pause)
    return filled.map { "\($0.name): \($0.ready)" }
  }
}
