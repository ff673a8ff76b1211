import Reactor
import Settings
import StatusHTTP

/// The gateway's status server, if the setting `metrics` names an address. The gateway works without it.
final class FiguresDoor: Door {
  private let server: FiguresServer

  /// - Throws: if a later attempt would fail too.
  init(_ endpoint: Endpoint, _ context: GatewayContext) throws(ConfigurationError) {
    let setting = context.configuration.gateway?.metrics == nil ? "metrics" : "gateway.metrics"
    do throws(HTTPServerError) {
      server = try FiguresServer(
        endpoint, loop: context.loop,
        home: "there are /metrics, /livez and /readyz here, and the console at /console/ of gateway.http.listen\n",
        metrics: {
          context.figures.text(
            version: context.version, waiting: context.broker.waiting, isReady: context.broker.isReady)
        }, readiness: { context.readiness }
      ) { error in
        context.log.warning(
          "the figures can't be served; trying again",
          [
            "reason": "\(error)", "setting": setting,
            "hint": "if a worker uses this address, set another one in gateway.metrics",
          ])
      }
    } catch {
      throw ConfigurationError(key: setting, problem: "cannot be used: \(error)")
    }
  }

  func reload(_ configuration: Configuration) {}
  var expiry: CertificateExpiry? { nil }
  func lookAround() { server.lookAround() }
  func drain() {}
  var isIdle: Bool { true }
  func close() { server.stop() }
}

extension GatewayContext {
  var readiness: HTTPAnswer {
    broker.isReady ? .text(200, "ready\n") : .unavailable("the broker can't be reached or accepts no messages at the moment")
  }
}
