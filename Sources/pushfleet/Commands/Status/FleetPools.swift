/// The pools of all workers, merged by credential.
struct FleetPools {
  struct Row {
    var name: String
    /// Number of workers whose pool is in trouble.
    var isInTrouble = 0
    /// What an operator has ordered: `paused` or `draining`; empty without an order.
    var order = ""
    var workers = 0
    var connections = 0
    var streams = 0
    var since = ""
    var reason = ""
    var remedy = ""

    var state: String {
      switch isInTrouble {
      case 0: order.isEmpty ? "ok" : order
      case workers: "in trouble"
      default: "in trouble (\(isInTrouble) of \(workers))"
      }
    }
  }

  /// Pools in trouble first.
  private(set) var rows: [Row] = []
  /// Pools in trouble, named or not: the highest number that one worker reports.
  private(set) var inTrouble = 0

  init(_ workers: [WorkerAnswer]) {
    rows = Dictionary(grouping: workers.flatMap(\.pools), by: \.name).map { name, pools in
      var row = Row(name: name, workers: pools.count)
      for pool in pools {
        row.connections += pool.connections
        row.streams += pool.streams
        if ["paused", "draining"].contains(pool.state) { row.order = pool.state }
        guard pool.state == "in trouble" else { continue }
        row.isInTrouble += 1
        if !pool.since.isEmpty, row.since.isEmpty || pool.since < row.since { row.since = pool.since }
        if row.reason.isEmpty { (row.reason, row.remedy) = (pool.reason, pool.remedy) }
      }
      return row
    }
    rows.sort { ($1.isInTrouble, $1.order, $0.name) < ($0.isInTrouble, $0.order, $1.name) }
    inTrouble = max(workers.map(\.poolsInTrouble).max() ?? 0, rows.count { $0.isInTrouble > 0 })
  }
}
