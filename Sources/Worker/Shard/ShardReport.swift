import Delivery
import DeviceRegistry
import PushCore
import Settings
import Wire

package struct ShardReport: Sendable {
  /// Approximate time of the loop's last turn.
  var at: MonotonicTime
  var counters = Counters()
  var times = PushTimes()
  /// True if publishing and consuming.
  var isReady = false
  /// True while a resource alarm blocks publishing.
  var isBrokerBlocked = false
  /// Established broker connections that have ended since the start.
  var brokerConnectionsEnded = 0
  var isDraining = false
  /// Requests and registry changes in hand.
  package var inHand = 0
  /// Requests that were read ahead.
  var ahead = 0
  /// Requests in hand whose channel is lost, so that the broker delivers them again.
  package var orphans = 0
  /// Unconfirmed publications, and those of them that wait for queues which confirm nothing.
  package var unconfirmed = 0
  var stuck = 0
  /// Pushes that wait for an answer.
  var inFlight = 0
  /// Seconds since the oldest request in hand arrived.
  var oldestAge = 0.0
  /// The longest recent delay of the loop, in seconds.
  var loopLag = 0.0
  /// nil without a registry.
  var registry: Registry?
  /// Names of the applications' metric series, by number.
  var series: [String] = AppSeries().names
  /// For each series, the providers with which its application is configured.
  var providers: [Set<Platform>] = []
  var openBreakers: [[UInt8]] = []
  var holds: [HoldReport] = []
  /// What operators have ordered.
  var controls: [Control] = []
  /// All pools in trouble, and some of the others.
  var pools: [Pool] = []
  /// By provider: opened connections and received GOAWAYs.
  var connectionsOpened = Platform.allCases.map { _ in 0 }
  var goAways = Platform.allCases.map { _ in 0 }
  /// Since the start, most frequent first.
  var deadLetters: [DeadLetters] = []
  /// Ends of certificates, soonest first.
  var expiries: [CertificateExpiry] = []
  /// Set by the first shard if metrics are served: campaigns from the registry, queues from the broker.
  var campaigns: CampaignSummary?
  var queues: [Queue]?

  struct Registry: Sendable {
    var isUp: Bool
    var isWritable: Bool
    var json: JSONObject { ["up": isUp, "writable": isWritable] }
  }

  struct Pool: Sendable {
    /// The credential's name.
    var name: String
    /// Unix milliseconds; nil if there is no trouble.
    var troubledSince: Int64?
    var isInTrouble: Bool { troubledSince != nil }
    /// What an operator has ordered for the credential, for at least one of its applications.
    var mode = Control.Mode.running
    var isCredentialRefused = false
    var connections = 0
    var streams = 0
    /// The state in one word, and the reason of trouble or of the pause.
    var state = "idle"
    var reason: String?
    /// The remedy; nil if there is no trouble.
    var remedy: ProviderRemedy? {
      isInTrouble ? ProviderRemedy.of(reason ?? "", isCredentialRefused: isCredentialRefused) : nil
    }
  }

  struct DeadLetters: Sendable {
    var app: String
    var error: PushError
    var reason: String
    var count: Int
  }

  struct Queue: Sendable {
    var name: String
    var ready: Int
  }

  package init(at: MonotonicTime) { self.at = at }

  // MARK: merging

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
    isDraining = isDraining || other.isDraining
    let sums: [WritableKeyPath<Self, Int>] = [
      \.brokerConnectionsEnded, \.inHand, \.ahead, \.orphans, \.unconfirmed, \.stuck, \.inFlight,
    ]
    for sum in sums { self[keyPath: sum] += other[keyPath: sum] }
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
