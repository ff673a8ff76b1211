import AMQP
import Broker
import Wire

/// Detects that all work is done: send, fan-out, retry and quarantine queues were empty in several checks in a row. One or two
/// checks are not enough: a message that moves from an expired retry step to its work queue is in neither count, and a busy
/// broker can take hundreds of milliseconds to move it.
struct EmptinessCheck {
  /// Checks in a row, a tenth of a second apart.
  static let looks = 10

  let queues: [String]
  private var emptyLooks = 0
  /// Time of the first of the empty checks.
  private(set) var emptySince = MonotonicTime(nanoseconds: 0)

  init(_ topology: Topology) {
    queues = topology.allLaneQueues + topology.ladder.map(topology.retryQueue) + [topology.quarantineQueue]
  }

  /// - Parameter counts: ready messages per queue.
  /// - Returns: true if all were empty for long enough.
  mutating func observe(_ counts: [Int], at now: MonotonicTime) -> Bool {
    emptyLooks = counts.allSatisfy { $0 == 0 } ? emptyLooks + 1 : 0
    if emptyLooks <= 1 { emptySince = now }
    return emptyLooks >= Self.looks
  }
}

/// Decides when to log what an idle batch waits for: at once, then every half minute.
struct BatchNotice {
  static let pause = 30.0
  private var next: MonotonicTime?

  /// - Parameter queues: each with its ready messages.
  /// - Returns: the non-empty queues if a log line is due.
  mutating func due(_ queues: [(name: String, ready: Int)], at now: MonotonicTime) -> [String] {
    let filled = queues.filter { $0.ready > 0 }
    guard !filled.isEmpty, next.map({ now >= $0 }) ?? true else { return [] }
    next = now.advanced(bySeconds: Self.pause)
    return filled.map { "\($0.name): \($0.ready)" }
  }
}
