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
    let trouble = listsPools ? [] : pools
    let sections = [
      [head, problem].compactMap(\.self), workers, trouble, latencies, queues, errors, campaigns, listsPools ? pools : [],
    ]
    return Array(sections.filter { !$0.isEmpty }.joined(separator: [""]))
  }

  private var head: String {
    let time = String(decoding: Timestamp.text(picture.at).prefix(19), as: UTF8.self) + "Z"
    return cut("fleet \(picture.prefix) on \(picture.address), \(time)")
  }

  private var workers: [String] {
    guard !picture.workers.isEmpty else {
      let words =
        picture.silent > 0
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
    let heads = ["WORKER", "STATE", "UP", "SHARDS", "HELD", "ON STREAMS", "SENT/S", "FAILED/S", "SENT", "FAILED"]
    var lines = table(heads, rows, figures: [3, 4, 5, 6, 7, 8, 9]) { picture.workers[$0].state == "ok" ? nil : .bad }
    lines += picture.workers.filter { $0.state.contains(":") }.prefix(5).map { marked(cut("\($0.name): \($0.state)"), .bad) }
    if picture.silent > 0 { lines.append(marked(cut("\(picture.silent) more shards consume, and don't answer"), .bad)) }
    return lines
  }

  private var queues: [String] {
    let rows = picture.queues.map { queue in
      [
        queue.name.printable, queue.ready.map { count($0) } ?? "-", queue.consumers.map { count($0) } ?? "-",
        queue.ready == nil ? "there is no such queue" : "",
      ]
    }
    return table(["QUEUE", "READY", "CONSUMERS", ""], rows, figures: [1, 2]) { index in
      let queue = picture.queues[index]
      if queue.ready == nil { return .bad }
      return queue.name == "\(picture.prefix).dead" && queue.ready ?? 0 > 0 ? .notice : nil
    }
  }

  private var latencies: [String] {
    let rows = FleetLatencies(picture.workers).rows.map { row in
      [row.name, count(row.histogram.count), row.text(0.5), row.text(0.99)]
    }
    return rows.isEmpty ? [] : table(["LATENCY, LAST MINUTE", "PUSHES", "P50", "P99"], rows, figures: [1, 2, 3])
  }

  /// Of those in trouble, where not all are asked for.
  private static let mostPools = 20

  private var pools: [String] {
    let pools = FleetPools(picture.workers)
    let shown = listsPools ? pools.rows[...] : pools.rows.filter { $0.isInTrouble > 0 }.prefix(Self.mostPools)
    guard !shown.isEmpty else { return [] }
    let rows = shown.map { [$0.name, $0.state, count($0.connections), count($0.streams), $0.reason] }
    var lines = table(["PROVIDER", "STATE", "CONN", "STREAMS", "WHY"], rows, figures: [2, 3]) {
      shown[shown.startIndex + $0].isInTrouble > 0 ? .bad : nil
    }
    let more = pools.inTrouble - shown.count
    if more > 0 { lines.append(marked(cut("\(count(more)) more in trouble\(listsPools ? "" : ": --pools lists them")"), .bad)) }
    return lines
  }

  private var errors: [String] {
    let sums = picture.workers.flatMap(\.errors).reduce(into: [String: Int]()) { $0[$1.code, default: 0] += $1.count }
    let sorted = sums.sorted { $0.value != $1.value ? $0.value > $1.value : $0.key < $1.key }
    return sorted.isEmpty
      ? [] : table(["FAILED AS", "PUSHES"], sorted.prefix(10).map { [$0.key, count($0.value)] }, figures: [1])
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

  private func table(_ heads: [String], _ rows: [[String]], figures: Set<Int> = [], mark: (Int) -> Mark?) -> [String] {
    let lines = TextTable(heads: heads, rows: rows, figures: figures).text(width: width).split(separator: "\n").map { line in
      String(line.reversed().drop { $0 == " " }.reversed())
    }
    return lines.enumerated().map { index, line in index == 0 ? line : marked(line, mark(index - 1)) }
  }

  private func table(_ heads: [String], _ rows: [[String]], figures: Set<Int> = []) -> [String] {
    table(heads, rows, figures: figures) { _ in nil }
  }

  private func cut(_ line: String) -> String { line.count > width ? line.prefix(max(0, width - 1)) + "…" : line }

  private func marked(_ line: String, _ mark: Mark?) -> String {
    guard hasColour, let mark else { return line }
    return "\u{1B}[\(mark == .bad ? 31 : 33)m\(line)\u{1B}[0m"
  }

  private func count(_ value: Int) -> String { Figures.count(Int64(value)) }
  private func rate(_ value: Double) -> String { Figures.count(Int64(value.isFinite ? max(0, min(value, 1e15)) : 0)) }
}
