import AMQP
import Broker
import BrokerModel
import TestSupport
import Testing
import Wire

@Suite("A broker in memory")
struct VirtualBrokerTests {
  @Test("What is published is confirmed, delivered and, once acknowledged, gone")
  func way() throws {
    let clients = try VirtualClients()
    try clients.declare("q")
    let (consumer, recorder) = try clients.consume([.init(queue: "q", prefetch: 3)])
    clients.publish(1...5, to: "q")
    #expect(clients.published.confirmed == [1, 2, 3, 4, 5])
    #expect(recorder.numbers == [1, 2, 3] && recorder.deliveries.allSatisfy { !$0.redelivered })
    #expect(recorder.deliveries[0].properties.messageID == bytes("1") && recorder.counts == [0, 0, 0])
    #expect(clients.broker.depth(of: "q") == .init(ready: 2, unacknowledged: 3, deadLetters: 0, consumers: 1))
    for delivery in recorder.deliveries { consumer.acknowledge(delivery.token) }
    clients.exchange()
    #expect(recorder.numbers == [1, 2, 3, 4, 5])
    for delivery in recorder.deliveries { consumer.acknowledge(delivery.token) }
    clients.advance(by: 60)
    #expect(clients.broker.isQuiet && clients.broker.messages(in: "q").isEmpty)
    #expect(recorder.events == [.ready] && clients.published.end == nil)
  }

  @Test("The fleet's topology can be declared twice, and a queue with other arguments is refused")
  func topology() throws {
    let clients = try VirtualClients()
    let topology = Topology(ladder: [RetryStep(name: "1s", delay: 1000)])
    try clients.declare(topology)
    try clients.declare(topology)
    let other = Command.queueDeclare(name: topology.name("retry.1s"), arguments: ["x-message-ttl": .integer(2000)])
    guard case .failure(.topologyMismatch) = try clients.perform(other) else {
      Issue.record("other arguments were accepted")
      return
    }
  }

  // MARK: - Confirms

  @Test("Confirms may be late, out of order and for several at once, and come as RabbitMQ puts them together")
  func lateConfirms() throws {
    let clients = try VirtualClients()
    try clients.declare("q")
    clients.broker.confirmation = { message, _ in
      .ack(after: message.body == bytes("2") ? 5 : message.body == bytes("5") ? 9 : 1)
    }
    clients.publish(1...6, to: "q")
    #expect(clients.published.confirmed.isEmpty && clients.broker.messages(in: "q").count == 6)
    clients.advance(by: 1)
    #expect(clients.published.confirmed == [1, 3, 4, 6])
    clients.advance(by: 4)
    #expect(clients.published.confirmed == [1, 3, 4, 6, 2])
    #expect(!clients.broker.isQuiet)
    clients.advance(by: 5)
    #expect(clients.published.confirmed == [1, 3, 4, 6, 2, 5] && clients.broker.isQuiet)
  }

  @Test("A refused publication may be kept or not, and one may stay without an answer for ever")
  func nacks() throws {
    let clients = try VirtualClients()
    try clients.declare("q")
    clients.broker.confirmation = { message, _ in
      switch message.body {
      case bytes("1"): .nack(after: 0, isKept: false)
      case bytes("2"): .nack(after: 1, isKept: true)
      case bytes("3"): .ack(after: .infinity)
      default: .ack(after: 0)
      }
    }
    clients.publish(1...4, to: "q")
    clients.advance(by: 2)
    #expect(clients.published.events == [.ready, .failed(1, .nacked), .confirmed(4), .failed(2, .nacked)])
    #expect(clients.broker.messages(in: "q").map(\.body) == [bytes("2"), bytes("3"), bytes("4")])
    clients.advance(by: 30)
    #expect(clients.published.events.suffix(2) == [.failed(3, .timedOut), .ended(.confirmTimedOut)])
  }

  // MARK: - Faults

  @Test("A delivery that is held for too long closes its channel at the next look, and comes back")
  func consumerTimeout() throws {
    let clients = try VirtualClients()
    try clients.declare("q", ["x-delivery-limit": .integer(50)])
    let (consumer, recorder) = try clients.consume([.init(queue: "q", prefetch: 10)])
    clients.publish(1...2, to: "q")
    consumer.acknowledge(recorder.deliveries[0].token)
    clients.advance(by: 1790)
    #expect(recorder.events == [.ready])
    clients.advance(by: 70)
    guard case .channelLost(.consumerTimeout(let text))? = recorder.events.dropFirst().first else {
      Issue.record("\(recorder.events)")
      return
    }
    #expect(
      text.hasPrefix("PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms"))
    #expect(recorder.events.last == .ready && recorder.numbers == [1, 2, 2] && recorder.counts == [0, 0, 1])
    consumer.acknowledge(recorder.deliveries[2].token)
    clients.advance(by: 3600)
    #expect(clients.broker.isQuiet && recorder.events.count == 3)
  }

  @Test("Under an alarm publishers are told with their next publication, which waits for its end; consumers go on")
  func alarm() throws {
    let clients = try VirtualClients()
    try clients.declare("q")
    let (_, recorder) = try clients.consume([.init(queue: "q", prefetch: 10)])
    clients.broker.raiseAlarm("low on disk")
    clients.advance(by: 60)
    #expect(try clients.perform(.queueInspect(name: "q")) == .success(.queue(messages: 0, consumers: 1)))
    clients.publish(1...2, to: "q")
    #expect(clients.published.events.last == .blocked("low on disk") && clients.publisher.unconfirmed == 2)
    clients.advance(by: 600)
    #expect(recorder.numbers.isEmpty && clients.published.end == nil)
    clients.broker.clearAlarm(at: clients.now)
    clients.exchange()
    #expect(clients.published.events.suffix(3) == [.unblocked, .confirmed(1), .confirmed(2)] && recorder.numbers == [1, 2])
  }

  @Test(
    "A crash takes every connection and what was neither confirmed nor delivered; the rest is there, and says that it was out")
  func crash() throws {
    let clients = try VirtualClients()
    try clients.declare("q", ["x-delivery-limit": .integer(50)])
    let (consumer, recorder) = try clients.consume([.init(queue: "q", prefetch: 2)])
    clients.publish(1...3, to: "q")
    clients.broker.confirmation = { message, _ in .ack(after: 60) }
    clients.publish(4...5, to: "q")
    clients.broker.survivesCrash = { $0.body == bytes("5") }
    clients.broker.crash(at: clients.now)
    clients.exchange()
    #expect(recorder.events.last == .ended(.transport(.closedByPeer)))
    #expect(clients.published.failed == [4, 5] && clients.published.end == .transport(.closedByPeer))
    #expect(clients.broker.accept() == nil)
    clients.advance(by: 5)
    clients.broker.start(at: clients.now)
    try clients.connect(consumer)
    #expect(recorder.numbers == [1, 2, 1, 2] && recorder.counts == [0, 0, 1, 1])
    #expect(clients.broker.messages(in: "q").map(\.body) == [bytes("3"), bytes("5")])
    #expect(clients.dropped == ["4"])
  }

  @Test("A frozen broker is found silent, and notices when it goes on whom it has lost")
  func freeze() throws {
    let clients = try VirtualClients()
    try clients.declare("q", ["x-delivery-limit": .integer(50)])
    let (consumer, recorder) = try clients.consume([.init(queue: "q", prefetch: 10)])
    clients.publish(1...1, to: "q")
    clients.broker.freeze()
    clients.publish(2...2, to: "q")
    clients.advance(by: 21)
    #expect(recorder.events.last == .ended(.heartbeatMissed) && clients.published.end == .heartbeatMissed)
    #expect(clients.published.failed == [2] && clients.broker.depth(of: "q")?.unacknowledged == 1)
    // Accepted by nobody who reads.
    try clients.connect(consumer)
    clients.advance(by: 5)
    clients.broker.resume(at: clients.now)
    clients.exchange()
    #expect(recorder.events.last == .ready && recorder.numbers == [1, 1] && recorder.counts == [0, 1])
  }

  @Test("A broker that freezes for a moment goes on as if nothing had been")
  func shortFreeze() throws {
    let clients = try VirtualClients()
    try clients.declare("q")
    let (_, recorder) = try clients.consume([.init(queue: "q", prefetch: 10)])
    clients.broker.freeze()
    clients.publish(1...3, to: "q")
    clients.advance(by: 15)
    #expect(clients.published.confirmed.isEmpty)
    clients.broker.resume(at: clients.now)
    clients.exchange()
    #expect(clients.published.confirmed == [1, 2, 3] && recorder.numbers == [1, 2, 3])
    clients.advance(by: 60)
    #expect(clients.published.end == nil && recorder.events == [.ready])
  }

  @Test("Channels and connections are closed by the broker when it is told to, those that are meant and no others")
  func closes() throws {
    let clients = try VirtualClients()
    try clients.declare("q", ["x-delivery-limit": .integer(50)])
    let (_, recorder) = try clients.consume([.init(queue: "q", prefetch: 10)])
    clients.publish(1...1, to: "q")
    clients.broker.closeChannels(code: 541, reason: "leader lost", at: clients.now) { $0.number == 2 }
    clients.exchange()
    #expect(
      recorder.events == [.ready, .channelLost(.closedByBroker(code: 541, "INTERNAL_ERROR - leader lost")), .ready])
    #expect(recorder.counts == [0, 1] && clients.published.events.last == .confirmed(1))
    clients.broker.closeConnections(at: clients.now) { $0.number == 2 }
    clients.exchange()
    #expect(recorder.events.last == .ended(.closedByOperator("CONNECTION_FORCED - closed by an operator")))
    #expect(clients.broker.clients.map(\.number) == [1] && clients.broker.depth(of: "q")?.ready == 1)
  }

  @Test("A client that says nothing for two heartbeats is given up, and what it had in hand comes back")
  func silentClient() throws {
    let clients = try VirtualClients()
    try clients.declare("q", ["x-delivery-limit": .integer(50)])
    let (consumer, recorder) = try clients.consume([.init(queue: "q", prefetch: 10)])
    clients.publish(1...1, to: "q")
    clients.muffle(consumer)
    clients.advance(by: 19)
    #expect(clients.broker.depth(of: "q")?.unacknowledged == 1)
    clients.advance(by: 2)
    #expect(clients.broker.depth(of: "q") == .init(ready: 1) && recorder.numbers == [1])
  }

  @Test("What is in hand when a queue's leader loses touch is delivered again, on the same channel, and settled by that alone")
  func deliveredAgain() throws {
    let clients = try VirtualClients()
    try clients.declare("q")
    let (consumer, recorder) = try clients.consume([.init(queue: "q", prefetch: 3)])
    clients.publish(1...4, to: "q")
    clients.broker.deliverAgain(at: clients.now)
    clients.exchange()
    #expect(recorder.numbers == [1, 2, 3, 1, 2, 3] && recorder.counts.suffix(3) == [1, 1, 1])
    for delivery in recorder.deliveries.prefix(3) { consumer.acknowledge(delivery.token) }
    clients.exchange()
    #expect(clients.broker.depth(of: "q") == .init(ready: 1, unacknowledged: 3, deadLetters: 0, consumers: 1))
    for delivery in recorder.deliveries.suffix(3) { consumer.acknowledge(delivery.token) }
    clients.exchange()
    #expect(recorder.numbers.last == 4 && clients.broker.depth(of: "q")?.unacknowledged == 1)
  }

  // MARK: - Dead letters

  @Test("A dead letter that would only cycle is kept, and 32 of them stop the queue's dead letters for everybody")
  func cycles() throws {
    let clients = try VirtualClients()
    let topology = Topology(ladder: [RetryStep(name: "1s", delay: 1000)])
    try clients.declare(topology)
    let lane = topology.name("send.high")
    let death: FieldTable = ["count": .integer(1), "reason": .text("delivery_limit"), "queue": .text(lane)]
    let carrying: FieldTable = [Topology.originHeader: .text("send.high"), "x-death": .array([.table(death)])]
    let step = topology.name("retry.1s")
    clients.publish(1...31, to: step, headers: carrying)
    clients.publish(32...32, to: step, headers: carrying.removing(["x-death"]))
    clients.advance(by: 2)
    #expect(clients.broker.messages(in: lane).map(\.body) == [bytes("32")])
    #expect(clients.broker.depth(of: step) == .init(deadLetters: 31) && !clients.broker.isQuiet)
    clients.publish(33...33, to: step, headers: carrying)
    clients.publish(34...34, to: step, headers: carrying.removing(["x-death"]))
    clients.advance(by: 600)
    #expect(clients.broker.messages(in: lane).count == 1 && clients.broker.depth(of: step) == .init(deadLetters: 33))
  }

  @Test("A history that a producer forged keeps a lane's dead letters from the dead-letter queue")
  func forgedHistory() throws {
    let clients = try VirtualClients()
    let topology = Topology(ladder: [RetryStep(name: "1s", delay: 1000)])
    try clients.declare(topology)
    let lane = topology.name("send.high")
    let death: FieldTable = ["count": .integer(1), "reason": .text("expired"), "queue": .text(topology.deadQueue)]
    clients.publish(1...32, to: lane, headers: ["x-death": .array([.table(death)])], expiration: "10")
    clients.publish(33...33, to: lane, expiration: "10")
    clients.advance(by: 600)
    #expect(clients.broker.depth(of: lane) == .init(deadLetters: 33) && clients.broker.messages(in: topology.deadQueue).isEmpty)
  }

  @Test("Dead letters wait for a queue that is full, and go when it has room")
  func fullDeadLetters() throws {
    let clients = try VirtualClients()
    try clients.declare("dead", ["x-max-length": .integer(1), "x-overflow": .text("reject-publish")])
    try clients.declare(
      "q",
      [
        "x-dead-letter-exchange": .text(""), "x-dead-letter-routing-key": .text("dead"), "x-overflow": .text("reject-publish"),
        "x-dead-letter-strategy": .text("at-least-once"),
      ])
    clients.publish(1...3, to: "q", expiration: "10")
    clients.advance(by: 1)
    #expect(clients.broker.messages(in: "dead").map(\.body) == [bytes("1"), bytes("2")])
    #expect(clients.broker.depth(of: "q") == .init(deadLetters: 1))
    clients.broker.purgeQueue("dead", at: clients.now)
    clients.advance(by: 200)
    #expect(clients.broker.messages(in: "dead").map(\.body) == [bytes("3")] && clients.broker.isQuiet)
  }

  // MARK: - The whole

  @Test("The same calls have the same consequences, byte for byte", arguments: [1, 2, 3] as [UInt64])
  func deterministic(seed: UInt64) throws {
    let runs = try (0..<2).map { _ in try RandomDay(seed: seed).transcript() }
    #expect(runs[0] == runs[1] && runs[0].count > 10_000)
  }

  @Test(
    "After any day with faults every confirmed message is acknowledged, waiting, or with the dead letters",
    arguments: 1...8 as ClosedRange<UInt64>)
  func books(seed: UInt64) throws {
    let day = try RandomDay(seed: seed)
    _ = try day.transcript()
    day.expectBalance()
  }
}
