import Broker
import DeviceRegistry
import PushCore

/// A fleet at a moment.
struct FleetPicture {
  struct Queue {
    var name: String
    /// Messages ready; nil where there is no such queue.
    var ready: Int?
    /// nil where nobody has counted them.
    var consumers: Int? = 0
  }

  var prefix: String
  /// Of the broker.
  var address: String
  /// Unix milliseconds.
  var at: Int64
  var queues: [Queue] = []
  var workers: [WorkerAnswer] = []
  /// Consumers of the lane that every shard of every worker consumes.
  var consumers = 0
  var campaigns: [Campaign] = []
  /// Why the picture is an old one.
  var problem: String?
  /// Why the registry says nothing; nil where it does, or where none is configured.
  var registryProblem: String?

  /// Shards that haven't answered.
  var silent: Int { max(0, consumers - workers.reduce(0) { $0 + $1.shards }) }

  /// Workers run, and none of them takes requests from the lanes.
  var isIdle: Bool {
    var seen = LaneConsumers(Topology(prefix: prefix, ladder: []))
    for queue in queues { seen.note(queue.name, queue.consumers ?? 0) }
    return seen.areIdle
  }

  var json: [[UInt8]] {
    let queues = queues.map { queue -> JSONObject in
      ["kind": "queue", "queue": queue.name, "ready": queue.ready, "consumers": queue.consumers]
    }
    // The worker's own object, with its kind before the rest.
    let workers = workers.map { Array(#"{"kind":"worker","#.utf8) + $0.json.drop { $0 != UInt8(ascii: "{") }.dropFirst() }
    let campaigns = campaigns.map { ["kind": "campaign"] + $0.json }
    let fleet: JSONObject = [
      "kind": "fleet", "prefix": prefix, "broker": address, "at": Timestamp.text(at), "workers": self.workers.count,
      "silent_shards": silent, "problem": problem, "registry_problem": registryProblem,
    ]
    return queues.map(\.line) + workers + campaigns.map(\.line) + [fleet.line]
  }
}
