import Broker
import DeviceRegistry
import Wire

/// Publishes what the registry's own records give rise to: feedback about stale devices, and the operations of operators. One shard
/// of a process does so.
package final class RegistryReports {
  private let audit: AuditPublisher
  /// Nil unless the configuration says when a device is stale.
  private let stale: StaleWatch?

  /// - Parameter staleAfter: milliseconds; nil if devices never become stale.
  package init(
    staleAfter: Int64?, registry: RegistryClient, publications: OutcomePublications, outbox: Outbox, time: Turn
  ) {
    audit = AuditPublisher(registry: registry, publications: publications, outbox: outbox, time: time)
    stale = staleAfter.map {
      StaleWatch(after: $0, registry: registry, publications: publications, outbox: outbox, time: time)
    }
  }

  package var counters: Counters { stale?.counters ?? Counters() }

  /// To be called about once a second.
  package func look() {
    stale?.look()
    audit.look()
  }
}
