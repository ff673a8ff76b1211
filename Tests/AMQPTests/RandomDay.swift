import AMQP
import BrokerModel
import TestSupport
import Testing

/// A publisher and two consumers against a modelled broker, with everything that can go wrong going wrong by a seed.
final class RandomDay {
  private let clients: VirtualClients
  private var generator: SeededGenerator
  private var consumers: [(consumer: Consumer, recorder: ConsumerRecorder)] = []
  /// How many of a recorder's deliveries have been looked at.
  private var seen = [0, 0]
  private var nextTag = 1

  init(seed: UInt64) throws {
    clients = try VirtualClients()
    generator = SeededGenerator(seed: seed)
    try clients.declare("dead", ["x-delivery-limit": .integer(1_000_000)])
    try clients.declare(
      "work",
      [
        "x-dead-letter-exchange": .text(""), "x-dead-letter-routing-key": .text("dead"), "x-overflow": .text("reject-publish"),
        "x-dead-letter-strategy": .text("at-least-once"), "x-delivery-limit": .integer(3), "x-max-length": .integer(40),
      ])
    for _ in 0..<2 { consumers.append(try clients.consume([.init(queue: "work", prefetch: 7)])) }
    var choices = SeededGenerator(seed: ~seed)
    clients.broker.confirmation = { _, _ in
      switch Int.random(in: 0..<20, using: &choices) {
      case 0: .nack(after: 0.5, isKept: Bool.random(using: &choices))
      case 1...5: .ack(after: Double(Int.random(in: 1...4, using: &choices)))
      default: .ack(after: 0)
      }
    }
    clients.broker.survivesCrash = { $0.number % 2 == 0 }
  }

  /// Everything that has happened, in words.
  func transcript() throws -> String {
    for _ in 0..<300 { try step() }
    clients.broker.resume(at: clients.now)
    clients.broker.start(at: clients.now)
    clients.broker.clearAlarm(at: clients.now)
    try reconnect()
    for _ in 0..<20 {
      clients.advance(by: 60)
      try reconnect()
      settle(all: true)
    }
    return clients.events.map { "\($0)" }.joined(separator: "\n")
      + "\(clients.published.events)\(consumers.map { "\($0.recorder.events)\($0.recorder.numbers)\($0.recorder.counts)" })"
  }

  private func step() throws {
    switch Int.random(in: 0..<40, using: &generator) {
    case 0...14 where clients.publisher.canPublish:
      let count = Int.random(in: 1...6, using: &generator)
      let expiration: String? = Int.random(in: 0..<8, using: &generator) == 0 ? "2000" : nil
      clients.publish(nextTag...nextTag + count - 1, to: "work", expiration: expiration)
      nextTag += count
    case 15...28: settle(all: false)
    case 29: clients.cut(consumers[0].consumer)
    case 30: clients.cut(clients.publisher)
    case 31: clients.broker.freeze()
    case 32: clients.broker.crash(at: clients.now)
    case 33: clients.broker.raiseAlarm()
    case 34: clients.broker.closeChannels(at: clients.now) { $0.number % 2 == 0 }
    case 35: clients.broker.closeConnections(at: clients.now) { $0.number % 3 == 0 }
    default:
      clients.advance(by: Double(Int.random(in: 1...15, using: &generator)))
      if Bool.random(using: &generator) { clients.broker.resume(at: clients.now) }
      if Bool.random(using: &generator) { clients.broker.start(at: clients.now) }
      if Bool.random(using: &generator) { clients.broker.clearAlarm(at: clients.now) }
      try reconnect()
    }
    clients.exchange()
  }

  private func reconnect() throws {
    guard clients.broker.isRunning, !clients.broker.isFrozen else { return }
    if clients.published.end != nil { try clients.connect(clients.publisher) }
    for (consumer, recorder) in consumers {
      if case .ended? = recorder.events.last { try clients.connect(consumer) }
    }
  }

  /// Acknowledges, returns or rejects what has come.
  private func settle(all: Bool) {
    for (index, (consumer, recorder)) in consumers.enumerated() {
      while seen[index] < recorder.deliveries.count {
        let delivery = recorder.deliveries[seen[index]]
        seen[index] += 1
        switch all ? 0 : Int.random(in: 0..<10, using: &generator) {
        case 0...6: consumer.acknowledge(delivery.token)
        case 7: consumer.reject(delivery.token, requeue: true)
        case 8: consumer.reject(delivery.token, requeue: false)
        // Kept until the channel is lost.
        default: break
        }
      }
    }
    clients.exchange()
  }

  /// Each publication that was confirmed has left the queue in one way, or is still there.
  func expectBalance() {
    var confirmed: Set<Int> = []
    var gone: [Int: Int] = [:]
    for event in clients.events {
      switch event {
      case .confirmed(let message, _): confirmed.insert(message.number)
      case .acknowledged(let message, "work", _), .deadLettered(let message, "work", _, _):
        gone[message.number, default: 0] += 1
      case .dropped(let message, _, let reason):
        #expect(reason == .crash && !confirmed.contains(message.number), "message \(message.number) dropped: \(reason)")
      default: break
      }
    }
    let broker = clients.broker
    let held = Set(broker.messages(in: "work").map(\.number))
    let missing = confirmed.filter { gone[$0] == nil && !held.contains($0) }
    let depth = broker.depth(of: "work")!
    #expect(missing.count <= depth.unacknowledged + depth.deadLetters, "lost: \(missing.sorted())")
    #expect(gone.values.allSatisfy { $0 == 1 })
    #expect(broker.messages(in: "dead").allSatisfy { gone[$0.number] != nil })
    #expect(confirmed.count > 100)
  }
}
