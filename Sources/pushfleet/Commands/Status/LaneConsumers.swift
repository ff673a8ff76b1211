import Broker

/// Consumer counts that show whether workers run: a worker always consumes the quarantine queue, but the lanes only while a
/// provider is available.
struct LaneConsumers {
  private let lanes: [String]
  private let quarantine: String
  private var ofLanes = 0
  private var ofQuarantine = 0

  init(_ topology: Topology) {
    lanes = topology.allLaneQueues
    quarantine = topology.quarantineQueue
  }

  mutating func note(_ queue: String, _ consumers: Int) {
    if lanes.contains(queue) { ofLanes += consumers }
    if queue == quarantine { ofQuarantine = consumers }
  }

  var areNone: Bool { ofLanes == 0 }
  /// True if workers run but none consumes the lanes.
  var areIdle: Bool { areNone && ofQuarantine > 0 }
}
