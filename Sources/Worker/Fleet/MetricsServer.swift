import Metrics
import PushCore
import Reactor

/// The process's figures in Prometheus' text format at `/metrics`, and at `/health` whether every shard is at work.
///
/// Labels come from the configuration and from tables of ours, never from a message, so that their number is bounded.
final class MetricsServer {
  private let server: HTTPServer

  /// - Throws: `ConfigurationError` when the address can't be listened on.
  init(_ endpoint: Endpoint, _ board: ShardBoard) throws(ConfigurationError) {
    do throws(HTTPServerError) {
      server = try HTTPServer(host: endpoint.host, port: endpoint.port) { path in
        let reports = board.reports
        switch path {
        case "/metrics":
          return .init(status: 200, contentType: "text/plain; version=0.0.4", body: Self.text(reports, ProcessUsage.current()))
        case "/health":
          let isReady = !reports.isEmpty && reports.allSatisfy(\.isReady)
          return .init(
            status: isReady ? 200 : 503, contentType: "text/plain", body: isReady ? "ok\n" : "not connected to the broker\n")
        default: return .init(status: 404, contentType: "text/plain", body: "there are /metrics and /health\n")
        }
      }
    } catch {
      throw ConfigurationError(key: "metrics", problem: "cannot be used: \(error)")
    }
  }

  func stop() { server.stop() }

  static func text(_ reports: [ShardReport], _ usage: ProcessUsage) -> String {
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
      sum.failuresByCode.map { (#"{code="\#($0.code)"}"#, "\($0.count)") })
    counter("pushes_unknown_total", sum.unknownOutcomes, "Pushes sent whose answer never came.")
    counter("requests_expired_total", sum.expired, "Requests whose time was over before they were sent.")
    counter("retries_total", sum.retries, "Requests put on the retry ladder.")
    counter("parked_total", sum.parked, "Pushes put off because their provider was out of reach.")
    counter("feedback_total", sum.feedback, "Feedback events published.")
    counter("dead_letters_total", sum.deadLetters, "Dead letters published.")
    counter("results_total", sum.results, "Results published.")
    counter("replies_unroutable_total", sum.repliesUnroutable, "Results whose reply_to was gone.")
    gauge("requests_held", reports.reduce(0) { $0 + $1.held }, "Requests held unacknowledged.")
    gauge("publications_unconfirmed", reports.reduce(0) { $0 + $1.unconfirmed }, "Outcomes not yet confirmed.")
    gauge("pushes_in_flight", reports.reduce(0) { $0 + $1.inFlight }, "Pushes waiting for their answer.")
    gauge("shards_ready", reports.count { $0.isReady }, "Shards connected to the broker.")
    family(
      "credential_not_after_seconds", "gauge", "When a certificate ends, in unix seconds.",
      (reports.first?.expiries ?? []).map { (#"{credential="\#($0.name)"}"#, "\($0.notAfter)") })
    family("cpu_seconds_total", "counter", "CPU time, user and system.", [("", "\(usage.cpuSeconds)")])
    gauge("resident_bytes", Int(usage.residentBytes), "Resident memory.")
    return text
  }
}
