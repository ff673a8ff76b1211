import Delivery
import PushCore
import Reactor
import StatusHTTP
import Synchronization
import Wire

/// Serves `/metrics` and the probes `/livez` and `/readyz`, and to this machine also a page at `/` with `/status.json` and
/// `/history.json`: it has no login, and shows applications and operators.
final class MetricsServer {
  private static let page = PageFiles(["": PackageResources.worker_html, "worker.js": PackageResources.worker_js])

  private let server: HTTPServer
  private let report: @Sendable () -> WorkerReport
  private let history: WorkerHistory

  /// - Parameters:
  ///   - version: the program's version.
  ///   - clock: returns the current time.
  init(
    _ endpoint: Endpoint, _ board: ShardBoard, version: String,
    clock: @escaping @Sendable () -> MonotonicTime = { SystemClock.monotonic }
  ) throws(HTTPServerError) {
    let history = WorkerHistory()
    let report = { @Sendable in WorkerReport(board, version: version, now: clock()) }
    self.history = history
    self.report = report
    let page = { @Sendable (path: String, isFromThisMachine: Bool) -> HTTPAnswer in
      guard isFromThisMachine || Self.isForAll(path) else {
        return .text(403, "other machines may read /metrics, /livez and /readyz: use the console, or forward this port\n")
      }
      switch path {
      case "/status.json": return Self.json(report().json.line)
      case "/history.json": return Self.json(Array(history.json.utf8))
      case "/metrics": return .init(status: 200, contentType: "text/plain; version=0.0.4", body: MetricsText.of(report()))
      case "/livez":
        let health = board.health(at: clock())
        return Self.probe(health.isAlive, health.liveness)
      case "/readyz":
        let health = board.health(at: clock())
        return Self.probe(health.isReady, health.readiness)
      default:
        return Self.page.answer(String(path.dropFirst()))
          ?? .init(
            status: 404, contentType: "text/plain",
            body: "there are /, /metrics, /status.json, /history.json, /livez and /readyz\n")
      }
    }
    server = try HTTPServer(host: endpoint.host, port: endpoint.port) { path, isFromThisMachine, reply in
      reply.send(page(path, isFromThisMachine))
    }
  }

  static func isForAll(_ path: String) -> Bool { ["/metrics", "/livez", "/readyz"].contains(path) }

  private static func json(_ text: [UInt8]) -> HTTPAnswer {
    let headers = ["Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"]
    return .init(status: 200, contentType: "application/json", headers: headers, body: text + [UInt8(ascii: "\n")])
  }

  private static func probe(_ isGood: Bool, _ sentence: String) -> HTTPAnswer {
    .init(status: isGood ? 200 : 503, contentType: "text/plain", body: sentence + "\n")
  }

  /// Call about once a second.
  func lookAround() {
    server.endSlow()
    history.note(at: SystemClock.unixMilliseconds, report)
  }

  func stop() { server.stop() }
}

/// A few figures of the last quarter of an hour, for the page's charts.
final class WorkerHistory: Sendable {
  /// Milliseconds between two samples.
  private static let pause: Int64 = 5_000
  private static let most = 180

  private struct Sample {
    /// Unix milliseconds.
    var at: Int64
    /// Totals since the start: delivered, failed, retried, parked, dead letters.
    var counts: [Int]
    var cpuSeconds: Double
    /// Answers of all providers, by the bounds of ``PushTimes/answerBounds``.
    var answers: [Int]
  }

  private let samples = Mutex<[Sample]>([])

  /// Call about once a second.
  /// - Parameter report: called only if a sample is due.
  func note(at now: Int64, _ report: () -> WorkerReport) {
    guard samples.withLock({ $0.last.map { now - $0.at >= Self.pause } ?? true }) else { return }
    let report = report()
    let counters = report.whole.counters
    var answers = Histogram(bounds: PushTimes.answerBounds)
    for provider in Platform.allCases { answers += report.whole.times[answersOf: provider] }
    let sample = Sample(
      at: now,
      counts: [counters.delivered, counters.failures, counters.postponed, counters.parked, counters.deadLetters],
      cpuSeconds: report.usage.cpuSeconds, answers: answers.counts)
    samples.withLock {
      $0.append(sample)
      if $0.count > Self.most { $0.removeFirst() }
    }
  }

  /// Each sample is an array of time, counts, CPU seconds and answers.
  var json: String {
    let lines = samples.withLock { $0 }.map { sample in
      let numbers = ["\(sample.at)"] + sample.counts.map { "\($0)" } + ["\(sample.cpuSeconds)"] + sample.answers.map { "\($0)" }
      return "[\(numbers.joined(separator: ","))]"
    }
    return #"{"bounds":\#(PushTimes.answerBounds),"samples":[\#(lines.joined(separator: ","))]}"#
  }
}
