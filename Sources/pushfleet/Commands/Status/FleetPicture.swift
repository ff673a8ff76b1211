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
    var lines = queues.map { queue in
      var line = JSONObjectWriter()
      line.set("kind", "queue")
      line.set("queue", queue.name)
      line.set("ready", queue.ready.map(Int64.init))
      line.set("consumers", queue.consumers.map(Int64.init))
      return line.closed()
    }
    // The worker's own object, with its kind before the rest.
    lines += workers.map { Array(#"{"kind":"worker","#.utf8) + $0.json.drop { $0 != UInt8(ascii: "{") }.dropFirst() }
    lines += campaigns.map { Array(#"{"kind":"campaign","#.utf8) + $0.json.dropFirst() }
    var fleet = JSONObjectWriter()
    fleet.set("kind", "fleet")
    fleet.set("prefix", prefix)
    fleet.set("broker", address)
    fleet.set("at", time: at)
    fleet.set("workers", Int64(workers.count))
    fleet.set("silent_shards", Int64(silent))
    fleet.set("problem", problem)
    fleet.set("registry_problem", registryProblem)
    return lines + [fleet.closed()]
  }
}
