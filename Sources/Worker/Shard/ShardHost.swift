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

/// Sockets, TLS, a thread for the registry, and standard error.
extension EventLoop: ShardHost {
  package var log: LogOutput { .standardError }
}
