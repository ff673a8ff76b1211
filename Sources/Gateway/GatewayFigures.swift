import DeviceRegistry
import Logging
import PushCore
import Reactor
import Settings
import StatusHTTP
import Wire

/// The gateway's counters. Confined to the loop's thread.
final class GatewayFigures {
  /// Common statuses. They are counted from the start, so that the first answer shows as an increase.
  private static let usual = [200, 400, 401, 403, 404, 413, 429, 503]
  /// Seconds. The long ones are for senders that wait for a result.
  private static let bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

  /// Requests by status of the answer.
  private var answers = Dictionary(uniqueKeysWithValues: usual.map { ($0, 0) })
  private var times = Histogram(bounds: bounds)
  /// Publications by outcome: confirmed, refused, unknown.
  private var publications = [0, 0, 0]
  /// Requests recognised as repeats of earlier ones.
  var repeated = 0
  var expiries: [CertificateExpiry] = []
  let binary = BinaryFigures()
  let gorush = GorushFigures()

  /// - Parameter seconds: since the request arrived.
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

  func totals(waiting: Int) -> Log.Fields {
    [
      "requests": answers.values.reduce(0, +), "repeated": repeated, "confirmed": publications[0], "refused": publications[1],
      "unknown": publications[2], "unconfirmed": waiting, "notifications": binary.taken,
      "notifications_given_up": binary.lost, "feedback": binary.feedback,
    ]
  }

  /// The counters in Prometheus' text format 0.0.4.
  /// - Parameters:
  ///   - version: the program's version.
  ///   - waiting: number of unconfirmed publications.
  func text(version: String, waiting: Int, isReady: Bool) -> String {
    var format = MetricsFormat()
    format.counters(
      "pushfleet_gateway_answers_total", "HTTP requests by the status of their answers.",
      answers.sorted { $0.key < $1.key }.map { ([("status", "\($0.key)")], $0.value) })
    format.histograms(
      "pushfleet_gateway_answer_seconds",
      "Time from an HTTP request to its answer. An answer to a wrong key is delayed by one second.", [([], times)])
    format.counters(
      "pushfleet_gateway_publications_total", "Messages published, by the broker's answer.",
      zip(["confirmed", "refused", "unknown"], publications).map { ([("outcome", $0)], $1) })
    format.counter("pushfleet_gateway_repeated_total", repeated, "Requests recognised as repeats of earlier ones.")
    format.gauge("pushfleet_gateway_unconfirmed", waiting, "Messages waiting for the broker's confirm.")
    format.gauge("pushfleet_gateway_ready", isReady ? 1 : 0, "1 while the broker accepts messages.")
    format.counters(
      "pushfleet_gateway_binary_notifications_total", "Notifications received by APNs' binary interface, by outcome.",
      [([("outcome", "confirmed")], binary.taken), ([("outcome", "given_up")], binary.lost)])
    format.counters(
      "pushfleet_gateway_binary_responses_total", "Error responses by their status.",
      BinaryStatus.allCases.map { ([("status", $0.word)], binary.responses[$0, default: 0]) })
    format.gauge("pushfleet_gateway_binary_connections", binary.open, "Open connections of senders.")
    format.counter("pushfleet_gateway_binary_feedback_total", binary.feedback, "Entries read from the feedback service.")
    format.gauges(
      "pushfleet_credential_not_after_timestamp_seconds", "Expiry time of a door's certificate.",
      expiries.map { ([("credential", $0.name)], Int($0.notAfter)) })
    format.process(.current(), version: version)
    return format.text
  }
}

/// Counts the devices that were sent to through gorush's interface, by application. Confined to the loop's thread.
final class GorushFigures {
  private struct Counts {
    var total = 0
    var success: [GorushNotification.Platform: Int] = [:]
    var error: [GorushNotification.Platform: Int] = [:]
  }

  private var counts: [[UInt8]: Counts] = [:]

  /// - Parameters:
  ///   - app: a configured application.
  ///   - total: targets; those without a result in time are neither successes nor errors.
  func count(_ app: [UInt8], _ platform: GorushNotification.Platform, total: Int, success: Int, errors: Int) {
    counts[app, default: Counts()].total += total
    counts[app, default: Counts()].success[platform, default: 0] += success
    counts[app, default: Counts()].error[platform, default: 0] += errors
  }

  /// The answer of `GET /api/stat/app` about a key's applications.
  func answer(of key: GatewayKey, version: String) -> HTTPAnswer {
    let known = key.apps.compactMap { counts[$0] }
    func sum(_ count: (Counts) -> Int) -> Int { known.reduce(0) { $0 + count($1) } }
    let platforms = GorushNotification.Platform.allCases.map { platform -> (String, any JSONMember) in
      let counts: JSONObject = [
        "push_success": sum { $0.success[platform, default: 0] }, "push_error": sum { $0.error[platform, default: 0] },
      ]
      return (platform.name, counts)
    }
    return .json(200, ["version": version, "total_count": sum(\.total)] + JSONObject(platforms))
  }
}

/// Counters of the doors of APNs' binary interface.
final class BinaryFigures {
  /// Open connections of senders.
  var open = 0
  /// Notifications that the broker confirmed, and notifications given up.
  var taken = 0
  var lost = 0
  var responses: [BinaryStatus: Int] = [:]
  /// Entries of feedback lists that were read to the end.
  var feedback = 0
}
