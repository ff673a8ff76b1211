import Delivery
import DeviceRegistry
import PushCore
import Settings
import Wire

/// How a shard stands.
package struct ShardReport: Sendable {
  /// When the shard's loop had its last turn, about.
  var at: MonotonicTime
  var counters = Counters()
  var times = PushTimes()
  var observability = ObservabilityCounts()
  /// Both connections to the broker are up.
  var isReady = false
  /// A resource alarm keeps the broker from taking publications.
  var isBrokerBlocked = false
  /// Connections to the broker that were there and ended, since the start.
  var brokerConnectionsEnded = 0
  /// It takes nothing more.
  var isDraining = false
  /// Requests and changes of the registry in hand.
  package var inHand = 0
  /// Requests taken beyond what there is room for.
  var ahead = 0
  /// Requests in hand whose channel is lost: the broker delivers them again.
  package var orphans = 0
  /// Publications not yet confirmed, and those of them that wait for queues which confirm nothing.
  package var unconfirmed = 0
  var stuck = 0
  /// Pushes on streams.
  var inFlight = 0
  /// Seconds since the oldest request in hand was taken.
  var oldestAge = 0.0
  /// The most that the loop was late of late, in seconds.
  var loopLag = 0.0
  /// nil where no registry is configured.
  var registry: Registry?
  /// Names of the series that applications' figures stand under, by number.
  var series: [String] = AppSeries().names
  /// Of each series, the providers that its application is configured with.
  var providers: [Set<PushCounts.Provider>] = []
  /// Applications whose breaker is open.
  var openBreakers: [[UInt8]] = []
  /// Of each application that has a hold queue.
  var holds: [HoldReport] = []
  /// Those in trouble, and of the others as many as are shown; there may be more.
  var pools: [Pool] = []
  /// By provider: connections made, and goodbyes received.
  var connectionsOpened = [0, 0]
  var goAways = [0, 0]
  /// Since the worker began, the most frequent first.
  var deadLetters: [DeadLetters] = []
  /// When certificates end, the soonest first.
  var expiries: [CertificateExpiry] = []
  /// Of the first shard, where figures are served: what it has asked others for.
  var campaigns: CampaignSurvey?
  var queues: [Queue]?

  struct Registry: Sendable {
    var isUp: Bool
    var isWritable: Bool
  }

  struct Pool: Sendable {
    /// The credential's.
    var name: String
    /// Unix milliseconds; nil while it is well.
    var troubledSince: Int64?
    var isInTrouble: Bool { troubledSince != nil }
    var isCredentialRefused = false
    var connections = 0
    var streams = 0
    /// One word, and why where it is not well.
    var state = "idle"
    var reason: String?
    /// What to do; nil where it is well.
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
    /// Messages ready.
    var ready: Int
  }

  package init(at: MonotonicTime) { self.at = at }
}
