import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Reactor

/// A worker's settings, validated: a value of this type can be used as it is.
public struct Configuration: Sendable {
  /// Tried in turn on each connection attempt.
  public var brokers: [BrokerURI]
  /// Who signed an `amqps` broker's certificate; nil for the system's authorities.
  public var brokerCA: Material?
  /// `sqlite:` with an absolute path, or `postgresql://…`; nil where only provider tokens are sent to.
  public var registry: String?
  /// Milliseconds for which a device may not register before broadcasts pass over it; nil for ever.
  public var registryStaleAfter: Int64?
  public var results: ResultsSetting
  /// Outcomes that leave a dead letter besides those that always do.
  public var deadLetters: Set<PushError>
  /// What devices acknowledge is published to `<prefix>.receipts`.
  public var receipts: Bool
  /// Queues that results and answers may go to besides direct reply-to and exclusive ones; nil for every queue that isn't the fleet's own.
  public var replyTo: [String]?
  /// Prefix of every exchange and queue.
  public var prefix: String
  /// Unacknowledged requests a shard holds of each lane.
  public var prefetch: Int
  public var shards: Int
  /// Seconds that a stopping worker waits for answers in flight.
  public var drainTimeout: Int
  public var retry: RetrySettings
  public var fanOut: FanOutSettings
  public var breaker: BreakerSettings
  public var log: LogLevel
  /// nil for text on a terminal and JSON elsewhere.
  public var logFormat: LogFormat?
  /// What the registry takes.
  public var registryLimits: RegistryLimits
  /// Sizes that a request may have.
  public var limits: RequestLimits
  /// nil where it is not kept what became of requests.
  public var trace: TraceSettings?
  /// Where spans of requests go; nil for nowhere.
  public var traces: OTLPSettings?
  /// Where figures are served in Prometheus' text format; nil for nowhere.
  public var metrics: Endpoint?
  /// nil where nothing becomes a page.
  public var richPages: RichPageSettings?
  /// The doors that `pushfleet gateway` opens; nil where it has none.
  public var gateway: GatewaySettings?
  /// Sorted by id.
  public var apps: [AppConfiguration]
  /// The files that values came from.
  var valueFiles: [String] = []
}

/// Which requests have a result published to `<prefix>.results`.
public enum ResultsSetting: String, CaseIterable, Sendable {
  case none, failures, all
}

public struct FanOutSettings: Sendable, Equatable {
  /// Devices on a page.
  public var pageSize: Int
  /// Pages a shard holds of each lane.
  public var prefetch: Int
}

/// When answers against tokens are so many that something else must be wrong.
public struct BreakerSettings: Sendable, Equatable {
  /// Refused tokens among all answers of a minute.
  public var percent: Int
  /// Answers before the share counts.
  public var sample: Int
}

public struct RetrySettings: Sendable, Equatable {
  /// The ladder, shortest delay first.
  public var steps: [RetryStep]
  /// Attempts in all before a request ends in the dead letters.
  public var attempts: Int
}

public struct AppConfiguration: Sendable, Equatable {
  public var id: String
  /// The broker's users that may send to and register for it; nil for everybody who may publish.
  public var producers: [String]?
  /// Of requests that name none (GS-051).
  public var defaultPriority: Priority
  /// Pushes have the object `mps`, by which the app's library acknowledges them.
  public var isUPMC: Bool
  /// A request without a badge counts as one with `auto`.
  public var countsBadges: Bool
  /// Names in a request that aren't known are left out, and what old senders write is taken (GS-012); otherwise they are refused.
  public var ignoresUnknownNames: Bool
  /// Of requests that don't say it.
  public var unknownOutcome: UnknownOutcome
  /// Used where a request names no sender.
  public var credentials: CredentialSet
  /// By the sender id that `x-push-sender` names.
  public var senders: [String: CredentialSet]
}

/// What reaches the devices of an application for one sender.
public struct CredentialSet: Sendable, Equatable {
  /// At most one for each environment; the first serves tokens whose environment isn't known.
  public var apns: [APNsConfiguration]
  public var fcm: FCMConfiguration?

  public func reaches(_ platform: Platform) -> Bool { platform == .apns ? !apns.isEmpty : fcm != nil }

  /// With what is missing taken from `other`.
  func completed(by other: CredentialSet) -> CredentialSet {
    CredentialSet(apns: apns.isEmpty ? other.apns : apns, fcm: fcm ?? other.fcm)
  }
}

public struct FCMConfiguration: Sendable, Hashable {
  /// The Android application's package name, as `restricted_package_name` spells it.
  public var package: String
  /// The service account's JSON key file.
  public var serviceAccount: Material
  /// The project's quota, of all shards of this worker together.
  public var messagesPerMinute: Int
  /// Google's endpoint unless the configuration names a simulator or proxy, which then serves tokens as well.
  public var host: String
  public var port: Int
  public var isEndpointGiven: Bool
  public var ca: Material?
}

public struct APNsConfiguration: Sendable, Hashable {
  public enum Credential: Sendable, Hashable {
    /// The `.p8`, the key's id and the team's id, ten characters each.
    case token(key: Material, keyID: String, teamID: String)
    /// A PKCS#12 archive or PEM, a separate key if there is one, and the passphrase.
    case certificate(Material, key: Material?, passphrase: Material?)
  }

  public enum Environment: String, CaseIterable, Sendable {
    case production, sandbox
  }

  public var credential: Credential
  /// The bundle id.
  public var topic: String
  /// What a request may choose besides `topic` and its push types' forms.
  public var topics: [String]
  public var environment: Environment
  /// Apple's endpoint of the environment unless the configuration names a simulator or proxy.
  public var host: String
  public var port: Int
  /// Where broadcasts to channels go: the same, unless the configuration names another.
  public var broadcastHost: String
  public var broadcastPort: Int
  /// Where channels are managed: Apple's of the environment, or the endpoint that is named for all.
  public var channelsHost: String
  public var channelsPort: Int
  public var ca: Material?
  /// Seconds that APNs may take to answer a push.
  public var timeout: Int
}

/// What follows where a push was sent and its answer never came: it may have been delivered.
public enum UnknownOutcome: String, CaseIterable, Sendable {
  /// It is sent again, with the same `apns-id`: rather twice than not at all.
  case retry
  /// It ends as `Unknown` in the dead letters: rather not at all than twice.
  case drop
}
