import PushCore
import Reactor
import StatusHTTP
import Wire

/// What the process says of itself over HTTP: its figures in Prometheus' text format at `/metrics`, at `/livez` whether every shard's loop
/// turns, at `/readyz` whether it does its work.
///
/// Labels come from the configuration and from tables of ours, never from a message, so that their number is bounded.
final class MetricsServer {
  private let server: HTTPServer

  /// - Parameter clock: the time of a request.
  init(
    _ endpoint: Endpoint, _ board: ShardBoard, clock: @escaping @Sendable () -> MonotonicTime = { SystemClock.monotonic }
  ) throws(HTTPServerError) {
    server = try HTTPServer(host: endpoint.host, port: endpoint.port) { path in
      switch path {
      case "/metrics":
        let text = Self.text(board.reports, ProcessUsage.current(), droppedLines: StandardError.droppedLines)
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

  static func text(_ reports: [ShardReport], _ usage: ProcessUsage, droppedLines: Int) -> String {
    var sum = Counters()
    for report in reports { sum += report.counters }
    var text = ""
    func family(_ name: String, _ kind: String, _ help: String, _ samples: [(labels: String, value: String)]) {
      text += "# HELP pushfleet_\(name) \(help)\n# TYPE pushfleet_\(name) \(kind)\n"
      for sample in samples { text += "pushfleet_\(name)\(sample.labels) \(sample.value)\n" }
    }
    func counter(_ name: String, _ value: Int, _ help: String) { family(name, "counter", help, [("", "\(value)")]) }
    func gauge(_ name: String, _ value: Int, _ help: String) { family(name, "gauge", help, [("", "\(value)")]) }

    counter("requests_received_total", sum.received, "Requests delivered by the broker.")
    counter("requests_redelivered_total", sum.redelivered, "Of these, delivered before.")
    counter("requests_acknowledged_total", sum.acknowledged, "Requests settled.")
    counter("duplicates_suppressed_total", sum.duplicatesSuppressed, "Requests known as sent already.")
    counter("pushes_delivered_total", sum.delivered, "Pushes a provider took.")
    family(
      "pushes_failed_total", "counter", "Devices whose push failed, by GCM code.",
      sum.failuresByCode.map { (Self.label("code", $0.code), "\($0.count)") })
    counter("pushes_unknown_total", sum.unknownOutcomes, "Pushes sent whose answer never came.")
    counter("requests_expired_total", sum.expired, "Requests whose time was over before they were sent.")
    counter("retries_total", sum.retries, "Requests put on the retry ladder.")
    counter("parked_total", sum.parked, "Pushes put off because their provider was unreachable.")
    counter("quarantined_total", sum.quarantined, "Requests that had come back twice and were put aside to be processed alone.")
    counter("feedback_total", sum.feedback, "Feedback events published.")
    counter("dead_letters_total", sum.deadLetters, "Dead letters published.")
    counter("results_total", sum.results, "Results published.")
    counter("replies_unroutable_total", sum.repliesUnroutable, "Results whose reply_to was gone.")
    gauge("requests_held", reports.reduce(0) { $0 + $1.held }, "Requests held unacknowledged.")
    gauge("publications_unconfirmed", reports.reduce(0) { $0 + $1.unconfirmed }, "Outcomes not yet confirmed.")
    gauge("pushes_in_flight", reports.reduce(0) { $0 + $1.inFlight }, "Pushes waiting for their answer.")
    gauge("shards_ready", reports.count { $0.isReady }, "Shards connected to the broker.")
    family(
      "credential_not_after_seconds", "gauge", "When a certificate ends, in unix seconds; of the hundred that end first.",
      (reports.first?.expiries ?? []).prefix(100).map { (Self.label("credential", $0.name), "\($0.notAfter)") })
    counter("log_lines_dropped_total", droppedLines, "Log lines that could not be written to standard error.")
    family("cpu_seconds_total", "counter", "CPU time, user and system.", [("", "\(usage.cpuSeconds)")])
    gauge("resident_bytes", Int(usage.residentBytes), "Resident memory.")
    return text
  }

  /// A label in braces; what would end the value or the line is escaped (Prometheus' text format, 0.0.4).
  private static func label(_ name: String, _ value: String) -> String {
    let escaped = value.replacing("\\", with: #"\\"#).replacing("\"", with: #"\""#).replacing("\n", with: #"\n"#)
    return #"{\#(name)="\#(escaped)"}"#
  }
}
