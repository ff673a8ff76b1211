import PushCore
import Reactor

/// A process's figures in Prometheus' text format, 0.0.4.
///
/// Labels come from the configuration and from tables of ours, never from a message, so that their number is bounded. Of thousands of
/// applications those have samples of their own that have a hold queue.
struct MetricsText {
  private var text = ""

  static func of(_ reports: [ShardReport], _ usage: ProcessUsage, droppedLines: Int) -> String {
    var text = MetricsText()
    text.addCounters(reports)
    text.addGauges(reports)
    text.addHolds(reports)
    text.family(
      "credential_not_after_seconds", "gauge", "When a certificate ends, in unix seconds; of the hundred that end first.",
      (reports.first?.expiries ?? []).prefix(100).map { (label("credential", $0.name), $0.notAfter) })
    text.counter("log_lines_dropped_total", droppedLines, "Log lines that could not be written to standard error.")
    text.family("cpu_seconds_total", "counter", "CPU time, user and system.", [("", usage.cpuSeconds)])
    text.gauge("resident_bytes", Int(usage.residentBytes), "Resident memory.")
    return text.text
  }

  private mutating func addCounters(_ reports: [ShardReport]) {
    var sum = Counters()
    for report in reports { sum += report.counters }
    counter("requests_received_total", sum.received, "Requests delivered by the broker.")
    counter("requests_redelivered_total", sum.redelivered, "Of these, delivered before.")
    counter("requests_acknowledged_total", sum.acknowledged, "Requests settled.")
    counter("duplicates_suppressed_total", sum.duplicatesSuppressed, "Requests known as sent already.")
    counter("pushes_delivered_total", sum.delivered, "Pushes a provider took.")
    family(
      "pushes_failed_total", "counter", "Devices whose push failed, by GCM code.",
      sum.failuresByCode.map { (Self.label("code", $0.code), $0.count) })
    counter("pushes_unknown_total", sum.unknownOutcomes, "Pushes sent whose answer never came.")
    counter("requests_expired_total", sum.expired, "Requests whose time was over before they were sent.")
    counter("retries_total", sum.retries, "Requests put on the retry ladder.")
    counter("parked_total", sum.parked, "Pushes put off to the retry ladder at no attempt's cost.")
    counter("hold_queue_requests_total", sum.putToHold, "Requests put into hold queues.")
    counter("quarantined_total", sum.quarantined, "Requests that had come back twice and were put aside to be processed alone.")
    counter("feedback_total", sum.feedback, "Feedback events published.")
    counter("dead_letters_total", sum.deadLetters, "Dead letters published.")
    counter("results_total", sum.results, "Results published.")
    family(
      "acknowledgements_total", "counter",
      "Acknowledgements of devices, by what became of them; refused counts messages, which may hold many.",
      [
        (Self.label("outcome", "noted"), sum.acknowledgementsNoted),
        (Self.label("outcome", "repeated"), sum.acknowledgementsRepeated),
        (Self.label("outcome", "unknown"), sum.acknowledgementsUnknown),
        (Self.label("outcome", "refused"), sum.acknowledgementsRefused),
      ])
    counter("replies_unroutable_total", sum.repliesUnroutable, "Results whose reply_to was gone.")
  }

  private mutating func addGauges(_ reports: [ShardReport]) {
    func sum(_ part: (ShardReport) -> Int) -> Int { reports.reduce(0) { $0 + part($1) } }
    gauge("requests_held", sum(\.held), "Requests in hand, unacknowledged.")
    gauge("requests_ahead", sum(\.ahead), "Requests taken beyond what there is room for, unacknowledged and not in hand.")
    gauge("publications_unconfirmed", sum(\.unconfirmed), "Outcomes not yet confirmed.")
    gauge("publications_stuck", sum(\.stuck), "Of these, what waits for queues that confirm nothing.")
    gauge("pushes_in_flight", sum(\.inFlight), "Pushes waiting for their answer.")
    gauge("shards_ready", reports.count { $0.isReady }, "Shards connected to the broker.")
  }

  /// Shards see the same queues, each at its own time, and have requests of their own in hand.
  private mutating func addHolds(_ reports: [ShardReport]) {
    let holds = reports.flatMap(\.holds)
    family(
      "hold_queue_requests_ready", "gauge", "Requests ready in an application's hold queue, as last counted.",
      Self.merged(holds.compactMap { hold in hold.ready.map { (Self.app(hold), $0) } }, max))
    family(
      "hold_queue_requests_in_hand", "gauge", "Requests of an application's hold queue held unacknowledged.",
      Self.merged(holds.map { (Self.app($0), $0.inHand) }, +))
    family(
      "pool_in_trouble", "gauge",
      "1 while a provider serves nothing by a credential; of those in trouble and those whose application has a hold queue.",
      Self.merged(reports.flatMap(\.pools).map { (Self.label("pool", $0.name), $0.isInTrouble ? 1 : 0) }, max))
  }

  private static func app(_ hold: ShardReport.Hold) -> String { label("app", String(decoding: hold.app, as: UTF8.self)) }

  /// One sample for all that have the same labels.
  private static func merged(_ samples: [(String, Int)], _ merge: (Int, Int) -> Int) -> [(labels: String, value: Int)] {
    Dictionary(samples, uniquingKeysWith: merge).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  // MARK: the format

  private mutating func counter(_ name: String, _ value: Int, _ help: String) { family(name, "counter", help, [("", value)]) }
  private mutating func gauge(_ name: String, _ value: Int, _ help: String) { family(name, "gauge", help, [("", value)]) }

  private mutating func family<Value: Numeric>(
    _ name: String, _ kind: String, _ help: String, _ samples: [(labels: String, value: Value)]
  ) {
    text += "# HELP pushfleet_\(name) \(help)\n# TYPE pushfleet_\(name) \(kind)\n"
    for sample in samples { text += "pushfleet_\(name)\(sample.labels) \(sample.value)\n" }
  }

  /// A label in braces; what would end the value or the line is escaped.
  private static func label(_ name: String, _ value: String) -> String {
    let escaped = value.replacing("\\", with: #"\\"#).replacing("\"", with: #"\""#).replacing("\n", with: #"\n"#)
    return #"{\#(name)="\#(escaped)"}"#
  }
}
