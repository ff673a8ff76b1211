import AMQP
import DeviceRegistry
import Foundation
import Logging
import Providers
import PushCore
import Reactor
import TestSupport
import Testing
import Wire

@testable import Broker
@testable import Settings
@testable import Delivery
@testable import Worker
@testable import pushfleet

/// Gives the same generated requests and configurations to `explain` and to a worker's pipeline (up to the provider's pool), after various
/// times in the queue.
@Suite struct ExplainedAsSentTests {
  static let seeds: [UInt64] = Array(0..<12)

  @Test(
    "explain shows the headers and bytes that a worker sends, and refuses the same requests", arguments: seeds)
  func same(seed: UInt64) throws {
    var site = try RandomSite(seed: seed)
    var (sent, refused) = (0, 0)
    for number in 0..<250 {
      let message = site.message(number)
      let shown = site.explained(message)
      let actual = try site.sent(message)
      #expect(shown == actual, "seed \(seed), message \(number): \(String(decoding: message.body, as: UTF8.self))")
      if actual.path != nil { sent += 1 } else { refused += 1 }
    }
    #expect(sent > 20 && refused > 5)
  }
}

/// A random configuration with a worker's pipeline, and requests for it.
private struct RandomSite {
  /// The outcome of a request for one device: a push or an error code.
  struct Outcome: Equatable {
    var path: String?
    var headers: [String: String] = [:]
    var payload: [UInt8] = []
    var error: PushError?
  }

  struct Message {
    var body: [UInt8]
    var id: [UInt8]
    var target: String
    var isForAPNs: Bool { target.hasPrefix("apns") }
    var sender: String?
    var environment: String?
    /// Unix seconds.
    var published: UInt64
  }

  private var generator: RequestGenerator
  private let configuration: Configuration
  private let loop: EventLoop
  private let pools: PoolSet
  private let pipeline: Pipeline
  private let outbox: Outbox
  /// Outbox slots that `newCode` has already read.
  private var seen: Set<Int> = []
  /// The count of expired requests when `newCode` last looked.
  private var expired = 0

  init(seed: UInt64) throws {
    generator = RequestGenerator(seed: seed)
    let folder = FileManager.default.temporaryDirectory.appending(path: "explained-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    configuration = try Self.configuration(&generator, in: folder)
    loop = try EventLoop()
    var credentialStore = CredentialStore()
    if let error = credentialStore.load(configuration).first { throw error }
    let setup = ShardSetup(
      configuration: configuration, credentials: credentialStore.credentials, brokers: credentialStore.brokers)
    pools = PoolSet(setup, host: loop)
    let (apps, time, log) = (pools.apps, loop.time, Log(level: .error))
    outbox = Outbox(time: time, log: log)
    let publications = OutcomePublications(prefix: "push", apps: apps, steps: configuration.retry.steps)
    let tools = ShardTools(apps: apps, registry: nil, publications: publications, outbox: outbox, time: time, log: log)
    pipeline = Pipeline(configuration, tools, accounts: pools.accounts, replyQueues: ReplyQueues(time: time))
  }

  private static func configuration(_ generator: inout RequestGenerator, in folder: URL) throws -> Configuration {
    let certificates = try TestCertificates.make()
    let account = [
      "type": "service_account", "project_id": "p", "private_key_id": "0123abcd",
      "private_key": try String(contentsOfFile: certificates.rsaKey, encoding: .utf8), "client_email": "a@b",
      "token_uri": "https://oauth2.googleapis.com/token",
    ]
    try JSONSerialization.data(withJSONObject: account).write(to: folder.appending(path: "account.json"))
    func apns(_ environment: String, _ topic: String) -> String {
      "{ key: '\(certificates.p8)', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ', topic: '\(topic)', environment: '\(environment)' }"
    }
    let ways = generator.pick([
      apns("production", "com.example.app"),
      "[\(apns("sandbox", "com.example.dev")), \(apns("production", "com.example.app"))]",
    ])
    let fcm = "fcm: { serviceAccount: 'account.json', package: 'com.example.app' }"
    let app = """
      "com.example.app": { apns: \(ways), \(fcm), defaultPriority: '\(generator.pick(["normal", "high"]))',
        unknownKeys: '\(generator.pick(["refuse", "ignore"]))',
        senders: { "42": { apns: \(apns("sandbox", "com.example.other")) } } }
      """
    let limits = generator.pick(["", "notification: 4096, data: 100", "topicData: 10, body: 2048"])
    let file = folder.appending(path: "c.json5")
    try "{ broker: 'amqp://h/', limits: { \(limits) }, apps: { \(app) } }".write(to: file, atomically: true, encoding: .utf8)
    return try Configuration.load(path: file.path, environment: [:])
  }

  /// A request for one device, because `explain` and the pipeline can be compared only without a registry.
  mutating func message(_ number: Int) -> Message {
    let target = generator.pick(Self.targets)
    var body: [UInt8]
    repeat {
      let isActivity = generator.one(in: target.contains("channel") ? 2 : 20)
      body = Array((isActivity ? generator.pick(Self.activities) : generator.request().text).utf8)
      if let document = try? JSONDocument(body) { body = DeadLetter.body(document, naming: Array(target.utf8)) }
      // In a list, a push to topics can be too large by itself.
      if target.contains("topics"), generator.one(in: 2) {
        let to = #""to":"\#(target)""#
        body = Array(String(decoding: body, as: UTF8.self).replacing(to, with: #""registration_ids":["\#(target)"]"#).utf8)
      }
    } while Self.isDryRun(body)
    let age = generator.pick([0, 0, 1, 30, 100, 3_600, 2_419_199, 2_419_300] as [UInt64])
    return Message(
      body: body, id: Array("m-\(number)".utf8), target: target,
      sender: generator.one(in: 4) ? generator.pick(["42", "43"]) : nil,
      environment: generator.one(in: 4) ? generator.pick(["production", "sandbox", "beta"]) : nil,
      published: UInt64(loop.time.wallClock / 1000) - age)
  }

  private static let targets = [
    "apns:00ff", "apns:00ff", "fcm:a:b", "fcm:a:b", "apns-channel:bm8=", "fid:cXyZ0123456789_-AbCdEf", "fcm:/topics/a",
    "fcm:'a' in topics && 'b' in topics",
  ]
  /// Valid and invalid requests for a channel.
  private static let activities = [
    #""event":"update","content-state":{}"#, #""event":"update""#, #""event":"end""#, #""event":"start","content-state":{}"#,
  ].flatMap { aps in
    [
      "", #","collapse_key":"k","android":{"ttl":"60s"}"#, #","time_to_live":60,"notification":{"title":"t","badge":1}"#,
      #","notification":{"badge":"auto"}"#,
    ].map { #"{"apns":{"payload":{"aps":{"timestamp":1,\#(aps)}}}\#($0)}"# }
  }

  /// A worker never sends a dry run.
  private static func isDryRun(_ body: [UInt8]) -> Bool {
    var limits = RequestLimits()
    limits.ignoresUnknownNames = true
    return (try? SendRequest.parse(body, limits: limits).get().isDryRun) ?? false
  }

  // MARK: The two outcomes

  func explained(_ message: Message) -> Outcome {
    let question = ExplainQuestion(
      body: message.body, configuration: configuration, sender: message.sender,
      environment: message.environment,
      messageID: text(message.id), published: Int64(message.published) * 1000, now: loop.time.wallClock)
    let answer = question.answer()
    if let rejection = answer.rejection { return Outcome(error: rejection.code) }
    switch answer.views.first(where: { $0.way.platform == (message.isForAPNs ? .apns : .fcm) })?.outcome {
    case nil: return Outcome()
    case .failure(let rejection): return Outcome(error: rejection.code)
    case .success(let sending):
      // `explain` was given no target, so it prints a placeholder for the token.
      return Outcome(
        path: sending.path, headers: Dictionary(uniqueKeysWithValues: sending.headers.map { ($0.name, $0.value) }),
        payload: Array(String(decoding: sending.payload, as: UTF8.self).replacing("<token>", with: "a:b").utf8))
    }
  }

  mutating func sent(_ message: Message) throws -> Outcome {
    var delivery = Delivery()
    delivery.exchange = Array("push.send".utf8)
    delivery.properties.messageID = message.id
    delivery.properties.timestamp = message.published
    if let sender = message.sender { delivery.properties.headers.append("x-push-sender", .text(sender)) }
    if let environment = message.environment { delivery.properties.headers.append("x-push-environment", .text(environment)) }
    delivery.body = message.body
    delivery.bodySize = UInt64(message.body.count)
    pipeline.accept(delivery, from: .sendNormal)
    for pool in pipeline.dispatcher.pools.indices {
      while let waiting = pipeline.dispatcher.pools[pool].popFirst() {
        guard let entry = pipeline.table[waiting.request] else { continue }
        return handedOver(entry, by: pipeline.dispatcher.pools[pool].account)
      }
    }
    return Outcome(error: newCode())
  }

  private mutating func handedOver(_ entry: InFlight, by account: PoolAccount) -> Outcome {
    let now = loop.time.wallClock
    switch account.pool.platform {
    case .apns:
      guard let template = try? pipeline.translations.apns(of: entry, entry.way(0), at: now) else {
        return refused(entry, account)
      }
      let push = template.stamp(token: entry.recipients[0].token)
      let isBroadcast = template.isBroadcast
      var headers = [
        isBroadcast ? "apns-channel-id" : "apns-topic": text(isBroadcast ? Array(push.channel) : push.topic),
        "apns-push-type": text(push.pushType), "apns-priority": "\(push.priority)",
        "apns-expiration": "\(push.expiration)",
      ]
      if let id = push.collapseID { headers["apns-collapse-id"] = text(id) }
      if !isBroadcast { headers["apns-id"] = text(push.id) }
      if isBroadcast, let id = template.fixedID { headers["apns-request-id"] = text(id) }
      let path = isBroadcast ? "/4/broadcasts/apps/\(text(push.topic))" : nil
      let token = template.activityToken.map(text) ?? "<token>"
      return Outcome(path: path ?? "/3/device/\(token)", headers: headers, payload: push.payload)
    case .fcm:
      guard let template = try? pipeline.translations.fcm(of: entry, 0, at: now) else {
        return refused(entry, account)
      }
      return Outcome(
        path: "/v1/projects/<project>/messages:send", headers: ["content-type": "application/json"],
        payload: template.body(token: entry.recipients[0].token))
    case .webpush: return refused(entry, account)
    }
  }

  private mutating func refused(_ entry: InFlight, _ account: PoolAccount) -> Outcome {
    pipeline.send(entry, 0, by: account)
    return Outcome(error: newCode())
  }

  /// The error code of the new dead letter. If there is none, the request has expired or was for another platform.
  private mutating func newCode() -> PushError? {
    for slot in outbox.slots.indices where seen.insert(slot).inserted {
      if let letter = outbox.slots[slot], letter.kind == .deadLetter,
        let name = letter.properties.headers.string("x-push-error")
      {
        return PushError(rawValue: text(name))
      }
    }
    defer { expired = pipeline.observers.figures.counters.expired }
    return pipeline.observers.figures.counters.expired > expired ? .expired : .nothingForPlatform
  }

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
