import Broker
import DeviceRegistry
import PushCore

struct FleetPicture {
  struct Queue {
    var name: String
    /// Ready messages; nil if the queue doesn't exist.
    var ready: Int?
    /// nil if unknown.
    var consumers: Int? = 0
  }

  var prefix: String
  var address: String
  var at: Int64
  var queues: [Queue] = []
  var workers: [WorkerAnswer] = []
  /// Consumers of the lane that each shard of each worker consumes once.
  var consumers = 0
  var campaigns: [Campaign] = []
  /// Applications, lanes, credentials and webhooks that operators have stopped or slowed down.
  var controls: [Control] = []
  /// Why the picture is out of date.
  var problem: String?
  /// Why the registry can't be read or written; nil if it can, or if none is configured.
  var registryProblem: String?

  /// Nil if all workers can write to the registry.
  var unwritable: String? {
    let count = workers.count { !$0.canWriteRegistry }
    guard count > 0 else { return nil }
    return "\(count) of \(workers.count) workers can't write to the registry: `pushfleet doctor` says why"
  }

  var silent: Int { max(0, consumers - workers.reduce(0) { $0 + $1.shards }) }

  /// True if workers run but none consumes the lanes.
  var isIdle: Bool {
    Topology(prefix: prefix, ladder: [], laneQueues: Topology.mostLaneQueues)
      .areLanesIdle(Set(queues.lazy.filter { $0.consumers ?? 0 > 0 }.map(\.name)))
  }

  var json: [[UInt8]] {
    let queues = queues.map { queue -> JSONObject in
      ["kind": "queue", "queue": queue.name, "ready": queue.ready, "consumers": queue.consumers]
    }
    // The worker's own object, with `kind` as its first member.
    let workers = workers.map { Array(#"{"kind":"worker","#.utf8) + $0.json.drop { $0 != UInt8(ascii: "{") }.dropFirst() }
    let campaigns = campaigns.map { (["kind": "campaign"] + $0.json).line }
    let controls = controls.map { (["kind": "control"] + $0.namedJSON(at: at)).line }
    let fleet: JSONObject = [
      "kind": "fleet", "prefix": prefix, "broker": address, "at": Timestamp.text(at), "workers": self.workers.count,
      "silent_shards": silent, "problem": problem, "registry_problem": registryProblem,
    ]
    return queues.map(\.line) + workers + campaigns + controls + [fleet.line]
  }
}

extension Topology {
  /// True if workers run but none consumes the lanes. A worker consumes the quarantine always, the lanes while a provider is available.
  /// - Parameter consumed: queues with consumers.
  func areLanesIdle(_ consumed: Set<String>) -> Bool {
    consumed.contains(quarantineQueue) && consumed.isDisjoint(with: allLaneQueues)
  }
}
