import Broker
import DeviceRegistry
import Logging
import Reactor
import Settings

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
}
