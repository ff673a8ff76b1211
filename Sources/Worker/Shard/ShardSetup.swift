import Broker
import DeviceRegistry
import Logging
import Providers
import Reactor
import Settings
import Wire

/// An application's settings and credentials; the same object while unchanged, so that changes are found quickly.
final class ApplicationSetup: Sendable {
  let settings: AppConfiguration
  let credentials: [CredentialPlace: LoadedCredential]

  init(_ settings: AppConfiguration, _ credentials: [CredentialPlace: LoadedCredential]) {
    self.settings = settings
    self.credentials = credentials
  }
}

/// Everything that a shard works with, loaded on the main thread at the start and after changes.
package struct ShardSetup: Sendable {
  /// The configuration without its applications.
  let configuration: Configuration
  /// Sorted by id.
  let apps: [ApplicationSetup]
  /// Never empty.
  let brokers: [BrokerAddress]
  /// The program's version, for the broker's list of connections.
  let version: String

  /// - Parameter earlier: unchanged applications reuse its objects.
  package init(
    configuration: Configuration, credentials: [CredentialPlace: LoadedCredential], brokers: [BrokerAddress],
    after earlier: ShardSetup? = nil, version: String = "0"
  ) {
    self.version = version
    var settings = configuration
    settings.apps = []
    self.configuration = settings
    self.brokers = brokers
    let known = Dictionary((earlier?.apps ?? []).map { ($0.settings.id, $0) }, uniquingKeysWith: { first, _ in first })
    apps = configuration.apps.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }.map { app in
      let own = app.sources.compactMap { place, _ in credentials[place].map { (place, $0) } }
      let next = ApplicationSetup(app, Dictionary(own, uniquingKeysWith: { first, _ in first }))
      if let same = known[app.id], same.settings == next.settings, same.credentials == next.credentials { return same }
      return next
    }
  }
}

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
