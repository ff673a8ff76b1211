struct FleetText {
  let picture: FleetPicture
  let width: Int
  /// True to highlight lines that need attention.
  let hasColour: Bool
  var listsPools = false

  var lines: [String] {
    let problems = [picture.problem, picture.registryProblem].compactMap(\.self).map { marked(cut($0), .bad) }
    // Problems come first: the screen may be too short for the queues.
    let sections = [
      [head] + problems, workers, controls, poolsInTrouble, latencies, queues, errors, trace, campaigns,
      listsPools ? allPools : [],
    ]
    return Array(sections.filter { !$0.isEmpty }.joined(separator: [""]))
  }

  private var head: String {
    cut("fleet \(picture.prefix) on \(picture.address), \(Figures.time(picture.at))")
  }

  private var workers: [String] {
    let idle = "take nothing from the lanes: every provider is in trouble"
    guard !picture.workers.isEmpty else {
      let words =
        picture.isIdle
        ? "no worker answers; those that run \(idle)"
        : picture.silent > 0
          ? "no worker answers; consumers of the lanes: \(picture.silent)" : "no worker is running: requests wait"
      return picture.problem == nil ? [marked(cut(words), .bad)] : []
    }
    var lines = table(
      [
        (.name("WORKER", least: 14), \.name),
        (.text("STATE", least: 10, rank: 1), { String($0.state.prefix { $0 != ":" }.prefix(24)) }),
        (.text("UP", least: 12, rank: 7), { $0.uptime.map(Figures.duration) ?? "-" }),
        (.figure("SHARDS", rank: 9), { Figures.count($0.shards) }), (.figure("IN HAND", rank: 6), { Figures.count($0.inHand) }),
        (.figure("ON STREAMS", rank: 8), { Figures.count($0.onStreams) }),
        (.figure("SENT/S", rank: 3), { rate($0.deliveredPerSecond) }),
        (.figure("FAILED/S", rank: 2), { rate($0.failedPerSecond) }),
        (.figure("SENT", rank: 5), { Figures.count($0.delivered) }), (.figure("FAILED", rank: 4), { Figures.count($0.failed) }),
      ], of: picture.workers
    ) { $0.state == "ok" ? nil : .bad }
    lines += picture.workers.filter { $0.state.contains(":") }.prefix(5).map { marked(cut("\($0.name): \($0.state)"), .bad) }
    if picture.isIdle { lines.append(marked(cut("workers \(idle)"), .bad)) }
    if picture.silent > 0 { lines.append(marked(cut("\(picture.silent) more shards consume but don't answer"), .bad)) }
    let versions = Set(picture.workers.map(\.version)).sorted()
    if versions.count > 1 {
      lines.append(marked(cut("workers of different versions: \(versions.joined(separator: ", "))"), .notice))
    }
    return lines
  }

  private var controls: [String] {
    guard !picture.controls.isEmpty else { return [] }
    let lines = TextTable(picture.controls, at: picture.at).lines(width: width)
    return lines.prefix(1) + lines.dropFirst().map { marked($0, .notice) }
  }

  private var queues: [String] {
    table(
      [
        (.name("QUEUE", least: 20), { $0.name.printable }),
        (.figure("READY", rank: 1), { $0.ready.map { Figures.count($0) } ?? "-" }),
        (.figure("CONSUMERS", rank: 2), { $0.consumers.map { Figures.count($0) } ?? "-" }),
        (.text("", least: 22, rank: 3), { $0.ready == nil ? "there is no such queue" : "" }),
      ], of: picture.queues
    ) { queue in
      if queue.ready == nil { return .bad }
      return queue.name == "\(picture.prefix).dead" && queue.ready ?? 0 > 0 ? .notice : nil
    }
  }

  private var latencies: [String] {
    let rows = FleetLatencies(picture.workers).rows
    return rows.isEmpty
      ? []
      : table(
        [
          (.name("LATENCY, LAST MINUTE", least: 20), \.name),
          (.figure("PUSHES", rank: 3), { Figures.count($0.histogram.count) }),
          (.figure("P50", rank: 2), { $0.text(0.5) }), (.figure("P99", rank: 1), { $0.text(0.99) }),
        ], of: rows)
  }

  private static let mostPools = 20

  private var poolsInTrouble: [String] {
    let pools = FleetPools(picture.workers)
    return table(
      Array(pools.rows.lazy.filter { $0.isInTrouble > 0 }.prefix(Self.mostPools)), of: pools,
      more: listsPools ? "in the list below" : "--pools lists them")
  }

  private var allPools: [String] {
    let pools = FleetPools(picture.workers)
    return table(pools.rows, of: pools, more: nil)
  }

  private func table(_ shown: [FleetPools.Row], of pools: FleetPools, more place: String?) -> [String] {
    guard !shown.isEmpty else { return [] }
    var lines = table(
      [
        (.name("PROVIDER", least: 24), \.name), (.text("STATE", least: 10, rank: 1), \.state),
        (.figure("CONN", rank: 3), { Figures.count($0.connections) }),
        (.figure("STREAMS", rank: 4), { Figures.count($0.streams) }), (.text("WHY", least: 20, rank: 2), \.reason),
      ], of: shown
    ) { $0.isInTrouble > 0 ? .bad : nil }
    var seen: Set<String> = [""]
    for row in shown where place != nil && seen.insert(row.remedy).inserted {
      let words = "\(row.reason): \(row.remedy)".split(separator: " ")
      // A link to a document may be longer than the line.
      lines += WrappedText.lines(words, first: "→ ", rest: "  ", width: width).map(cut)
    }
    let more = pools.inTrouble - shown.count
    if more > 0 { lines.append(marked(cut("\(Figures.count(more)) more in trouble\(place.map { ": \($0)" } ?? "")"), .bad)) }
    return lines
  }

  private var errors: [String] {
    let sums = picture.workers.flatMap(\.errors).reduce(into: [String: Int]()) { $0[$1.code, default: 0] += $1.count }
    let sorted = sums.sorted { $0.value != $1.value ? $0.value > $1.value : $0.key < $1.key }
    return sorted.isEmpty
      ? []
      : table(
        [(.text("ENDED AS", least: 12), { $0.key }), (.figure("PUSHES", rank: 1), { Figures.count($0.value) })],
        of: Array(sorted.prefix(10)))
  }

  /// The percentage is rounded down, so that it shows 100 only if all requests were traced.
  private var trace: [String] {
    let traced = picture.workers.reduce(0) { $0 + $1.traced }
    let all = picture.workers.reduce(traced) { $0 + $1.untraced }
    return all == 0
      ? [] : [cut("the trace kept \(traced * 100 / all) % of the requests since the workers began, failed ones first")]
  }

  private var campaigns: [String] {
    guard !picture.campaigns.isEmpty else { return [] }
    return CampaignTable.text(picture.campaigns, withBars: false, width: width).split(separator: "\n").map(String.init)
  }

  // MARK: lines

  private enum Mark {
    case notice, bad
  }

  private func table<Row>(
    _ columns: [(TextTable.Column, (Row) -> String)], of rows: [Row], mark: (Row) -> Mark? = { _ in nil }
  ) -> [String] {
    let lines = TextTable(columns, of: rows).lines(width: width)
    return lines.prefix(1) + zip(lines.dropFirst(), rows).map { marked($0, mark($1)) }
  }

  private func cut(_ line: String) -> String { Shortened.end(line, to: width) }

  private func marked(_ line: String, _ mark: Mark?) -> String {
    guard hasColour, let mark else { return line }
    return "\u{1B}[\(mark == .bad ? 31 : 33)m\(line)\u{1B}[0m"
  }

  private func rate(_ value: Double) -> String { Figures.count(Int64(value.isFinite ? max(0, min(value, 1e15)) : 0)) }
}
