import Delivery

extension ShardReport {
  /// Merges the reports of a process's shards. Shards see the same queues and credentials, at different times.
  static func merged(_ reports: [ShardReport]) -> ShardReport {
    guard var whole = reports.first else { return ShardReport(at: .init(nanoseconds: 0)) }
    for report in reports.dropFirst() { whole.merge(report) }
    whole.holds = Self.unique(whole.holds, by: \.app) { first, other in
      first.inHand += other.inHand
      if let ready = other.ready { first.ready = max(first.ready ?? 0, ready) }
    }
    whole.controls = Self.unique(whole.controls, by: \.subject) { $0.waiting += $1.waiting }
    whole.pools = Self.unique(whole.pools, by: \.name) { first, other in
      first.connections += other.connections
      first.streams += other.streams
      first.isCredentialRefused = first.isCredentialRefused || other.isCredentialRefused
      guard let since = other.troubledSince else { return }
      if !first.isInTrouble { (first.state, first.reason) = (other.state, other.reason) }
      first.troubledSince = min(first.troubledSince ?? since, since)
    }
    whole.deadLetters = Self.unique(whole.deadLetters, by: { [$0.app, $0.error.rawValue, $0.reason] }) { $0.count += $1.count }
    whole.deadLetters.sort { ($1.count, $0.app, $0.reason) < ($0.count, $1.app, $1.reason) }
    whole.openBreakers = Set(whole.openBreakers).sorted { $0.lexicographicallyPrecedes($1) }
    return whole
  }

  private mutating func merge(_ other: ShardReport) {
    counters += other.counters
    times += other.times
    at = min(at, other.at)
    isReady = isReady && other.isReady
    isBrokerBlocked = isBrokerBlocked || other.isBrokerBlocked
    brokerConnectionsEnded += other.brokerConnectionsEnded
    isDraining = isDraining || other.isDraining
    inHand += other.inHand
    ahead += other.ahead
    orphans += other.orphans
    unconfirmed += other.unconfirmed
    stuck += other.stuck
    inFlight += other.inFlight
    oldestAge = max(oldestAge, other.oldestAge)
    loopLag = max(loopLag, other.loopLag)
    if let its = other.registry {
      registry = .init(isUp: registry?.isUp != false && its.isUp, isWritable: registry?.isWritable != false && its.isWritable)
    }
    // During a reload, shards may differ for a moment.
    if other.series.count > series.count { (series, providers) = (other.series, other.providers) }
    openBreakers += other.openBreakers
    holds += other.holds
    controls += other.controls
    pools += other.pools
    for provider in connectionsOpened.indices {
      connectionsOpened[provider] += other.connectionsOpened[provider]
      goAways[provider] += other.goAways[provider]
    }
    deadLetters += other.deadLetters
    campaigns = campaigns ?? other.campaigns
    queues = queues ?? other.queues
  }

  /// Merges parts with the same key, in the order of first appearance.
  private static func unique<Part, Key: Hashable>(
    _ parts: [Part], by key: (Part) -> Key, _ merge: (inout Part, Part) -> Void
  ) -> [Part] {
    var places: [Key: Int] = [:]
    var result: [Part] = []
    for part in parts {
      if let place = places[key(part)] {
        merge(&result[place], part)
      } else {
        places[key(part)] = result.count
        result.append(part)
      }
    }
    return result
  }
}
