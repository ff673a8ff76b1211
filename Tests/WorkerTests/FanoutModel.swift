import Foundation
import Logging
import Reactor
import TestSupport
import Testing

@testable import AMQP
@testable import Broker
@testable import DeviceRegistry
@testable import Delivery
@testable import PushCore
@testable import Settings
@testable import Worker

/// A broker, a registry on disk, workers that can die between any two steps, and a provider. Unless a test says otherwise, the
/// provider refuses each device with a reason of its own, so that each has a dead letter.
final class FanoutModel {
  static let app = Array("com.example.app".utf8)

  struct Message {
    var exchange: String
    var queue: WorkQueue
    var properties: BasicProperties
    var body: [UInt8]
    var isRedelivered = false
    /// The message comes from the quarantine.
    var isAlone = false
  }

  /// The broker counts a message's returns, so that workers put it into the quarantine.
  var countsReturns = false
  /// The fan-out and send queues. The ladder's messages come back at once.
  var queue: [Message] = []
  /// Devices whose dead letters have arrived, once for each.
  var reached: [String] = []
  /// The reasons of the dead letters.
  var reasons: Set<String> = []
  var results: [[UInt8]] = []
  /// The steps so far; the same for the same seed.
  private(set) var trace: [String] = []
  private(set) var workers: [Worker] = []
  let store: DeviceStore
  private let folder: String
  private let lease: Int64
  private let fanOut: FanOutSettings

  /// - Parameters:
  ///   - lease: the lifetime in milliseconds of a claim of the result.
  ///   - platform: the devices' platform; the application has an APNs credential only.
  ///   - chainPages: the pages of a chain.
  init(
    devices: Int, workers count: Int, lease: Int64 = 0, platform: Platform = .apns, pageSize: Int = 7, chainPages: Int64 = 250
  ) throws {
    self.lease = lease
    fanOut = FanOutSettings(pageSize: pageSize, prefetch: 4, chainPages: chainPages)
    folder = NSTemporaryDirectory() + "/pushfleet-fanout-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    store = try openRegistry(.sqlite(path: "\(folder)/registry.db"))
    var registrations: [Registration] = []
    for number in 0..<devices {
      let digits = String(repeating: "0", count: 64 - "\(number)".count) + "\(number)"
      var device = Registration(app: Self.app, platform: platform, token: Array(digits.utf8))
      device.topics = [Array("all".utf8)]
      registrations.append(device)
    }
    _ = try store.apply(registrations.map { .register($0) }, now: 1)
    for _ in 0..<count { workers.append(try Worker(registry, lease, fanOut)) }
  }

  deinit {
    for worker in workers { worker.die() }
    try? FileManager.default.removeItem(atPath: folder)
  }

  private var registry: RegistryLocation { .sqlite(path: "\(folder)/registry.db") }

  /// - Parameter messageID: nil for a request that only has its producer's timestamp.
  func request(_ messageID: String?) { queue.append(Self.broadcast(messageID)) }

  /// - Parameters:
  ///   - target: the target as in the body.
  ///   - age: the age of the producer's timestamp in seconds.
  ///   - collapseKey: nil for none.
  func request(_ messageID: String, _ target: String = #""to":"/topics/all""#, age: Int, collapseKey: String?) {
    var message = Self.broadcast(messageID)
    message.properties.timestamp = UInt64(Int(Date().timeIntervalSince1970) - age)
    let key = collapseKey.map { #","collapse_key":"\#($0)""# } ?? ""
    message.body = Array(#"{\#(target),"data":{"k":"v"}\#(key)}"#.utf8)
    queue.append(message)
  }

  static func broadcast(_ messageID: String?) -> Message {
    var properties = BasicProperties()
    properties.messageID = messageID.map { Array($0.utf8) }
    if messageID == nil { properties.timestamp = UInt64(Date().timeIntervalSince1970) }
    return Message(
      exchange: "push.send", queue: .sendNormal, properties: properties,
      body: Array(#"{"to":"/topics/all","data":{"k":"v"}}"#.utf8))
  }

  var isQuiet: Bool { queue.isEmpty && workers.allSatisfy { $0.held.isEmpty && $0.publications.isEmpty } }

  // MARK: steps

  /// Gives the first message to a worker.
  func deliver(to index: Int) {
    guard !queue.isEmpty, workers[index].held.count < 4 else { return }
    trace.append("\(queue[0].queue.origin) to \(index)")
    workers[index].accept(queue.removeFirst())
  }

  /// The worker takes all steps that need no confirm.
  func run(_ index: Int) { workers[index].run() }

  /// A result's counts. Its failures by code may be fewer than the failed devices, because a dead worker's are unknown.
  private func withoutFailures(_ result: [UInt8]) -> [UInt8] {
    let object = try? JSONSerialization.jsonObject(with: Data(result)) as? [String: Any]
    let failures = (object?["failures"] as? [[String: Any]] ?? []).reduce(0) { $0 + ($1["count"] as? Int ?? 0) }
    #expect(failures <= object?["failure"] as? Int ?? -1, "\(String(decoding: result, as: UTF8.self))")
    let text = String(decoding: result, as: UTF8.self)
    guard let range = text.range(of: #","failures":["#) else { return result }
    return Array((text[..<range.lowerBound] + "}").utf8)
  }

  /// A publication reaches its queue.
  func arrive(_ index: Int) {
    guard let publication = workers[index].arrive() else { return }
    trace.append("\(publication.kind) from \(index)")
    switch publication.kind {
    case .page, .retry, .hold:
      var properties = publication.properties
      properties.headers = properties.headers.removing(["x-push-origin"])
      let origin = publication.properties.headers.string("x-push-origin").map { String(decoding: $0, as: UTF8.self) }
      let address = String(decoding: publication.exchange + [UInt8(ascii: ".")] + publication.routingKey, as: UTF8.self)
      let queue = WorkQueue.allCases.first { $0.origin == origin || "push.\($0.origin)" == address } ?? .fanoutNormal
      let isAlone = publication.routingKey == Array(Topology.quarantineKey.utf8)
      let isLadder = publication.exchange == Array("push.retry".utf8) && !isAlone
      let exchange = isLadder ? Array("push.return".utf8) : publication.exchange
      self.queue.append(
        Message(
          exchange: String(decoding: exchange, as: UTF8.self), queue: queue, properties: properties, body: publication.body,
          isAlone: isAlone))
    case .deadLetter:
      let body = String(decoding: workers[index].body(of: publication), as: UTF8.self)
      if let reason = publication.properties.headers.string("x-push-reason") {
        reasons.insert(String(decoding: reason, as: UTF8.self))
      }
      reached.append(body.split(separator: "\"").first { $0.hasPrefix("pf1r~") }.map(String.init) ?? body)
    case .result: results.append(withoutFailures(publication.body))
    case .feedback, .receipt, .reply, .audit: break
    }
  }

  /// The worker receives the confirms of publications that have arrived.
  func confirm(_ index: Int) { workers[index].confirm() }

  /// Kills the worker and starts another one. The broker redelivers its messages.
  func kill(_ index: Int) throws {
    trace.append("\(index) dies with \(workers[index].held.count)")
    giveBack(workers[index].held)
    workers[index].die()
    workers[index] = try Worker(registry, lease, fanOut)
  }

  /// The worker's channel is closed: the broker redelivers, here or elsewhere.
  func loseChannel(_ index: Int) {
    giveBack(workers[index].held)
    workers[index].loseChannel()
  }

  /// The worker and its connection are suspended: the broker redelivers, and the worker doesn't know yet.
  func standStill(_ index: Int) {
    giveBack(workers[index].held)
    workers[index].standStill()
  }

  private func giveBack(_ held: [UInt64: Message]) {
    for (_, message) in held.sorted(by: { $0.key < $1.key }).reversed() {
      var again = message
      again.isRedelivered = true
      if countsReturns {
        var returns: Int64 = 0
        if case .integer(let count)? = again.properties.headers["x-delivery-count"] { returns = count }
        again.properties.headers = again.properties.headers.removing(["x-delivery-count"])
        again.properties.headers.append("x-delivery-count", .integer(returns + 1))
      }
      queue.insert(again, at: 0)
    }
  }

  /// A random step of one of two workers.
  /// - Returns: how many messages a worker had in hand that died or lost its channel; nil if none did.
  func stepByChance(using generator: inout SeededGenerator) throws -> Int? {
    let worker = Int.random(in: 0..<2, using: &generator)
    let count = workers[worker].held.count
    switch Int.random(in: 0..<40, using: &generator) {
    case 0..<8: deliver(to: worker)
    case 8..<16: run(worker)
    case 16..<27: arrive(worker)
    case 27..<38: confirm(worker)
    case 38:
      try kill(worker)
      return count
    default:
      loseChannel(worker)
      return count
    }
    return nil
  }

  /// Takes steps until nothing is left to do.
  func finish() {
    var rounds = 0
    while !isQuiet, rounds < 2_000 {
      rounds += 1
      for index in workers.indices {
        deliver(to: index)
        run(index)
        arrive(index)
        confirm(index)
        run(index)
      }
    }
  }

  // MARK: a worker

  final class Worker: Acknowledger {
    let loop: EventLoop
    let pipeline: Pipeline
    private let client: RegistryClient
    private let outbox: Outbox
    private let pools: PoolSet
    private(set) var held: [UInt64: Message] = [:]
    private var arrived: [Int] = []
    private var lastTag: UInt64 = 0
    private var generation: UInt32 = 0

    private static let setup = Result {
      let certificates = try TestCertificates.make()
      let file = NSTemporaryDirectory() + "/pushfleet-fanout-\(UUID().uuidString.prefix(8)).json5"
      defer { try? FileManager.default.removeItem(atPath: file) }
      let apns =
        "{ key: '\(certificates.p8)', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ', endpoint: 'https://127.0.0.1:1', ca: '\(certificates.authority)' }"
      try "{ broker: 'amqp://h/', apps: { 'com.example.app': { apns: \(apns) } } }".write(
        toFile: file, atomically: true, encoding: .utf8)
      return try ShardSetup(try Configuration.load(path: file, environment: [:]))
    }

    init(
      _ registry: RegistryLocation, _ lease: Int64, _ fanOut: FanOutSettings = FanOutSettings(pageSize: 7, prefetch: 4)
    ) throws {
      loop = try EventLoop()
      let log = Log(level: .error)
      outbox = Outbox(time: loop.time, log: log)
      pools = PoolSet(try Self.setup.get(), host: loop)
      client = try RegistryClient(registry, limits: RegistryLimits(), host: loop, log: log)
      pipeline = Pipeline(
        apps: pools.apps, accounts: pools.accounts, outbox: outbox, time: loop.time, registry: client, results: .all,
        steps: [RetryStep(name: "1s", delay: 1_000), RetryStep(name: "5m", delay: 300_000)], fanOut: fanOut,
        resultLease: lease)
      pipeline.backpressure.acknowledger = self
    }

    var isPublishingResult: Bool { publications.contains { outbox.slots[$0]?.kind == .result } }

    /// The slots of unconfirmed publications.
    var publications: [Int] { outbox.slots.indices }
    var hasCopy: Bool { publications.contains { outbox.slots[$0]?.kind == .retry } }

    func accept(_ message: Message) {
      lastTag += 1
      held[lastTag] = message
      var delivery = Delivery()
      delivery.token = DeliveryToken(generation: generation, tag: lastTag)
      delivery.exchange = Array(message.exchange.utf8)
      delivery.redelivered = message.isRedelivered
      delivery.properties = message.properties
      delivery.body = message.body
      delivery.bodySize = UInt64(message.body.count)
      pipeline.accept(delivery, from: message.queue, isAlone: message.isAlone)
    }

    func run() {
      var hasAsked = false
      repeat {
        while !client.isIdle { loop.turn(waitingAtMost: 0.05) }
        loop.turn(waitingAtMost: 0)
        hasAsked = answerAll()
        pipeline.collapses.flush()
      } while hasAsked
    }

    /// The provider's answer to a push, by the device's number; nil for none.
    var answer: (Int64) -> ReplyMeaning? = { _ in
      ReplyMeaning(reaction: .drop(.invalidParameters), reason: "test", status: 400)
    }

    /// The devices that each message was sent to, with repetitions.
    private(set) var sent: [String: [Int64]] = [:]

    /// Answers each waiting push.
    /// - Returns: true if the registry is asked for newer requests first.
    private func answerAll() -> Bool {
      var hasAsked = false
      while let waiting = pipeline.dispatcher.pools[0].popFirst() {
        guard let entry = pipeline.table[waiting.request] else { continue }
        guard !(entry.collapse.hasWaited && pipeline.collapses.asksFirst(entry, waiting, 0)) else {
          hasAsked = true
          continue
        }
        for index in entry.recipients.indices {
          guard pipeline.table[waiting.request] != nil, !entry.ledger.isOrphan,
            case .waiting = entry.recipients[index].state
          else { continue }
          guard !(entry.collapse.hasWaited && pipeline.collapses.isReplaced(entry, index)) else {
            pipeline.collapse(entry, index)
            continue
          }
          entry.recipients[index].state = .sent
          entry.ledger.pushed()
          let device = entry.registry.rows?[entry.recipients[index].row].id ?? 0
          sent[String(decoding: entry.identity.messageID, as: UTF8.self), default: []].append(device)
          guard let meaning = answer(device) else { continue }
          pipeline.answered(
            tag: PushTag(entry: entry.index, recipient: index).rawValue, meaning: meaning, name: nil,
            from: pipeline.dispatcher.pools[0].pool)
        }
      }
      return hasAsked
    }

    func body(of publication: Publication) -> [UInt8] { pipeline.body(of: publication) }

    func arrive() -> Publication? {
      guard let slot = publications.first(where: { !arrived.contains($0) }) else { return nil }
      arrived.append(slot)
      return outbox.slots[slot]
    }

    func confirm() {
      guard let slot = arrived.first else { return }
      arrived.removeFirst()
      outbox.confirmed(slot)
    }

    func loseChannel() {
      standStill()
      goOn()
    }

    func standStill() {
      held = [:]
      generation += 1
    }

    func goOn() {
      pipeline.channelLost()
      // A withdrawn publication has no confirm, and its slot is reused.
      arrived.removeAll { outbox.slots[$0] == nil }
    }

    /// The work of a shard once a second.
    func tick() {
      pipeline.lookAtPages()
    }

    func die() { client.close() }

    var isReadingPaused = false
    func adjustPrefetch(fitting: Int, ahead: Int) {}
    func takeLanes(_ takes: Bool) {}

    func acknowledge(_ token: DeliveryToken) {
      precondition(token.generation == generation && held[token.tag] != nil, "acknowledged twice, or on a channel that is gone")
      held[token.tag] = nil
    }
  }
}
