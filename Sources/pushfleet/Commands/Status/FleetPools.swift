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
    var places: [String: Int] = [:]
    for pool in workers.flatMap(\.pools) {
      let place = places[pool.name] ?? rows.count
      if place == rows.count {
        places[pool.name] = place
        rows.append(Row(name: pool.name))
      }
      rows[place].workers += 1
      rows[place].connections += pool.connections
      rows[place].streams += pool.streams
      if ["paused", "draining"].contains(pool.state) { rows[place].order = pool.state }
      guard pool.state == "in trouble" else { continue }
      rows[place].isInTrouble += 1
      if !pool.since.isEmpty, rows[place].since.isEmpty || pool.since < rows[place].since { rows[place].since = pool.since }
      if rows[place].reason.isEmpty { (rows[place].reason, rows[place].remedy) = (pool.reason, pool.remedy) }
    }
    rows.sort { ($1.isInTrouble, $1.order, $0.name) < ($0.isInTrouble, $0.order, $1.name) }
    inTrouble = max(workers.map(\.poolsInTrouble).max() ?? 0, rows.count { $0.isInTrouble > 0 })
  }
}
