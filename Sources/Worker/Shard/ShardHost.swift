import Broker
import DeviceRegistry
import Logging
import Providers
import Reactor
import Wire

/// What a shard runs on: its time, its ways to brokers, providers and the registry, and where its log goes. A worker's is an event loop, a
/// simulation's is all in memory.
package protocol ShardHost: Dialer, RegistryHost {
  var log: LogOutput { get }
  /// Starts connecting; the machine hears of success or failure, never within this call.
  func dial(_ machine: any Machine, to broker: BrokerAddress) -> any Transport
}

/// A thread's event loop: sockets, TLS, a thread for the registry, standard error.
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
