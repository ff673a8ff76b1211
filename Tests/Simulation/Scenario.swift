import AMQP
import Broker
import DeviceRegistry
import Foundation
import Providers
import PushCore
import Settings
import Wire
import Worker

/// The start of a seed: the numbers of everything and the workers' configuration.
struct Scenario {
  var workers: Int
  var apps: Int
  /// True if each application has separate provider endpoints, so that one may have a fault while the others work.
  var ownsProviders: Bool
  /// The application of most requests; nil if all have about the same number.
  var loud: Int?
  /// Seconds from the beginning at which its requests come together; nil if they are spread.
  var surge: Double?
  /// Registered devices of each application, all in the topic `all`.
  var devices: Int
  var requests: Int
  var broadcasts: Int
  var changes: Int
  /// Pages left by a worker of a later version.
  var newerPages: Int
  /// Seconds between the moments of all events; nil if they are spread.
  var beat: Double?
  /// Seconds in which requests are published and faults happen.
  var duration: Double
  var prefetch = usualPrefetch
  static let usualPrefetch = 100
  /// The queues of each lane of requests. An operator changes their number up to this one.
  var laneQueues = 1
  /// The pages of each chain of a broadcast.
  var chainPages: Int64 = .max
  /// The push services of browsers; empty if no application has web push.
  var services: [PushService] = []
  /// True if only push services have faults.
  var onlyServicesFail = false

  /// - Parameter isDivided: gives the applications separate endpoints, whatever the seed chooses.
  init(seed: UInt64, _ random: inout RandomSource, isDivided: Bool = false) {
    workers = Int.random(in: 1...4, using: &random)
    ownsProviders = random.next() % 2 == 0 || isDivided
    apps = Self.apps(&random, areDivided: ownsProviders)
    loud = ownsProviders && random.next() % 2 == 0 ? Int.random(in: 0..<apps, using: &random) : nil
    devices = Int.random(in: 0...(apps > 8 ? 12 : 60), using: &random)
    requests = Int.random(in: 20...160, using: &random)
    if loud != nil { requests += Int.random(in: 100...500, using: &random) }
    broadcasts = devices == 0 ? 0 : Int.random(in: 0...2, using: &random)
    changes = max(0, Int.random(in: -20...40, using: &random))
    newerPages = random.next() % 6 == 0 ? 1 : 0
    beat = random.next() % 3 == 0 ? 5 : nil
    duration = Double(Int.random(in: 10...90, using: &random))
    if loud != nil, random.next() % 2 == 0 {
      surge = Double.random(in: 3...duration, using: &random)
      requests *= Int.random(in: 1...3, using: &random)
    }
    prefetch = Self.prefetch(seed)
    laneQueues = Self.laneQueues(seed)
    chainPages = Self.chainPages(seed)
    (services, onlyServicesFail) = Self.services(seed)
    if ownsProviders, random.next() % 32 == 0 { duration = Double(Int.random(in: 600...7_200, using: &random)) }
  }

  /// Every fourth seed has a small prefetch, so that more requests wait than workers may hold.
  private static func prefetch(_ seed: UInt64) -> Int {
    var random = RandomSource(seed: seed ^ 0x7072_6566_6574_6368)
    return random.next() % 4 == 1 ? Int.random(in: 2...20, using: &random) : usualPrefetch
  }

  /// Every fifth seed has lanes of several queues.
  private static func laneQueues(_ seed: UInt64) -> Int {
    var random = RandomSource(seed: seed ^ 0x6c61_6e65)
    return random.next() % 5 == 0 ? Int.random(in: 2...4, using: &random) : 1
  }

  /// In every second seed, broadcasts to many devices have several chains.
  private static func chainPages(_ seed: UInt64) -> Int64 {
    var random = RandomSource(seed: seed ^ 0x6368_6169_6e73)
    return random.next() % 2 == 0 ? Int64.random(in: 1...3, using: &random) : .max
  }

  /// Every third seed has web push. In half of these, only push services have faults.
  private static func services(_ seed: UInt64) -> (all: [PushService], failAlone: Bool) {
    var random = RandomSource(seed: seed ^ 0x72_6663_3832_3932)
    guard random.next() % 3 == 0 else { return ([], false) }
    let failAlone = random.next() % 2 == 0
    let count = Int.random(in: 2...4, using: &random)
    return (Array(PushService.allCases.shuffled(using: &random).prefix(count)), failAlone)
  }

  /// Every second application has web push.
  func hasBrowsers(_ app: Int) -> Bool { !services.isEmpty && app.isMultiple(of: 2) }

  private static let steps: KeyValuePairs<String, Int64> = ["1s": 1_000, "10s": 10_000, "1m": 60_000]

  static func topology(laneQueues: Int) -> Topology {
    Topology(ladder: steps.map { RetryStep(name: $0, delay: $1) }, laneQueues: laneQueues)
  }

  private static func apps(_ random: inout RandomSource, areDivided: Bool) -> Int {
    switch random.next() % 8 {
    case 0: 50
    case 1: Int.random(in: 6...50, using: &random)
    default: Int.random(in: 2...(areDivided ? 8 : 4), using: &random)
    }
  }

  /// - Parameter spread: seconds after the beat within which the moment is.
  func moment(after start: Double, within spread: Double, _ random: inout RandomSource) -> Double {
    let time = Double.random(in: start...duration, using: &random)
    guard let beat else { return time }
    return max(start, (time / beat).rounded(.down) * beat) + Double.random(in: 0...spread, using: &random)
  }

  /// Values of `x-push-sender`.
  enum Sender: String {
    /// Every second application has this sender.
    case other = "1001"
    /// No application has this sender.
    case unknown = "1002"
  }

  /// Seconds that APNs has for an answer.
  static let timeout = 10.0
  static let attempts = 8
  /// Seconds that a worker has to drain.
  static let drainTimeout = 20.0
  private static let pages = 2
  /// Most requests that a worker may hold. The terms: lanes and quarantine, twice, because applications with few requests have
  /// room when others fill it; changes and acknowledgements, twice, because those of a lost channel stay until their consequences
  /// are confirmed; each hold queue and the way to it; requests that wait for a queue
  /// without confirms.
  /// - Parameters:
  ///   - orphans: the worker's requests whose channel is lost.
  ///   - unconfirmed: the worker's unconfirmed publications.
  func mostInHand(holds: Int, orphans: Int, unconfirmed: Int) -> Int {
    2 * (2 * prefetch + 2 * Self.pages + 1 + orphans) + 4 * prefetch + (holds == 0 ? 0 : 264 * holds + 2_000)
      + min(unconfirmed, 16_000)
  }

  static let user = "guest"
  static func app(_ number: Int) -> String { "com.example.app\(number)" }
  static let apnsProviders = 2

  func host(_ platform: Platform, of app: Int) -> String {
    switch platform {
    case .apns: ownsProviders ? "apns-\(app)" : "apns\(app % Self.apnsProviders)"
    case .fcm: ownsProviders ? "fcm-\(app)" : "fcm"
    case .webpush: preconditionFailure("push services belong to no application")
    }
  }

  func addresses(_ platform: Platform, of apps: some Collection<Int>) -> Set<String> {
    Set(apps.map { "\(host(platform, of: $0)):443" })
  }

  static func has(_ sender: Sender, app: Int) -> Bool { sender == .other && app % 2 == 0 }

  /// The APNs key used for a request to an application.
  static func keyID(app: Int, sender: Sender?) -> String { sender == nil ? "ABC123DEF\(app % 2)" : "SENDERKEY1" }

  /// A configuration as an operator writes it.
  /// - Parameter isLater: has one more application and sender, another timeout for every second application, which needs new
  ///   pools, and one more VAPID key.
  private func json5(isLater: Bool) -> String {
    let apps = (0..<self.apps + (isLater ? 1 : 0)).map { number in
      let hasSender = Self.has(.other, app: number) || isLater
      let timeout = Int(Self.timeout) - (isLater && number % 2 == 0 ? 1 : 0)
      let senders = hasSender ? "senders: { '\(Sender.other.rawValue)': { \(apns(number, .other, timeout)) } }," : ""
      let fcm = "fcm: { serviceAccount: \(Self.quoted(Self.account)), endpoint: 'https://\(host(.fcm, of: number)):443' }"
      let browsers = hasBrowsers(number) ? "\(webpush(isLater: isLater))," : ""
      return
        "'\(Self.app(number))': { producers: ['\(Self.user)'], \(senders) \(browsers) \(apns(number, nil, timeout)), \(fcm) }"
    }
    return """
      { broker: 'amqp://\(Self.user):guest@broker:5672/', registry: 'sqlite:/simulated', results: 'all', receipts: true,
        replyTo: '\(Producer.replies)', prefetch: \(prefetch), laneQueues: \(laneQueues), drainTimeout: \(Int(Self.drainTimeout)),
        retry: { steps: [\(Self.steps.map { "'\($0.key)'" }.joined(separator: ", "))], attempts: \(Self.attempts) }, fanOut: { pageSize: 7, prefetch: \(Self.pages) },
        log: 'info', trace: { keep: 'none' }, apps: { \(apps.joined(separator: ",\n")) } }
      """
  }

  private func apns(_ app: Int, _ sender: Sender?, _ timeout: Int) -> String {
    """
    apns: { key: \(Self.quoted(Keys.p256)), keyID: '\(Self.keyID(app: app, sender: sender))', teamID: 'DEF123GHIJ',
            endpoint: 'https://\(host(.apns, of: app)):443', timeout: \(timeout) }
    """
  }

  private static let vapidKeys = [Keys.p256, Keys.otherP256]

  private func webpush(isLater: Bool) -> String {
    let keys = Self.vapidKeys.prefix(isLater ? 2 : 1).map(Self.quoted)
    return """
      webpush: { key: [\(keys.joined(separator: ", "))], subject: 'mailto:operator@example.com',
                 hosts: [\(services.map { "'\($0.host)'" }.joined(separator: ", "))] }
      """
  }

  private static var account: String {
    let fields = [
      "type": "service_account", "project_id": "example-project", "private_key_id": "0123abcd", "private_key": Keys.rsa,
      "client_email": "sender@example-project.iam.gserviceaccount.com", "token_uri": "https://fcm/token",
    ]
    let data = (try? JSONSerialization.data(withJSONObject: fields, options: [.sortedKeys, .withoutEscapingSlashes])) ?? Data()
    return String(decoding: data, as: UTF8.self)
  }

  private static func quoted(_ text: String) -> String {
    let data = (try? JSONSerialization.data(withJSONObject: [text], options: .withoutEscapingSlashes)) ?? Data()
    return String(decoding: data.dropFirst().dropLast(), as: UTF8.self)
  }

  /// The first setup of every worker and the one it may reload. Connections are in memory, without TLS.
  func setups() throws -> [ShardSetup] {
    var known: [CredentialSource: LoadedCredential] = [:]
    return try [false, true].map { try setup(isLater: $0, &known) }
  }

  private func setup(isLater: Bool, _ known: inout [CredentialSource: LoadedCredential]) throws -> ShardSetup {
    let file = NSTemporaryDirectory() + "pushfleet-simulation-\(UUID().uuidString).json5"
    defer { try? FileManager.default.removeItem(atPath: file) }
    try json5(isLater: isLater).write(toFile: file, atomically: true, encoding: .utf8)
    var configuration = try Configuration.load(path: file, environment: [:])
    configuration.fanOut.chainPages = chainPages
    var credentials: [CredentialPlace: LoadedCredential] = [:]
    for (place, source) in configuration.credentials {
      if known[source] == nil { known[source] = try Self.load(source, number: known.count) }
      credentials[place] = known[source]
    }
    let brokers = configuration.brokers.map { BrokerAddress(uri: $0, tls: nil) }
    return ShardSetup(configuration: configuration, credentials: credentials, brokers: brokers)
  }

  private static func load(_ source: CredentialSource, number: Int) throws -> LoadedCredential {
    switch source.kind {
    case .apns(.token(_, let keyID, let teamID), let endpoint):
      let token = try TokenCredential(pem: Array(Keys.p256.utf8), keyID: keyID, teamID: teamID)
      let target = DialTarget(endpoint, tls: nil)
      return LoadedCredential(.apns(APNsCredentials(authentication: .token(token), target: target)), fingerprint: number)
    case .apns: preconditionFailure("the configuration has no certificates")
    case .webpush(let keys, let subject, let hosts):
      guard let hosts = HostPolicy(hosts) else { preconditionFailure("the configuration has wrong hosts") }
      let vapid = try vapidKeys.prefix(keys.count).map { try VAPIDKey(pem: Array($0.utf8), subject: subject) }
      return LoadedCredential(.webpush(WebPushCredentials(keys: vapid, hosts: hosts, tls: nil)), fingerprint: number)
    case .fcm(_, let given):
      guard let endpoint = given else { preconditionFailure("the configuration has no endpoint of the simulator") }
      let target = DialTarget(endpoint, tls: nil)
      let account = try ServiceAccount(file: Array(Self.account.utf8))
      let tokens = TokenEndpoint("https://\(endpoint)/token")
      return LoadedCredential(
        .fcm(try FCMCredentials(account: account, target: target, tokenEndpoint: tokens, tls: nil)), fingerprint: number)
    }
  }
}
