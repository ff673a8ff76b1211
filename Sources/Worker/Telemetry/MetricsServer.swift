import PushCore
import Reactor
import StatusHTTP
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
