import Broker
import DeviceRegistry
import Logging
import Providers
import Reactor
import Wire

/// A shard's environment: time, connections, registry and log. A worker uses an event loop, a simulation works in memory.
package protocol ShardHost: Dialer, RegistryHost {
  var log: LogOutput { get }
  /// Starts connecting. The machine is informed of success or failure, but never within this call.
  func dial(_ machine: any Machine, to broker: BrokerAddress) -> any Transport
}

/// An event loop on a thread, with sockets, TLS, a thread for the registry, and standard error.
package final class LoopHost: ShardHost {
  private let loop: EventLoop
  private let providers: LoopDialer
  private let registries: LoopRegistryHost

  package init(_ loop: EventLoop) {
    self.loop = loop
    providers = LoopDialer(loop: loop)
    registries = LoopRegistryHost(loop)
  }

  package var time: Turn { loop.time }
  package var log: LogOutput { .standardError }

  package func dial(_ machine: any Machine, to target: DialTarget) -> any Transport { providers.dial(machine, to: target) }
  package func dial(_ machine: any Machine, to broker: BrokerAddress) -> any Transport { loop.dial(machine, to: broker) }

  package func openRegistry(_ location: RegistryLocation, _ limits: RegistryLimits, _ handler: any RegistryHandler)
    throws(SystemError)
    -> any RegistryDoor
  {
    try registries.openRegistry(location, limits, handler)
  }
}
