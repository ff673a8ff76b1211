import Reactor
import Settings
import StatusHTTP

extension GatewayContext {
  /// Opens the gateway's status server. If the address is occupied, tries again later; the gateway works without it.
  /// - Throws: if a later attempt would fail too.
  func openFigures(at endpoint: Endpoint) throws(ConfigurationError) -> FiguresServer {
    let setting = configuration.gateway?.metrics == nil ? "metrics" : "gateway.metrics"
    do throws(HTTPServerError) {
      return try FiguresServer(
        endpoint, loop: loop,
        home: "there are /metrics, /livez and /readyz here, and the console at /console/ of gateway.http.listen\n",
        metrics: { [self] in figures.text(version: version, waiting: broker.waiting, isReady: broker.isReady) },
        readiness: { [self] in readiness }
      ) { error in
        log.warning(
          "the metrics can't be served; trying again",
          [
            "reason": "\(error)", "setting": setting,
            "hint": "if a worker uses this address, set another one in gateway.metrics",
          ])
      }
    } catch {
      throw ConfigurationError(key: setting, problem: "cannot be used: \(error)")
    }
  }

  var readiness: HTTPAnswer {
    broker.isReady ? .text(200, "ready\n") : .unavailable("the broker can't be reached or accepts no messages at the moment")
  }
}
