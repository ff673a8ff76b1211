import Broker
import DeviceRegistry
import PushCore
import Wire

/// Publishes the operations that the registry has recorded, each until the broker confirms it. Every process looks for them,
/// and claims those that it publishes.
package final class AuditPublisher: ConsequenceOwner {
  private let tools: ShardTools
  private var isAsking = false
  /// Claimed events that the broker hasn't confirmed.
  private var waiting: Set<Int64> = []
  /// Confirmed events that the registry doesn't know as published.
  private var confirmed: [Int64] = []

  private static let mostClaimed = 100
  /// The lifetime of a claim in milliseconds. An older one belongs to a dead process.
  private static let lease: Int64 = 60_000

  package init(_ tools: ShardTools) { self.tools = tools }

  /// To be called once a second, or more often.
  package func look() {
    guard !isAsking, waiting.isEmpty, !tools.outbox.isFull else { return }
    isAsking = true
    guard confirmed.isEmpty else { return claim() }
    let now = tools.time.wallClock
    tools.registry?.call(.read { try $0.hasAuditEvents(claimedBefore: now - Self.lease) }) { [weak self] result in
      guard case .success(true) = result else {
        self?.isAsking = false
        return
      }
      self?.claim()
    }
  }

  private func claim() {
    let (numbers, now) = (confirmed, tools.time.wallClock)
    let call = RegistryCall.write(.campaigns) { store, _ in
      if !numbers.isEmpty { try store.auditEventsPublished(numbers) }
      return try store.claimAuditEvents(lease: Self.lease, limit: Self.mostClaimed, now: now)
    }
    tools.registry?.call(call) { [weak self] result in
      guard let self else { return }
      isAsking = false
      guard case .success(let events) = result else { return }
      confirmed = []
      for event in events {
        waiting.insert(event.number)
        tools.outbox.publish(tools.publications.audit(event, .item(Int(event.number), of: self)))
      }
    }
  }

  package func publicationConfirmed(_ number: Int) {
    guard let number = waiting.remove(Int64(number)) else { return }
    confirmed.append(number)
  }
}
