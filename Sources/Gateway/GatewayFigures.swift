import Logging
import Reactor
import Settings
import StatusHTTP
import Wire

/// What a gateway counts. Confined to the loop's thread.
final class GatewayFigures {
  /// What requests are usually answered with: counted from the start, so that the first time is an increase.
  private static let usual = [200, 400, 401, 403, 404, 413, 429, 503]
  /// Seconds. A sender may ask to wait for a result.
  private static let bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

  /// Requests by what they were answered with.
  private var answers = Dictionary(uniqueKeysWithValues: usual.map { ($0, 0) })
  private var times = Histogram(bounds: bounds)
  /// Publications by what became of them.
  private var publications = [0, 0, 0]
  /// Requests that were known as retransmissions.
  var repeated = 0
  /// Of the doors' certificates.
  var expiries: [CertificateExpiry] = []
  let binary = BinaryFigures()

  /// - Parameter seconds: since the request was there.
  func answered(_ status: Int, after seconds: Double) {
    answers[status, default: 0] += 1
    times.record(seconds: seconds)
  }

  func published(_ outcome: GatewayBroker.Outcome) {
    switch outcome {
    case .confirmed: publications[0] += 1
    case .refused: publications[1] += 1
    case .unknown: publications[2] += 1
    }
  }

  /// For the log's last line.
  func totals(waiting: Int) -> Log.Fields {
    [
      "requests": answers.values.reduce(0, +), "repeated": repeated, "confirmed": publications[0], "refused": publications[1],
      "unknown": publications[2], "unconfirmed": waiting, "notifications": binary.taken,
      "notifications_given_up": binary.lost, "feedback": binary.feedback,
    ]
  }

  /// For people: what is counted, and how often.
  func counts(waiting: Int) -> [(what: String, count: Int)] {
    answers.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map { ("HTTP requests answered with \($0.key)", $0.value) }
      + [
        ("Requests known as sent already", repeated),
        ("Messages that the broker has confirmed", publications[0]), ("Messages refused", publications[1]),
        ("Unconfirmed publishes", publications[2]), ("Messages whose confirms are awaited", waiting),
        ("Senders of APNs' binary interface connected", binary.open), ("Their notifications taken", binary.taken),
        ("Their notifications given up", binary.lost), ("Entries read of the feedback service", binary.feedback),
      ]
  }

  /// In Prometheus' text format, 0.0.4.
  /// - Parameters:
  ///   - version: the program's.
  ///   - waiting: publications whose confirms are awaited.
  func text(version: String, waiting: Int, isReady: Bool) -> String {
    var format = MetricsFormat()
    format.counters(
      "pushfleet_gateway_answers_total", "HTTP requests by the status of their answers.",
      answers.sorted { $0.key < $1.key }.map { ([("status", "\($0.key)")], $0.value) })
    format.histograms(
      "pushfleet_gateway_answer_seconds",
      "From an HTTP request to its answer; one with a wrong key is held back for a second.", [([], times)])
    format.counters(
      "pushfleet_gateway_publications_total", "Messages published, by what the broker said of them.",
      zip(["confirmed", "refused", "unknown"], publications).map { ([("outcome", $0)], $1) })
    format.counter("pushfleet_gateway_repeated_total", repeated, "Requests known as sent already.")
    format.gauge("pushfleet_gateway_unconfirmed", waiting, "Messages whose confirms are awaited.")
    format.gauge("pushfleet_gateway_ready", isReady ? 1 : 0, "1 while the broker takes what comes in.")
    format.counters(
      "pushfleet_gateway_binary_notifications_total", "Notifications by APNs' binary interface, by what became of them.",
      [([("outcome", "confirmed")], binary.taken), ([("outcome", "given_up")], binary.lost)])
    format.counters(
      "pushfleet_gateway_binary_responses_total", "Error responses by their status.",
      BinaryStatus.allCases.map { ([("status", $0.word)], binary.responses[$0, default: 0]) })
    format.gauge("pushfleet_gateway_binary_connections", binary.open, "Open connections of senders.")
    format.counter("pushfleet_gateway_binary_feedback_total", binary.feedback, "Entries read of the feedback service.")
    format.gauges(
      "pushfleet_credential_not_after_timestamp_seconds", "When a door's certificate ends.",
      expiries.map { ([("credential", $0.name)], Int($0.notAfter)) })
    format.process(.current(), version: version)
    return format.text
  }
}
