import PushCore

/// A fleet's picture for people.
struct FleetText {
  private let picture: FleetPicture
  private let width: Int
  private let hasColour: Bool
  private let listsPools: Bool

  /// - Parameters:
  ///   - width: no line is longer.
  ///   - hasColour: marks what needs somebody to look.
  ///   - listsPools: also those that are well.
  init(_ picture: FleetPicture, width: Int, hasColour: Bool, listsPools: Bool = false) {
    self.listsPools = listsPools
    self.picture = picture
    self.width = width
    self.hasColour = hasColour
  }

  var lines: [String] {
    let problem = picture.problem.map { marked(cut($0), .bad) }
    // What is wrong comes first: a screen may end before the queues do.
    let sections = [
      [head, problem].compactMap(\.self), workers, poolsInTrouble, latencies, queues, errors, trace, campaigns,
      listsPools ? allPools : [],
    ]
    return Array(sections.filter { !$0.isEmpty }.joined(separator: [""]))
  }

  private var head: String {
    cut("fleet \(picture.prefix) on \(picture.address), \(Figures.time(picture.at))")
  }

  private static let workerColumns: [TextTable.Column] = [
    .name("WORKER", least: 14), .text("STATE", least: 10, rank: 1), .text("UP", least: 12, rank: 7), .figure("SHARDS", rank: 9),
    .figure("HELD", rank: 6), .figure("ON STREAMS", rank: 8), .figure("SENT/S", rank: 3), .figure("FAILED/S", rank: 2),
    .figure("SENT", rank: 5), .figure("FAILED", rank: 4),
  ]

  private var workers: [String] {
    let idle = "take nothing from the lanes: every provider is in trouble"
    guard !picture.workers.isEmpty else {
      let words =
        picture.isIdle
        ? "no worker answers; those that run \(idle)"
        : picture.silent > 0
          ? "no worker answers; the lanes have \(picture.silent) consumers" : "no worker is running: requests wait"
      return [marked(cut(words), .bad)]
    }
    let rows = picture.workers.map { worker in
      [
        worker.name, String(worker.state.prefix { $0 != ":" }.prefix(24)), worker.uptime.map(Figures.duration) ?? "-",
        count(worker.shards), count(worker.inHand),
        count(worker.onStreams), rate(worker.deliveredPerSecond), rate(worker.failedPerSecond), count(worker.delivered),
        count(worker.failed),
      ]
    }
    var lines = table(Self.workerColumns, rows) { picture.workers[$0].state == "ok" ? nil : .bad }
    lines += picture.workers.filter { $0.state.contains(":") }.prefix(5).map { marked(cut("\($0.name): \($0.state)"), .bad) }
    if picture.isIdle { lines.append(marked(cut("workers \(idle)"), .bad)) }
    if picture.silent > 0 { lines.append(marked(cut("\(picture.silent) more shards consume, and don't answer"), .bad)) }
    let versions = Set(picture.workers.map(\.version)).sorted()
    if versions.count > 1 {
      lines.append(marked(cut("workers of different versions: \(versions.joined(separator: ", "))"), .notice))
    }
    return lines
  }

  private var queues: [String] {
    let rows = picture.queues.map { queue in
      [
        queue.name.printable, queue.ready.map { count($0) } ?? "-", queue.consumers.map { count($0) } ?? "-",
        queue.ready == nil ? "there is no such queue" : "",
      ]
    }
    let columns: [TextTable.Column] = [
      .name("QUEUE", least: 20), .figure("READY", rank: 1), .figure("CONSUMERS", rank: 2), .text("", least: 22, rank: 3),
    ]
    return table(columns, rows) { index in
      let queue = picture.queues[index]
      if queue.ready == nil { return .bad }
      return queue.name == "\(picture.prefix).dead" && queue.ready ?? 0 > 0 ? .notice : nil
    }
  }

  private var latencies: [String] {
    let rows = FleetLatencies(picture.workers).rows.map { row in
      [row.name, count(row.histogram.count), row.text(0.5), row.text(0.99)]
    }
    let columns: [TextTable.Column] = [
      .name("LATENCY, LAST MINUTE", least: 20), .figure("PUSHES", rank: 3), .figure("P50", rank: 2), .figure("P99", rank: 1),
    ]
    return rows.isEmpty ? [] : table(columns, rows)
  }

  /// Of those in trouble, before everything else.
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
    let rows = shown.map { [$0.name, $0.state, count($0.connections), count($0.streams), $0.reason] }
    let columns: [TextTable.Column] = [
      .name("PROVIDER", least: 24), .text("STATE", least: 10, rank: 1), .figure("CONN", rank: 3), .figure("STREAMS", rank: 4),
      .text("WHY", least: 20, rank: 2),
    ]
    var lines = table(columns, rows) { shown[$0].isInTrouble > 0 ? .bad : nil }
    var seen: Set<String> = [""]
    for row in shown where place != nil && seen.insert(row.remedy).inserted {
      let words = "\(row.reason): \(row.remedy)".split(separator: " ")
      // A place in a document may be longer than the line.
      lines += WrappedText.lines(words, first: "→ ", rest: "  ", width: width).map(cut)
    }
    let more = pools.inTrouble - shown.count
    if more > 0 { lines.append(marked(cut("\(count(more)) more in trouble\(place.map { ": \($0)" } ?? "")"), .bad)) }
    return lines
  }

  private var errors: [String] {
    let sums = picture.workers.flatMap(\.errors).reduce(into: [String: Int]()) { $0[$1.code, default: 0] += $1.count }
    let sorted = sums.sorted { $0.value != $1.value ? $0.value > $1.value : $0.key < $1.key }
    let columns: [TextTable.Column] = [.text("ENDED AS", least: 12), .figure("PUSHES", rank: 1)]
    return sorted.isEmpty ? [] : table(columns, sorted.prefix(10).map { [$0.key, count($0.value)] })
  }

  /// Rounded down: not all are kept before the last one is.
  private var trace: [String] {
    let traced = picture.workers.reduce(0) { $0 + $1.traced }
    let all = picture.workers.reduce(traced) { $0 + $1.untraced }
    return all == 0
      ? [] : [cut("the trace kept \(traced * 100 / all) % of the requests since the workers began, failed ones first")]
  }

  private var campaigns: [String] {
    if let problem = picture.registryProblem { return [marked(cut("campaigns: \(problem)"), .bad)] }
    guard !picture.campaigns.isEmpty else { return [] }
    return CampaignTable(picture.campaigns).text(withBars: false, width: width).split(separator: "\n").map(String.init)
  }

  // MARK: lines

  private enum Mark {
    case notice, bad
  }

  private func table(_ columns: [TextTable.Column], _ rows: [[String]], mark: (Int) -> Mark? = { _ in nil }) -> [String] {
    let lines = TextTable(columns, rows: rows).lines(width: width)
    return lines.enumerated().map { index, line in index == 0 ? line : marked(line, mark(index - 1)) }
  }

  private func cut(_ line: String) -> String { Shortened.end(line, to: width) }

  private func marked(_ line: String, _ mark: Mark?) -> String {
    guard hasColour, let mark else { return line }
    return "\u{1B}[\(mark == .bad ? 31 : 33)m\(line)\u{1B}[0m"
  }

  private func count(_ value: Int) -> String { Figures.count(value) }
  private func rate(_ value: Double) -> String { Figures.count(Int64(value.isFinite ? max(0, min(value, 1e15)) : 0)) }
}
