import Logging
import Reactor
import Settings
import StatusHTTP

/// Metrics and probes at the address of the setting `metrics`. The service works without them.
extension WebhookService {
  func openFigures(_ endpoint: Endpoint) throws(ConfigurationError) {
    do throws(HTTPServerError) {
      figures = try FiguresServer(
        endpoint, loop: loop, home: "there are /metrics, /livez and /readyz here\n",
        metrics: { [unowned self] in WebhookFigures.text(senders, version: version) },
        readiness: { [unowned self] in readiness }
      ) { error in
        log.warning(
          "the metrics can't be served; trying again",
          ["reason": "\(error)", "hint": "if another process uses this address, set another one in PUSHFLEET_METRICS"])
      }
    } catch {
      throw ConfigurationError(key: "metrics", problem: "cannot be used: \(error)")
    }
  }

  private var readiness: HTTPAnswer {
    guard modes != nil else { return .text(503, "the registry hasn't said yet which webhooks are paused\n") }
    let waiting = senders.filter { !$0.isReady }.map(\.name)
    return waiting.isEmpty
      ? .text(200, "ready\n")
      : .text(503, "the queues of these webhooks can't be consumed: \(waiting.joined(separator: ", "))\n")
  }
}
