import Broker
import Reactor
import Settings

/// One application's settings and credentials: the same object for as long as nothing of it changes, so that the few that
/// change are found among thousands at a glance.
final class ApplicationSetup: Sendable {
  let settings: AppConfiguration
  let credentials: [CredentialPlace: LoadedCredential]

  init(_ settings: AppConfiguration, _ credentials: [CredentialPlace: LoadedCredential]) {
    self.settings = settings
    self.credentials = credentials
  }

  fileprivate func isSame(as other: ApplicationSetup) -> Bool {
    settings == other.settings && credentials.count == other.credentials.count
      && credentials.allSatisfy { other.credentials[$0.key] === $0.value }
  }
}

/// What a shard works with, loaded on the main thread: at the start, and again whenever files have changed.
package struct ShardSetup: Sendable {
  /// Without the applications, which are in `apps`.
  let configuration: Configuration
  /// Sorted by id.
  let apps: [ApplicationSetup]
  /// Never empty.
  let brokers: [BrokerAddress]
  /// The program's, for the broker's list of connections.
  let version: String

  /// - Parameter earlier: what is as it was there is the same object here.
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
      let own = app.places.compactMap { place in credentials[place].map { (place, $0) } }
      let next = ApplicationSetup(app, Dictionary(own, uniquingKeysWith: { first, _ in first }))
      if let same = known[app.id], same.isSame(as: next) { return same }
      return next
    }
  }
}
