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
}
