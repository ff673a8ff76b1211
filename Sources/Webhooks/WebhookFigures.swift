import Reactor
import StatusHTTP

/// A webhook's counters.
struct WebhookFigures {
  /// Calls that the receiver has answered with 2xx, and others.
  var accepted = 0
  var failed = 0
  /// Events of accepted calls.
  var delivered = 0
  /// Events that went back to the queue.
  var returned = 0

  /// The counters in Prometheus' text format 0.0.4. Call on the loop's thread.
  /// - Parameter version: the program's version.
  static func text(_ senders: [WebhookSender], version: String) -> String {
    func rows(_ value: (WebhookSender) -> Int) -> [(labels: MetricsFormat.Labels, value: Int)] {
      senders.map { ([("webhook", $0.name)], value($0)) }
    }
    var format = MetricsFormat()
    format.counters(
      "pushfleet_webhook_calls_total", "Calls, by outcome.",
      senders.flatMap { sender in
        [("accepted", sender.figures.accepted), ("failed", sender.figures.failed)]
          .map { ([("webhook", sender.name), ("outcome", $0)], $1) }
      })
    format.counters("pushfleet_webhook_events_delivered_total", "Events of accepted calls.", rows { $0.figures.delivered })
    format.counters(
      "pushfleet_webhook_events_returned_total", "Events given back to the queue unaccepted.", rows { $0.figures.returned })
    format.gauges(
      "pushfleet_webhook_failing_seconds",
      "Time since the first of the calls that have failed in a row; 0 after an accepted call.",
      rows(\.failingSeconds))
    format.gauges(
      "pushfleet_webhook_paused", "1 while an operator or status 410 pauses the webhook.", rows { $0.isPaused ? 1 : 0 })
    format.gauges(
      "pushfleet_webhook_ready", "0 while the webhook's queue isn't consumed, although nothing pauses the webhook.",
      rows { $0.isReady ? 1 : 0 })
    format.process(.current(), version: version)
    return format.text
  }
}
