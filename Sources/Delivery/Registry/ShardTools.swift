import Broker
import DeviceRegistry
import Logging
import Wire

/// What the parts of a shard share.
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
