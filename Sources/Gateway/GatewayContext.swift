import Broker
import DeviceRegistry
import Logging
import Reactor
import Settings
import StatusHTTP

/// The common resources of a gateway's doors. Confined to the loop's thread.
final class GatewayContext {
  let configuration: Configuration
  let version: String
  let topology: Topology
  let loop: EventLoop
  let log: Log
  let broker: GatewayBroker
  /// Reads devices and keys; nil if no registry is configured. Changes of devices are published to the broker instead.
  let registry: RegistryClient?
  let figures: GatewayFigures
  let fleet: FleetStatus
  let letters: any LetterWorker
  let explain: Gateway.Explain

  init(
    _ configuration: Configuration, version: String, letters: any LetterWorker, explain: @escaping Gateway.Explain,
    loop: EventLoop,
    log: Log
  ) throws(ConfigurationError) {
    self.letters = letters
    self.explain = explain
    self.configuration = configuration
    self.version = version
    self.loop = loop
    self.log = log
    topology = configuration.topology
    figures = GatewayFigures()
    let brokers = try configuration.brokerAddresses()
    broker = GatewayBroker(loop: loop, topology: topology, brokers: brokers, log: log, figures: figures)
    fleet = FleetStatus(topology, loop: loop, brokers: brokers)
    registry = try configuration.registryClient(host: loop, log: log)
  }

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
    broker.isReady
      ? .text(200, "ready\n")
      : ErrorFormat.legacy.answer(.unavailable("the broker can't be reached or accepts no messages at the moment"))
  }
}
