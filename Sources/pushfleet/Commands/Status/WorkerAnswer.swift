import Foundation
import Wire

/// A worker's status answer. It is only displayed, because any client of the broker can send one.
struct WorkerAnswer {
  struct Pool {
    var name: String
    var state: String
    /// Start of the trouble; empty if there is none.
    var since: String
    var reason: String
    /// The remedy, with a link to the documentation; empty if there is no trouble.
    var remedy: String
    var connections: Int
    var streams: Int
  }

  var name: String
  var version: String
  var state: String
  /// Seconds; nil if unknown.
  var uptime: Double?
  var shards: Int
  var inHand: Int
  var onStreams: Int
  var delivered: Int
  var failed: Int
  /// Requests that are recorded for `pushfleet trace`, and those that aren't.
  var traced: Int
  var untraced: Int
  var deliveredPerSecond: Double
  var failedPerSecond: Double
  var errors: [(code: String, count: Int)]
  /// All pools in trouble, and some or all of the others.
  var pools: [Pool]
  var poolsInTrouble: Int
  /// Of the last minute.
  var latencies: [(name: String, histogram: Histogram, isExact: Bool)]
  var holds: [(app: String, ready: Int)]
  /// Pushes on the ladder for paused credentials.
  var waiting: [(credential: String, pushes: Int)]
  /// True also without a registry.
  var canWriteRegistry: Bool
  /// The answer as received, on one line.
  let json: [UInt8]

  /// - Parameter now: Unix seconds.
  init?(_ body: [UInt8], now: Double) {
    guard let object = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any],
      let name = object["worker"] as? String
    else { return nil }
    func number(_ key: String) -> Int { Self.count(object[key]) }
    func figure(_ key: String) -> Double { (object[key] as? NSNumber)?.doubleValue ?? 0 }
    func text(_ value: Any?) -> String { (value as? String ?? "").printable }
    self.name = name.printable
    version = text(object["version"])
    state = text(object["state"])
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    uptime = (object["started_at"] as? String).flatMap { try? style.parse($0) }.map { max(0, now - $0.timeIntervalSince1970) }
    shards = number("shards")
    inHand = number("in_hand")
    onStreams = number("on_streams")
    delivered = number("delivered")
    failed = number("failed")
    (traced, untraced) = (number("trace_noted"), number("trace_left_out"))
    deliveredPerSecond = figure("delivered_per_second")
    failedPerSecond = figure("failed_per_second")
    errors = (object["errors"] as? [String: Any] ?? [:]).map { ($0.key.printable, Self.count($0.value)) }
      .sorted { $0.1 != $1.1 ? $0.1 > $1.1 : $0.0 < $1.0 }
    pools = (object["pools"] as? [[String: Any]] ?? []).map { pool in
      func number(_ key: String) -> Int { Self.count(pool[key]) }
      let remedy = [text(pool["remedy"]), text(pool["runbook"])].filter { !$0.isEmpty }.joined(separator: ": ")
      return Pool(
        name: text(pool["name"]), state: text(pool["state"]), since: text(pool["since"]), reason: text(pool["reason"]),
        remedy: remedy, connections: number("connections"), streams: number("streams"))
    }
    poolsInTrouble = number("pools_in_trouble")
    latencies = (object["latencies"] as? [[String: Any]] ?? []).compactMap(Self.latency)
    holds = (object["holds"] as? [[String: Any]] ?? []).map { (text($0["app"]), Self.count($0["ready"])) }
    waiting = (object["waiting"] as? [[String: Any]] ?? []).map { (text($0["credential"]), Self.count($0["pushes"])) }
    canWriteRegistry = (object["registry"] as? [String: Any])?["writable"] as? Bool ?? true
    json = body.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }
  }

  /// Counts that are negative or above 10¹² become 0, so that sums can't overflow.
  private static func count(_ value: Any?) -> Int {
    guard let number = value as? NSNumber, (0...1e12).contains(number.doubleValue) else { return 0 }
    return number.intValue
  }

  private static func latency(_ object: [String: Any]) -> (name: String, histogram: Histogram, isExact: Bool)? {
    guard let bounds = object["bounds"] as? [NSNumber], let counts = object["counts"] as? [NSNumber],
      bounds.count <= mostBounds,
      let histogram = Histogram(bounds: bounds.map(\.doubleValue), counts: counts.map { count($0) })
    else { return nil }
    func text(_ key: String) -> String { (object[key] as? String ?? "").printable }
    switch text("of") {
    case "provider_answer": return ("\(text("provider")): answers", histogram, true)
    case "publish_to_answer":
      // Older workers don't send this field; their times have whole seconds.
      let isExact = object["whole_seconds"] as? Int == 0
      return ("\(text("provider")): from publishing, lane \(text("lane"))", histogram, isExact)
    default: return nil
    }
  }

  private static let mostBounds = 100
}
