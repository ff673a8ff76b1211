import Reactor
import Settings
import StatusHTTP

/// What the gateway says of itself, where the setting `metrics` names a place: its figures in Prometheus' text format, whether its loop turns,
/// whether the broker takes what comes in, and a page for people.
///
/// A port that another process has is tried again until it is free: a gateway works without its figures. Whoever asks is answered from
/// the loop, so that a loop that stands still doesn't call itself alive.
final class FiguresDoor: Door {
  private let context: GatewayContext
  private let endpoint: Endpoint
  private var server: HTTPServer?
  private var hasComplained = false

  /// Seconds.
  private static let pause = 1.0

  /// - Throws: when trying again would not help.
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
            "hint": "where a worker has this place, name another one: gateway.metrics",
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
    case "/": return GatewayPage.answer(context)
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
  /// Whether requests can be taken.
  var readiness: HTTPAnswer {
    broker.isReady ? .text(200, "ready\n") : .unavailable("the broker can't be reached, or takes nothing for now")
  }
}
