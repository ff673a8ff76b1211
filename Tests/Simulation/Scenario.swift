import AMQP
import Broker
import DeviceRegistry
import Foundation
import Providers
import PushCore
import Settings
import Wire
import Worker

/// What a seed begins with: how many of everything, and how the workers are set up.
struct Scenario {
  var workers: Int
  var apps: Int
  /// Each application has provider endpoints of its own, so that one may be in trouble while the others aren't.
  var ownsProviders: Bool
  /// The application that most requests are for; nil where they are for all alike.
  var loud: Int?
  /// Seconds from the beginning at which they come all together; nil where they are spread.
  var surge: Double?
  /// Devices in the registry for each application, all of them in the topic `all`.
  var devices: Int
  var requests: Int
  var broadcasts: Int
  /// Changes of the registry by message.
  var changes: Int
  /// Pages that a worker of a later version has left.
  var newerPages: Int
  /// Seconds between the moments at which everything happens that does; nil where it is spread.
  var beat: Double?
  /// Seconds over which the requests are published, and in which trouble happens.
  var duration: Double
  /// Messages that a worker takes of a lane at once.
  var prefetch = usualPrefetch
  static let usualPrefetch = 100

  /// - Parameter isDivided: the applications have endpoints of their own, whatever the seed says.
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
    if ownsProviders, random.next() % 32 == 0 { duration = Double(Int.random(in: 600...7_200, using: &random)) }
  }

  /// In every fourth seed few, so that what waits in the queues is more than workers may have in hand.
  private static func prefetch(_ seed: UInt64) -> Int {
    var random = RandomSource(seed: seed ^ 0x7072_6566_6574_6368)
    return random.next() % 4 == 1 ? Int.random(in: 2...20, using: &random) : usualPrefetch
  }

  private static func apps(_ random: inout RandomSource, areDivided: Bool) -> Int {
    switch random.next() % 8 {
    case 0: 50
    case 1: Int.random(in: 6...50, using: &random)
    default: Int.random(in: 2...(areDivided ? 8 : 4), using: &random)
    }
  }

  /// - Parameter spread: seconds from the beat within which it is.
  func moment(after start: Double, within spread: Double, _ random: inout RandomSource) -> Double {
    let time = Double.random(in: start...duration, using: &random)
    guard let beat else { return time }
    return max(start, (time / beat).rounded(.down) * beat) + Double.random(in: 0...spread, using: &random)
  }

  /// What `x-push-sender` says.
  enum Sender: String {
    /// Of every second application.
    case other = "1001"
    /// Of none.
    case unknown = "1002"
  }

  /// Seconds that APNs has for an answer.
  static let timeout = 10.0
  static let attempts = 8
  /// Seconds that a worker has to drain.
  static let drainTimeout = 20.0
  private static let pages = 2
  /// Of the lanes and the quarantine, twice as applications with little in hand have room when all others fill it; changes of the registry, and acknowledgements; of each hold queue, and on the way there; and what waits for a queue that confirms nothing.
  /// - Parameters:
  ///   - orphans: the worker's requests whose channel is lost.
  ///   - unconfirmed: what the worker has published.
  func mostInHand(holds: Int, orphans: Int, unconfirmed: Int) -> Int {
    2 * (2 * prefetch + 2 * Self.pages + 1 + orphans) + 2 * prefetch + (holds == 0 ? 0 : 264 * holds + 2_000)
      + min(unconfirmed, 16_000)
  }

  /// The broker's only one.
  static let user = "guest"
  static func app(_ number: Int) -> String { "com.example.app\(number)" }
  static let apnsHouses = 2

  /// Where an application's provider is.
  func host(_ platform: Platform, of app: Int) -> String {
    switch platform {
    case .apns: ownsProviders ? "apns-\(app)" : "apns\(app % Self.apnsHouses)"
    case .fcm: ownsProviders ? "fcm-\(app)" : "fcm"
    }
  }

  func addresses(_ platform: Platform, of apps: some Collection<Int>) -> Set<String> {
    Set(apps.map { "\(host(platform, of: $0)):443" })
  }

  static func has(_ sender: Sender, app: Int) -> Bool { sender == .other && app % 2 == 0 }

  /// The APNs key that a request to an application goes by.
  static func keyID(app: Int, sender: Sender?) -> String { sender == nil ? "ABC123DEF\(app % 2)" : "SENDERKEY1" }

  /// A configuration as an operator writes it.
  /// - Parameter isLater: with an application more, and a sender, and with another timeout for every second application, for which pools
  ///   are made anew.
  private func json5(isLater: Bool) -> String {
    let apps = (0..<self.apps + (isLater ? 1 : 0)).map { number in
      let hasSender = Self.has(.other, app: number) || isLater
      let timeout = Int(Self.timeout) - (isLater && number % 2 == 0 ? 1 : 0)
      let senders = hasSender ? "senders: { '\(Sender.other.rawValue)': { \(apns(number, .other, timeout)) } }," : ""
      let fcm = "fcm: { serviceAccount: \(Self.quoted(Self.account)), endpoint: 'https://\(host(.fcm, of: number)):443' }"
      return "'\(Self.app(number))': { producers: ['\(Self.user)'], \(senders) \(apns(number, nil, timeout)), \(fcm) }"
    }
    return """
      { broker: 'amqp://\(Self.user):guest@broker:5672/', registry: 'sqlite:/simulated', results: 'all', receipts: true,
        replyTo: '\(Producer.replies)', prefetch: \(prefetch), drainTimeout: \(Int(Self.drainTimeout)),
        retry: { steps: ['1s', '10s', '1m'], attempts: \(Self.attempts) }, fanOut: { pageSize: 7, prefetch: \(Self.pages) },
        log: 'info', trace: { keep: 'none' }, apps: { \(apps.joined(separator: ",\n")) } }
      """
  }

  private func apns(_ app: Int, _ sender: Sender?, _ timeout: Int) -> String {
    """
    apns: { key: \(Self.quoted(Keys.p256)), keyID: '\(Self.keyID(app: app, sender: sender))', teamID: 'DEF123GHIJ',
            endpoint: 'https://\(host(.apns, of: app)):443', timeout: \(timeout) }
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

  /// What every worker begins with, and what it may take over and go back from. Connections are made in memory, without TLS.
  func setups() throws -> [ShardSetup] {
    var known: [CredentialSource: LoadedCredential] = [:]
    return try [false, true].map { try setup(isLater: $0, &known) }
  }

  private func setup(isLater: Bool, _ known: inout [CredentialSource: LoadedCredential]) throws -> ShardSetup {
    let file = NSTemporaryDirectory() + "pushfleet-simulation-\(UUID().uuidString).json5"
    defer { try? FileManager.default.removeItem(atPath: file) }
    try json5(isLater: isLater).write(toFile: file, atomically: true, encoding: .utf8)
    let configuration = try Configuration.load(path: file, environment: [:])
    var credentials: [CredentialPlace: LoadedCredential] = [:]
    for (place, source) in configuration.credentials {
      if known[source] == nil { known[source] = try Self.load(source, number: known.count) }
      credentials[place] = known[source]
    }
    let brokers = configuration.brokers.map { BrokerAddress(uri: $0, tls: nil) }
    return ShardSetup(configuration: configuration, credentials: credentials, brokers: brokers)
  }

  private static func load(_ source: CredentialSource, number: Int) throws -> LoadedCredential {
    switch source {
    case .apns(.token(_, let keyID, let teamID), let host, let port, _):
      let token = try TokenCredential(pem: Array(Keys.p256.utf8), keyID: keyID, teamID: teamID)
      let target = DialTarget(host: host, port: UInt16(port), tls: nil)
      return LoadedCredential(.apns(APNsCredentials(authentication: .token(token), target: target)), fingerprint: number)
    case .apns: preconditionFailure("the configuration has no certificates")
    case .fcm(_, let host, let port, _, _):
      let target = DialTarget(host: host, port: UInt16(port), tls: nil)
      let account = try ServiceAccount(file: Array(Self.account.utf8))
      let tokens = TokenEndpoint("https://\(host):\(port)/token")
      return LoadedCredential(
        .fcm(try FCMCredentials(account: account, target: target, tokenEndpoint: tokens, tls: nil)), fingerprint: number)
    }
  }
}
