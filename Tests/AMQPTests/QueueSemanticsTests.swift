import AMQP
import TestSupport
import Testing

/// What the fleet relies on in a quorum queue.
@Suite("What a queue does with its messages", .serialized)
struct QueueSemanticsTests {
  @Test("What a lost connection had in hand comes back first, in order, and says so", arguments: BrokerKind.allCases)
  func connectionLost(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("lost", ["x-delivery-limit": .integer(50)])
    try clients.publish(1...6, to: queue)
    try clients.consume([.init(queue: queue, prefetch: 4)])
    try clients.require("four in hand") { clients.consumed.deliveries.count == 4 }
    #expect(clients.consumed.counts == [0, 0, 0, 0])
    clients.consumer!.acknowledge(clients.consumed.deliveries[1].token)
    try clients.require("a fifth") { clients.consumed.deliveries.count == 5 }
    try clients.disconnect(clients.consumer!)

    let others = try LiveClients(kind.shared.uri)
    try others.consume([.init(queue: queue, prefetch: 10)])
    try others.require("the others") { others.consumed.deliveries.count == 5 }
    #expect(others.consumed.numbers == [1, 3, 4, 5, 6])
    #expect(others.consumed.counts == [1, 1, 1, 1, 0])
    #expect(others.consumed.deliveries.map(\.redelivered) == [true, true, true, true, false])
    try others.close()
    clients.publisher.close()
  }

  @Test(
    "A message that has come back more often than the limit is dead-lettered with its history", arguments: BrokerKind.allCases)
  func deliveryLimit(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let dead = try clients.makeQueue("dead")
    let queue = try clients.makeQueue("limited", deadLettered(to: dead, ["x-delivery-limit": .integer(2)]))
    try clients.publish(1...1, to: queue)
    try clients.consume([.init(queue: queue, prefetch: 10), .init(queue: dead, prefetch: 10)])
    for round in 1...3 {
      try clients.require("round \(round)") { clients.consumed.deliveries.count == round }
      clients.consumer!.reject(clients.consumed.deliveries[round - 1].token, requeue: true)
    }
    try clients.require("the dead letter") { clients.consumed.deliveries.count == 4 }
    #expect(clients.consumed.deliveries.map(\.consumer) == [0, 0, 0, 1])
    #expect(clients.consumed.counts == [0, 1, 2, 0])
    let headers = clients.consumed.deliveries[3].properties.headers
    let death = try #require(deaths(headers).first)
    #expect(deaths(headers).count == 1 && death["count"] == .integer(1) && death["reason"] == .text("delivery_limit"))
    #expect(death["queue"] == .text(queue) && death["exchange"] == .text("") && death["routing-keys"] == .array([.text(queue)]))
    #expect(headers["x-first-death-reason"] == .text("delivery_limit") && headers["x-first-death-queue"] == .text(queue))
    #expect(headers["x-delivery-count"] == nil && !clients.consumed.deliveries[3].redelivered)
    #expect(clients.consumed.deliveries[3].routingKey == bytes(dead))
    try clients.close()
  }

  @Test(
    "A returned message goes out again before what never went out; without a limit it goes to the back",
    arguments: BrokerKind.allCases)
  func returned(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    for (arguments, order) in [
      (["x-delivery-limit": .integer(50)] as FieldTable, [1, 2, 1, 3, 4]), (FieldTable(), [1, 2, 3, 4, 1]),
    ] {
      let queue = try clients.makeQueue("returned", arguments)
      try clients.publish(1...4, to: queue)
      let others = try LiveClients(kind.shared.uri)
      try others.consume([.init(queue: queue, prefetch: 2)])
      try others.require("two in hand") { others.consumed.deliveries.count == 2 }
      others.consumer!.reject(others.consumed.deliveries[0].token, requeue: true)
      for count in 3...5 {
        try others.require("delivery \(count)") { others.consumed.deliveries.count == count }
        others.consumer!.acknowledge(others.consumed.deliveries[count - 2].token)
      }
      #expect(others.consumed.numbers == order)
      try others.close()
    }
    try clients.close()
  }

  @Test(
    "Messages expire at the head of a queue only, and lose their expiration as dead letters", arguments: BrokerKind.allCases)
  func expiry(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let dead = try clients.makeQueue("dead")
    let queue = try clients.makeQueue("expiring", deadLettered(to: dead))
    try clients.publish(1...1, to: queue, expiration: "900")
    try clients.publish(2...2, to: queue, expiration: "100")
    try clients.publish(3...3, to: queue)
    try clients.consume([.init(queue: dead, prefetch: 10)])
    let start = clients.loop.now
    try clients.require("two dead letters") { clients.consumed.deliveries.count == 2 }
    #expect(clients.loop.now.seconds(since: start) > 0.5)
    #expect(clients.consumed.numbers == [1, 2] && clients.consumed.deliveries.allSatisfy { $0.properties.expiration == nil })
    let death = try #require(deaths(clients.consumed.deliveries[1].properties.headers).first)
    #expect(death["reason"] == .text("expired") && death["original-expiration"] == .text("100"))
    #expect(try clients.messageCount(queue) == 1)
    try clients.close()
  }

  @Test(
    "A message that dies again in the same queue for the same reason is counted, and a rejection keeps it from being a cycle",
    arguments: BrokerKind.allCases)
  func history(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let (work, wait) = (Broker.uniqueName("work"), Broker.uniqueName("wait"))
    for (name, other, ttl) in [(work, wait, nil), (wait, work, 100)] as [(String, String, Int64?)] {
      var arguments: FieldTable = ["x-queue-type": .text("quorum")]
      for (key, value) in deadLettered(to: other).entries { arguments.append(String(decoding: key, as: UTF8.self), value) }
      if let ttl { arguments.append("x-message-ttl", .integer(ttl)) }
      _ = try clients.perform(.queueDeclare(name: name, arguments: arguments)).get()
    }
    try clients.publish(1...1, to: work)
    try clients.consume([.init(queue: work, prefetch: 10)])
    for round in 1...3 {
      try clients.require("round \(round)") { clients.consumed.deliveries.count == round }
      clients.consumer!.reject(clients.consumed.deliveries[round - 1].token, requeue: false)
    }
    let last = deaths(clients.consumed.deliveries[2].properties.headers)
    #expect(last.map { $0["queue"] } == [.text(wait), .text(work)])
    #expect(last.map { $0["reason"] } == [.text("expired"), .text("rejected")])
    #expect(last.map { $0["count"] } == [.integer(2), .integer(2)])
    try clients.close()
  }

  @Test("Of several consumers a queue with a single active one serves the first, then the next", arguments: BrokerKind.allCases)
  func singleActive(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue(
      "single", ["x-single-active-consumer": .bool(true), "x-delivery-limit": .integer(50)])
    try clients.consume([.init(queue: queue, prefetch: 2)])
    let second = try LiveClients(kind.shared.uri)
    try second.consume([.init(queue: queue, prefetch: 3)])
    let third = try LiveClients(kind.shared.uri)
    try third.consume([.init(queue: queue, prefetch: 10)])
    try clients.publish(1...6, to: queue)
    try clients.require("two for the first") { clients.consumed.deliveries.count == 2 }
    #expect(second.consumed.deliveries.isEmpty)
    var consumers: Int?
    clients.consumer!.inspect(queue: 0) { consumers = $0 }
    try clients.require("an answer on the channel that consumes") { consumers != nil }
    #expect(consumers! > 0)
    // What a cancelled consumer has in hand stays its own.
    clients.consumer!.cancelConsumers()
    try clients.require("a cancelled first") { clients.consumer!.isCancelled }
    try second.require("three for the second") { second.consumed.deliveries.count == 3 }
    #expect(second.consumed.numbers == [3, 4, 5])
    for delivery in clients.consumed.deliveries { clients.consumer!.acknowledge(delivery.token) }
    try clients.close()
    try second.disconnect(second.consumer!)
    try third.require("the rest for the third") { third.consumed.deliveries.count == 4 }
    #expect(third.consumed.numbers == [3, 4, 5, 6] && third.consumed.counts == [1, 1, 1, 0])
    second.publisher.close()
    try third.close()
  }

  @Test(
    "Consumers with the highest priority and room are served first, and equal ones take turns", arguments: BrokerKind.allCases)
  func priorities(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("priorities", ["x-delivery-limit": .integer(50)])
    func consume(_ prefetch: UInt16, _ priority: Int64?) throws -> LiveClients {
      let other = try LiveClients(kind.shared.uri)
      let arguments: FieldTable = priority.map { ["x-priority": .integer($0)] } ?? FieldTable()
      try other.consume([.init(queue: queue, prefetch: prefetch, arguments: arguments)])
      return other
    }
    let (last, plain) = (try consume(10, -1), try consume(3, nil))
    let (first, second) = (try consume(2, 5), try consume(2, 5))
    try clients.publish(1...8, to: queue)
    for (other, numbers) in [(first, [1, 3]), (second, [2, 4]), (plain, [5, 6, 7]), (last, [8])] {
      try other.require("deliveries by priority") { other.consumed.deliveries.count == numbers.count }
      #expect(other.consumed.numbers == numbers)
    }
    // The priority counts again as soon as there is room.
    second.consumer!.acknowledge(second.consumed.deliveries[0].token)
    plain.consumer!.acknowledge(plain.consumed.deliveries[0].token)
    for other in [second, plain] { _ = other.loop.run(atMost: 0.3) { false } }
    for (tag, other) in [(9, second), (10, plain), (11, last)] {
      try clients.publish(tag...tag, to: queue)
      try other.require("message \(tag)") { other.consumed.numbers.last == tag }
    }
    guard case .failure(.topologyMismatch(let text)) = try clients.perform(.consumeRight(queue: queue)) else {
      Issue.record("a priority that is no number was accepted")
      return
    }
    #expect(text.hasPrefix("PRECONDITION_FAILED - invalid arg 'x-priority' for queue '\(queue)' in vhost '/'"))
    for other in [last, plain, first, second] { try other.close() }
    try clients.close()
  }

  @Test("A full queue takes again once it has fallen to four fifths of its limit", arguments: BrokerKind.allCases)
  func fullQueue(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("full", ["x-max-length": .integer(10), "x-overflow": .text("reject-publish")])
    for tag in 1...12 { try clients.publish(tag...tag, to: queue) }
    #expect(clients.published.failed == [12])
    try clients.consume([.init(queue: queue, prefetch: 2)])
    try clients.require("two in hand") { clients.consumed.deliveries.count == 2 }
    try clients.publish(13...13, to: queue)
    #expect(clients.published.failed == [12, 13])
    clients.consumer!.acknowledge(clients.consumed.deliveries[0].token)
    try clients.require("a third") { clients.consumed.deliveries.count == 3 }
    try clients.require("room") {
      try! clients.publish(14...14, to: queue)
      return clients.published.confirmed.contains(14)
    }
    try clients.close()
  }

  @Test("Dead letters that nobody takes are kept out of sight until somebody does", arguments: BrokerKind.allCases)
  func deadLettersKept(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("kept", deadLettered(to: "no.such.queue"))
    try clients.publish(1...1, to: queue)
    try clients.consume([.init(queue: queue, prefetch: 10)])
    try clients.require("a delivery") { clients.consumed.deliveries.count == 1 }
    clients.consumer!.reject(clients.consumed.deliveries[0].token, requeue: false)
    try clients.require("an empty queue") { try! clients.messageCount(queue) == 0 }
    try clients.require("a dead letter") { try! kind.shared.deadLetters(of: queue) == 1 }
    try clients.close()
  }

  @Test("An operator's close ends the connection, and what it had in hand comes back", arguments: BrokerKind.allCases)
  func closedByOperator(_ kind: BrokerKind) throws {
    let broker = try kind.shared
    let clients = try LiveClients(broker.uri, name: Broker.uniqueName("closed"))
    let queue = try clients.makeQueue("closed", ["x-delivery-limit": .integer(50)])
    try clients.publish(1...2, to: queue)
    try clients.consume([.init(queue: queue, prefetch: 10)])
    try clients.require("two in hand") { clients.consumed.deliveries.count == 2 }
    try broker.closeConnections(named: clients.settings.name)
    try clients.require("both ended") { clients.allEnded }
    guard case .closedByOperator(let text)? = clients.published.end,
      case .ended(.closedByOperator)? = clients.consumed.events.last
    else {
      Issue.record("\(clients.published.events) \(clients.consumed.events)")
      return
    }
    #expect(text.contains("CONNECTION_FORCED - test"))
    clients.consumed.deliveries = []
    clients.connect(clients.consumer!)
    try clients.require("both again") { clients.consumed.deliveries.count == 2 }
    #expect(clients.consumed.numbers == [1, 2] && clients.consumed.counts == [1, 1])
    clients.consumer!.close()
    try clients.require("the end") { clients.allEnded }
  }

  private func deadLettered(to queue: String, _ more: FieldTable = FieldTable()) -> FieldTable {
    var arguments: FieldTable = [
      "x-dead-letter-exchange": .text(""), "x-dead-letter-routing-key": .text(queue), "x-overflow": .text("reject-publish"),
      "x-dead-letter-strategy": .text("at-least-once"),
    ]
    for (key, value) in more.entries { arguments.append(String(decoding: key, as: UTF8.self), value) }
    return arguments
  }

  private func deaths(_ headers: FieldTable) -> [FieldTable] {
    guard case .array(let deaths)? = headers["x-death"] else { return [] }
    return deaths.compactMap { if case .table(let death) = $0 { death } else { nil } }
  }
}
