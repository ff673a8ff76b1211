import Broker
import DeviceRegistry
import Logging
import Wire

/// The tools with which a shard's parts use the registry and publish.
package struct ShardTools {
  let apps: Applications
  /// nil if none is configured.
  let registry: RegistryClient?
  let publications: OutcomePublications
  let outbox: Outbox
  let time: Turn
  let log: Log

  package init(
    apps: Applications, registry: RegistryClient?, publications: OutcomePublications, outbox: Outbox, time: Turn, log: Log
  ) {
    self.apps = apps
    self.registry = registry
    self.publications = publications
    self.outbox = outbox
    self.time = time
    self.log = log
  }
}
