import Foundation
import Logging
import Reactor
import Settings
import TestSupport

@testable import AMQP
@testable import Broker
@testable import Delivery
@testable import PushCore
@testable import Worker

/// A broker with one queue, a provider, and workers whose channels close between any two steps. No pool sends: one step takes
/// waiting pushes from the lanes, another one answers them.
final class SendModel {
  struct Message {
    var number: Int
    var exchange = "push.send"
    var properties: BasicProperties
    var body: [UInt8]
    var isRedelivered = false
  }

  static let prefetch = 8

  var queue: [Message] = []
  /// How often the provider received each request, and how often it accepted it.
  var asked: [Int: Int] = [:]
  var taken: [Int: Int] = [:]
  /// Requests that have ended as dead letters.
  var dead: Set<Int> = []
  private(set) var workers: [Worker] = []
  private let configuration: Configuration

  init(workers count: Int) throws {
    configuration = try Self.configuration()
    for _ in 0..<count { workers.append(try Worker(configuration)) }
  }

  /// One application whose provider is unreachable.
  static func configuration() throws -> Configuration {
    let certificates = try TestCertificates.make()
    let file = NSTemporaryDirectory() + "/pushfleet-send-\(UUID().uuidString.prefix(8)).json5"
    defer { try? FileManager.default.removeItem(atPath: file) }
    let apns =
      "{ key: '\(certificates.p8)', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ', endpoint: 'https://127.0.0.1:1', ca: '\(certificates.authority)' }"
    try "{ broker: 'amqp://h/', apps: { 'com.example.app': { apns: \(apns) } } }".write(
      toFile: file, atomically: true, encoding: .utf8)
    return try Configuration.load(path: file, environment: [:])
  }

  func publish(_ number: Int) {
    var properties = BasicProperties()
    properties.messageID = Array("m-\(number)".utf8)
    let token = String(repeating: "0", count: 64 - String(number).count) + String(number)
    queue.append(Message(number: number, properties: properties, body: Array(#"{"to":"\#(token)"}"#.utf8)))
  }

  var isQuiet: Bool { queue.isEmpty && workers.allSatisfy { $0.held.isEmpty && $0.isIdle } }

  func deliver(to index: Int) {
    guard !queue.isEmpty, workers[index].held.count < Self.prefetch else { return }
    workers[index].accept(queue.removeFirst())
  }

  /// One waiting push leaves for the provider.
  func send(_ index: Int) { if let number = workers[index].send() { asked[number, default: 0] += 1 } }

  func answer(_ index: Int, _ answer: Worker.Answer, at place: Int) {
    guard let number = workers[index].answer(answer, at: place) else { return }
    switch answer {
    case .delivered: taken[number, default: 0] += 1
    case .notSent, .outOfReach: asked[number] = asked[number].flatMap { $0 == 1 ? nil : $0 - 1 }
    case .gone, .refused, .overloaded, .unknown: break
    }
  }

  /// A publication reaches its queue. The worker receives the confirm unless the connection ends first.
  func confirm(_ index: Int, isHeardOf: Bool) {
    guard let (slot, publication) = workers[index].nextPublication() else { return }
    defer { workers[index].settle(slot, isHeardOf: isHeardOf) }
    let number = Self.number(publication.properties)
    switch publication.kind {
    case .retry, .hold:
      queue.append(
        Message(number: number, exchange: "push.return", properties: publication.properties, body: publication.body))
    case .deadLetter: dead.insert(number)
    case .feedback, .result, .receipt, .reply, .page, .audit: break
    }
  }

  static func number(_ properties: BasicProperties) -> Int {
    Int(String(decoding: (properties.messageID ?? []).dropFirst(2), as: UTF8.self)) ?? -1
  }

  func loseChannel(_ index: Int) { giveBack(workers[index].loseChannel()) }

  private func giveBack(_ held: [Message]) {
    for message in held.reversed() {
      var again = message
      again.isRedelivered = true
      queue.insert(again, at: 0)
    }
  }

  /// Takes steps until nothing is left to do.
  func finish() {
    var rounds = 0
    while !isQuiet, rounds < 5_000 {
      rounds += 1
      for index in workers.indices {
        deliver(to: index)
        send(index)
        answer(index, .delivered, at: 0)
        confirm(index, isHeardOf: true)
      }
    }
  }

  // MARK: a worker

  final class Worker: Acknowledger {
    enum Answer { case delivered, gone, refused, overloaded, unknown, notSent, outOfReach }

    private let loop: EventLoop
    private let pipeline: Pipeline
    private let outbox: Outbox
    private let pools: PoolSet
    private(set) var held: [UInt64: Message] = [:]
    private var sent: [Int] = []
    private var lastTag: UInt64 = 0
    private var generation: UInt32 = 0
    /// Set by the model: whether a request may be acknowledged.
    var mayBeDone: ((Int) -> Bool)?
    private(set) var doneTooEarly: [Int] = []
    var isReadingPaused = false
    func adjustPrefetch(fitting: Int, ahead: Int) {}
    func takeLanes(_ takes: Bool) {}

    init(_ configuration: Configuration) throws {
      loop = try EventLoop()
      outbox = Outbox(time: loop.time, log: Log(level: .error))
      pools = PoolSet(try ShardSetup(configuration), host: loop)
      pipeline = Pipeline(
        apps: pools.apps, accounts: pools.accounts, outbox: outbox, time: loop.time, attemptLimit: 1_000,
        breaker: Breaker(share: 0.5, sample: 20), prefetch: Self.begun / 2)
      pipeline.backpressure.acknowledger = self
    }

    /// The limit of begun requests; others wait unchanged.
    private static let begun = 4

    var isIdle: Bool { pipeline.isIdle }
    var hasNothingUnderway: Bool { pipeline.hasNothingUnderway }
    func drain() { pipeline.dispatcher.isDraining = true }

    func accept(_ message: Message) {
      lastTag += 1
      held[lastTag] = message
      var delivery = Delivery()
      delivery.token = DeliveryToken(generation: generation, tag: lastTag)
      delivery.redelivered = message.isRedelivered
      delivery.exchange = Array(message.exchange.utf8)
      delivery.properties = message.properties
      delivery.body = message.body
      delivery.bodySize = UInt64(message.body.count)
      pipeline.accept(delivery, from: .sendNormal)
    }

    /// The next push for a pool.
    func send() -> Int? {
      while let waiting = pipeline.dispatcher.pools[0].popFirst() {
        guard let entry = pipeline.table[waiting.request], !entry.ledger.isOrphan, case .waiting = entry.recipients[0].state
        else { continue }
        entry.recipients[0].state = .sent
        entry.ledger.pushed()
        sent.append(entry.index)
        return SendModel.number(entry.delivery.properties)
      }
      return nil
    }

    func answer(_ answer: Answer, at place: Int) -> Int? {
      guard !sent.isEmpty else { return nil }
      let index = sent.remove(at: place % sent.count)
      let tag = PushTag(entry: index, recipient: 0).rawValue
      let number = SendModel.number(pipeline.table[index].delivery.properties)
      let pool = pipeline.dispatcher.pools[0].pool
      func said(_ reaction: Reaction) -> ReplyMeaning { ReplyMeaning(reaction: reaction, reason: "test", status: 200) }
      switch answer {
      case .delivered: pipeline.answered(tag: tag, meaning: said(.delivered), name: nil, from: pool)
      case .gone: pipeline.answered(tag: tag, meaning: said(.gone(.notRegistered)), name: nil, from: pool)
      case .refused: pipeline.answered(tag: tag, meaning: said(.drop(.invalidParameters)), name: nil, from: pool)
      case .overloaded: pipeline.answered(tag: tag, meaning: said(.retry(.connection, .unavailable)), name: nil, from: pool)
      case .unknown: pipeline.unknown(tag: tag, reason: "test", from: pool)
      case .notSent: pipeline.notSent(tag: tag, why: .unreachable, from: pool)
      case .outOfReach: pipeline.notSent(tag: tag, why: .refused, from: pool)
      }
      pipeline.beginAhead()
      return number
    }

    /// A list with one device for each answer is received, sent and answered.
    func take(list answers: [Reaction]) {
      let tokens = answers.indices.map { "\"\(String(repeating: "0", count: 63))\($0)\"" }.joined(separator: ",")
      accept(Message(number: 0, properties: BasicProperties(), body: Array("{\"registration_ids\":[\(tokens)]}".utf8)))
      guard let waiting = pipeline.dispatcher.pools[0].popFirst(), let entry = pipeline.table[waiting.request]
      else {
        return
      }
      for index in answers.indices {
        entry.recipients[index].state = .sent
        entry.ledger.pushed()
      }
      for (index, reaction) in answers.enumerated() {
        pipeline.answered(
          tag: PushTag(entry: entry.index, recipient: index).rawValue,
          meaning: ReplyMeaning(reaction: reaction, reason: "test", status: 200), name: nil,
          from: pipeline.dispatcher.pools[0].pool)
      }
    }

    func nextPublication() -> (slot: Int, Publication)? {
      guard let slot = outbox.slots.indices.first, let publication = outbox.slots[slot] else { return nil }
      return (slot, publication)
    }

    func settle(_ slot: Int, isHeardOf: Bool) {
      if isHeardOf { outbox.confirmed(slot) } else { _ = outbox.failed(slot, .connectionLost) }
      pipeline.beginAhead()
    }

    /// The messages that it had, in the order of delivery.
    func loseChannel() -> [Message] {
      let lost = held.sorted { $0.key < $1.key }.map(\.value)
      held = [:]
      generation += 1
      lastTag = 0
      pipeline.channelLost()
      return lost
    }

    var lanes: PoolLanes { pipeline.dispatcher.pools[0] }
    /// Whether every request taken in is accounted for.
    var isLedgerBalanced: Bool {
      func amount(_ entry: RequestLedger.Entry) -> Int {
        pipeline.observers.figures.counters.ledger.amount(entry, AppSeries.others + 1)
      }
      let inHand = pipeline.table.entries.count { $0.isInUse && $0.source.account != nil }
      return amount(.inHand) == inHand
        && amount(.accepted) + amount(.resumed)
          == amount(.settled) + amount(.putOff) + amount(.givenBack) + amount(.inHand)
    }
    var isBreakerOpen: Bool { pipeline.feedback.marks.isOpen(0) }

    /// The places of the requests in hand, in the order of arrival.
    var places: [Int] {
      pipeline.table.entries.filter(\.isInUse).sorted { $0.delivery.token.tag < $1.delivery.token.tag }.map(\.index)
    }

    /// Acts as if the provider had been unreachable for a while.
    func park() {
      while let waiting = pipeline.dispatcher.pools[0].popFirst() {
        if let entry = pipeline.table[waiting.request], !entry.ledger.isOrphan { pipeline.park(entry, 0, 10_000, "test") }
      }
    }

    /// Acts as if a minute had passed since the channel was lost.
    func forgetStrayed() {
      for index in pipeline.table.orphans.values { pipeline.table[index].source.orphanedAt = loop.now.advanced(bySeconds: -61) }
      pipeline.forgetStrayed()
    }

    func acknowledge(_ token: DeliveryToken) {
      guard token.generation == generation, let message = held.removeValue(forKey: token.tag) else {
        preconditionFailure("acknowledged twice, or on a channel that is gone")
      }
      if mayBeDone?(message.number) == false { doneTooEarly.append(message.number) }
    }
  }
}
