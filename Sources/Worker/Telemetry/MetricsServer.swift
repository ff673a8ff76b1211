import PushCore
import Reactor
import StatusHTTP
import Wire

/// What the process says of itself over HTTP: its figures in Prometheus' text format at `/metrics`, at `/livez` whether every shard's loop
/// turns, at `/readyz` whether it does its work.
final class MetricsServer {
  private let server: HTTPServer

  /// - Parameter clock: the time of a request.
  init(
    _ endpoint: Endpoint, _ board: ShardBoard, clock: @escaping @Sendable () -> MonotonicTime = { SystemClock.monotonic }
  ) throws(HTTPServerError) {
    server = try HTTPServer(host: endpoint.host, port: endpoint.port) { path in
      switch path {
      case "/metrics":
        let text = MetricsText.of(board.reports, ProcessUsage.current(), droppedLines: StandardError.droppedLines)
        return .init(status: 200, contentType: "text/plain; version=0.0.4", body: text)
      case "/livez":
        let health = board.health(at: clock())
        return Self.probe(health.isAlive, health.liveness)
      case "/readyz":
        let health = board.health(at: clock())
        return Self.probe(health.isReady, health.readiness)
      default: return .init(status: 404, contentType: "text/plain", body: "there are /metrics, /livez and /readyz\n")
      }
    }
  }

  private static func probe(_ isGood: Bool, _ sentence: String) -> HTTPServer.Answer {
    .init(status: isGood ? 200 : 503, contentType: "text/plain", body: sentence + "\n")
  }

  func stop() { server.stop() }
}
