import Reactor
import Settings
import StatusHTTP

/// The gateway's status server, if the setting `metrics` names an address: metrics in Prometheus' text format, liveness
/// and readiness.
///
/// If another process uses the port, the door tries again until the port is free; the gateway works without it. The event loop
/// answers all requests, so a blocked loop doesn't call itself alive.
final class FiguresDoor: Door {
  private let context: GatewayContext
  private let endpoint: Endpoint
  private var server: HTTPServer?
  private var hasComplained = false

  /// Seconds between attempts to open the port.
  private static let pause = 1.0

  /// - Throws: if a later attempt would fail too.
  init(_ endpoint: Endpoint, _ context: GatewayContext) throws(ConfigurationError) {
    self.context = context
    self.endpoint = endpoint
    try open()
  }

  private func open() throws(ConfigurationError) {
    let side = LoopSide<FiguresDoor>(context.loop.mailbox)
    side.desk = self
    do throws(HTTPServerError) {
      server = try HTTPServer(host: endpoint.host, port: endpoint.port) { path, reply in
        side.pass(reply) { reply.send($0.answer(path)) }
      }
    } catch {
      guard error.isPassing else { throw ConfigurationError(key: setting, problem: "cannot be used: \(error)") }
      if !hasComplained {
        context.log.warning(
          "the figures can't be served; trying again",
          [
            "reason": "\(error)", "setting": setting,
            "hint": "if a worker uses this address, set another one in gateway.metrics",
          ])
      }
      hasComplained = true
      context.loop.schedule(after: Self.pause) { [weak self] in try? self?.open() }
    }
  }

  private var setting: String { context.configuration.gateway?.metrics == nil ? "metrics" : "gateway.metrics" }

  func reload(_ configuration: Configuration) {}
  var expiry: CertificateExpiry? { nil }
  func lookAround() { server?.endSlow() }
  func drain() {}
  var isIdle: Bool { true }
  func close() { server?.stop() }

  private func answer(_ path: String) -> HTTPAnswer {
    switch path {
    case "/":
      return .text(200, "there are /metrics, /livez and /readyz here, and the console at /console/ of gateway.http.listen\n")
    case "/metrics":
      return HTTPAnswer(
        status: 200, contentType: "text/plain; version=0.0.4",
        body: context.figures.text(
          version: context.version, waiting: context.broker.waiting, isReady: context.broker.isReady))
    case "/livez": return .text(200, "alive\n")
    case "/readyz": return context.readiness
    default: return .text(404, "there are /, /metrics, /livez and /readyz\n")
    }
  }
}

extension GatewayContext {
  var readiness: HTTPAnswer {
    broker.isReady ? .text(200, "ready\n") : .unavailable("the broker can't be reached or accepts no messages at the moment")
  }
}
