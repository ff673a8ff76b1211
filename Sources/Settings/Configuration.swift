import AMQP
import Broker
import DeviceRegistry
import Logging
import Providers
import PushCore
import Reactor

/// The validated settings of a worker or gateway.
public struct Configuration: Sendable {
  /// Tried in turn on each connection attempt.
  public var brokers: [BrokerURI]
  /// The CA of an `amqps` broker's certificate; nil for the system's CAs.
  public var brokerCA: Material?
  /// The client certificate for `amqps` brokers.
  public var brokerIdentity: IdentityMaterial?
  /// The setting `proxy`; nil if it isn't given.
  public var proxy: ProxyChoice?
  /// An SQLite registry has an absolute path. nil if only provider tokens are used as targets.
  public var registry: RegistryLocation?
  /// Milliseconds without a registration after which broadcasts skip a device; nil for no limit.
  public var registryStaleAfter: Int64?
  public var results: ResultsSetting
  /// Optional outcomes that leave a dead letter.
  public var deadLetters: Set<PushError>
  /// True if devices' acknowledgements are published to `<prefix>.receipts`.
  public var receipts: Bool
  /// Queues that may receive results, besides direct reply-to and exclusive queues; nil for all except the fleet's queues.
  public var replyTo: [String]?
  public var prefix: String
  /// The most unacknowledged requests per shard and lane.
  public var prefetch: Int
  /// The queues of each lane of requests.
  public var laneQueues: Int
  public var shards: Int
  /// Seconds that a stopping worker waits for outstanding answers.
  public var drainTimeout: Int
  public var retry: RetrySettings
  public var fanOut: FanOutSettings
  public var breaker: BreakerSettings
  public var log: LogLevel
  /// nil for text on a terminal and JSON elsewhere.
  public var logFormat: LogFormat?
  public var registryLimits: RegistryLimits
  public var limits: RequestLimits
  /// nil if requests are not traced.
  public var trace: TraceSettings?
  /// The collector for spans of requests; nil if no spans are sent.
  public var traces: OTLPSettings?
  /// The address that serves metrics in Prometheus' text format; nil for none.
  public var metrics: Endpoint?
  /// nil if content pages are off.
  public var richPages: RichPageSettings?
  /// The listeners of `pushfleet gateway`; nil if there are none.
  public var gateway: GatewaySettings?
  /// Sorted by id.
  public var apps: [AppConfiguration]
  /// Files that contain values of settings.
  var valueFiles: [String] = []

  /// - Returns: nil if no registry is configured.
  /// - Throws: if no thread can be started.
  package func registryClient(host: any RegistryHost, log: Log) throws(ConfigurationError) -> RegistryClient? {
    guard let registry else { return nil }
    do throws(SystemError) { return try RegistryClient(registry, limits: registryLimits, host: host, log: log) } catch {
      throw ConfigurationError(key: "registry", problem: "can't be used: no thread could be started: \(error)")
    }
  }
}

/// The requests whose result is published to `<prefix>.results`.
public enum ResultsSetting: String, CaseIterable, Sendable {
  case none, failures, all
}

public struct FanOutSettings: Sendable, Equatable {
  public var pageSize: Int
  /// The most unacknowledged pages per shard and priority.
  public var prefetch: Int
  /// The pages of a chain: a broadcast with more pages has several chains. Operators can't set it.
  public var chainPages: Int64 = 250

  /// The number of chains for a new campaign.
  public func chains(for devices: Int64) -> Int64 {
    min(max(0, devices - 1) / Int64(pageSize) / chainPages + 1, CampaignDescription.mostChains)
  }
}

/// The share of refused tokens above which a wrong setting is the likely cause.
public struct BreakerSettings: Sendable, Equatable {
  /// Percentage of refused tokens among a minute's answers.
  public var percent: Int
  /// Answers needed before the percentage counts.
  public var sample: Int
}

public struct RetrySettings: Sendable, Equatable {
  /// Steps of the retry ladder, shortest delay first.
  public var steps: [RetryStep]
  /// Total attempts before a request becomes a dead letter.
  public var attempts: Int
}

public struct AppConfiguration: Sendable, Equatable {
  public var id: String
  /// The broker users that may publish for the app; nil for all users.
  public var producers: [String]?
  /// The priority of requests that name no priority (GS-051).
  public var defaultPriority: Priority
  /// True if pushes contain the object `mps`, which the app's library acknowledges.
  public var isUPMC: Bool
  /// True if a request without a badge is treated like one with the badge `auto`.
  public var countsBadges: Bool
  /// True if unknown names in a request are ignored and old senders' variants accepted (GS-012); false to refuse them.
  public var ignoresUnknownNames: Bool
  /// The setting for requests without the header `x-push-unknown`.
  public var unknownOutcome: UnknownOutcome
  /// The credentials for requests without a sender.
  public var credentials: CredentialSet
  /// By sender id, as in `x-push-sender`.
  public var senders: [String: CredentialSet]
  /// In the order of their names.
  public var webhooks: [WebhookConfiguration] = []
}

/// The credentials of an application or of one of its senders.
public struct CredentialSet: Sendable, Equatable {
  /// At most one per environment. Tokens of an unknown environment use the first.
  public var apns: [APNsConfiguration]
  public var fcm: FCMConfiguration?
  public var webpush: WebPushConfiguration?

  public func reaches(_ platform: Platform) -> Bool {
    switch platform {
    case .apns: !apns.isEmpty
    case .fcm: fcm != nil
    case .webpush: webpush != nil
    }
  }

  var isEmpty: Bool { !Platform.allCases.contains(where: reaches) }

  /// A copy with missing credentials from `other`.
  func completed(by other: CredentialSet) -> CredentialSet {
    CredentialSet(apns: apns.isEmpty ? other.apns : apns, fcm: fcm ?? other.fcm, webpush: webpush ?? other.webpush)
  }
}

public struct FCMConfiguration: Sendable, Hashable {
  /// The Android package name, as in `restricted_package_name`.
  public var package: String
  public var serviceAccount: Material
  /// The project's quota. All shards of the fleet share it.
  public var messagesPerMinute: Int
  /// That of a simulator or proxy that also issues access tokens; nil for Google's.
  public var endpoint: Endpoint?
  public var ca: Material?
  public var proxy: ProxyChoice
}

public struct APNsConfiguration: Sendable, Hashable {
  public enum Credential: Sendable, Hashable {
    /// The `.p8` key, the key id and the team id; the ids have ten characters each.
    case token(key: Material, keyID: String, teamID: String)
    case certificate(IdentityMaterial)
  }

  public enum Environment: String, CaseIterable, Sendable {
    case production, sandbox
  }

  public var credential: Credential
  /// The bundle id.
  public var topic: String
  /// Topics that a request may choose, in addition to `topic` with or without the suffix of a push type.
  public var topics: [String]
  public var environment: Environment
  /// Apple's for the environment, or that of a simulator or proxy.
  public var endpoint: Endpoint
  /// For channel broadcasts; the same as `endpoint` unless configured.
  public var broadcastEndpoint: Endpoint
  /// For managing channels: Apple's for the environment, or the configured endpoint.
  public var channelsEndpoint: Endpoint
  public var ca: Material?
  public var proxy: ProxyChoice
  /// Seconds to wait for APNs' answer to a push.
  public var timeout: Int
}

/// The treatment of a push that got no answer and may have been delivered.
public enum UnknownOutcome: String, CaseIterable, Sendable {
  /// Send again with the same `apns-id`: a duplicate is better than a loss.
  case retry
  /// Dead letter `Unknown`: a loss is better than a duplicate.
  case drop
}
