import AMQP

/// Whether everything is done: the send, fan-out, retry and quarantine queues empty at several looks in a row.
///
/// A look or two are not enough: a message on its way from an expired retry step to its work queue is counted in neither, and a busy
/// broker can take hundreds of milliseconds to move it.
struct EmptinessCheck {
  /// A tenth of a second apart.
  static let looks = 10

  let queues: [String]
  private var emptyLooks = 0

  init(prefix: String, steps: [RetryStep]) {
    let topology = Topology(prefix: prefix, ladder: steps)
    queues = Topology.lanes.map(topology.name) + steps.map(topology.retryQueue) + [topology.quarantineQueue]
  }

  /// - Parameter counts: ready messages of each queue.
  /// - Returns: true when all have been empty for long enough.
  mutating func observe(_ counts: [Int]) -> Bool {
    emptyLooks = counts.allSatisfy { $0 == 0 } ? emptyLooks + 1 : 0
    return emptyLooks >= Self.looks
  }
}
