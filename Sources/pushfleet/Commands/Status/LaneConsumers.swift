import Broker

/// What the consumers of a fleet's queues say of its workers: each reads the quarantine as long as it runs, and the lanes only while a
/// provider serves it.
struct LaneConsumers {
  private let lanes: [String]
  private let quarantine: String
  private var ofLanes = 0
  private var ofQuarantine = 0

  init(_ topology: Topology) {
    lanes = Topology.lanes.map(topology.name)
    quarantine = topology.quarantineQueue
  }

  mutating func note(_ queue: String, _ consumers: Int) {
    if lanes.contains(queue) { ofLanes += consumers }
    if queue == quarantine { ofQuarantine = consumers }
  }

  /// Nobody consumes a lane.
  var areNone: Bool { ofLanes == 0 }
  /// Workers run, and none of them takes requests.
  var areIdle: Bool { areNone && ofQuarantine > 0 }
}
