import AMQP
import TestSupport
import Testing

/// The fleet relies on this in lanes of several queues: exchanges that are bound to exchanges, and the consistent-hash exchange.
@Suite("Exchanges in front of lanes of several queues", .serialized)
struct HashExchangeTests {
  @Test("Each message goes to one queue of the ring, and a message id always to the same", arguments: BrokerKind.allCases)
  func ring(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 3)
    try lane.perform(lane.growth)
    try lane.publish(ids: 0..<300)
    try lane.publish(ids: 0..<300)
    try lane.expectAll(600)
    let queues = lane.queuesOfIDs
    #expect(queues.count == 300 && queues.values.allSatisfy { $0.count == 2 && $0[0] == $0[1] })
    for queue in 0..<3 { #expect((60...140).contains(queues.values.count { $0[0] == queue })) }
    try lane.clients.close()
  }

  @Test("Messages without an id all go to the same queue", arguments: BrokerKind.allCases)
  func withoutID(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 3)
    try lane.perform(lane.growth)
    try lane.publish(ids: 0..<50) { $0.messageID = nil }
    try lane.expectAll(50)
    #expect(Set(lane.clients.consumed.deliveries.map(\.consumer)).count == 1)
    try lane.clients.close()
  }

  @Test("A queue gets the share of messages that its routing key states", arguments: BrokerKind.allCases)
  func weights(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 2)
    try lane.perform([lane.declaration, lane.entry(), lane.member(0, weight: "100"), lane.member(1, weight: "300")])
    try lane.perform([.queueUnbind(queue: lane.queues[0], exchange: lane.send, routingKey: "normal", arguments: FieldTable())])
    try lane.publish(ids: 0..<400)
    try lane.expectAll(400)
    #expect((60...140).contains(lane.clients.consumed.deliveries.count { $0.consumer == 0 }))
    try lane.clients.close()
  }

  @Test("A weight that is no positive integer is refused", arguments: BrokerKind.allCases)
  func badWeights(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 1)
    try lane.perform([lane.declaration])
    for (weight, text) in [
      ("many", #"The binding key must be an integer: <<"many">>"#), ("0", "The binding key must be greater than 0"),
      ("-1", "The binding key must be greater than 0"),
    ] {
      let answer = try lane.clients.perform(lane.member(0, weight: weight))
      #expect(answer == .failure(.preconditionFailed("PRECONDITION_FAILED - " + text)))
    }
    try lane.clients.close()
  }

  @Test("When a queue joins the ring, messages move to no other queue than the new one", arguments: BrokerKind.allCases)
  func joining(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 4)
    try lane.perform(lane.growth.dropLast())
    try lane.publish(ids: 0..<300)
    try lane.perform(lane.growth.suffix(1))
    try lane.publish(ids: 0..<300)
    try lane.expectAll(600)
    let queues = lane.queuesOfIDs.values
    #expect(queues.allSatisfy { $0[1] == $0[0] || $0[1] == 3 })
    #expect((40...120).contains(queues.count { $0[1] == 3 }))
    try lane.clients.close()
  }

  @Test(
    "A queue that is bound directly and in the ring gets one copy; a circle of exchanges ends", arguments: BrokerKind.allCases)
  func oneCopy(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 1)
    try lane.perform([lane.declaration, lane.member(0), lane.entry()])
    try lane.publish(ids: 0..<20)
    try lane.perform([
      .exchangeBind(name: lane.send, source: lane.ring, routingKey: "100", arguments: FieldTable()),
      .exchangeBind(name: lane.send, source: lane.send, routingKey: "normal", arguments: FieldTable()),
    ])
    try lane.publish(ids: 20..<40)
    try lane.expectAll(40)
    try lane.clients.close()
  }

  @Test(
    "A lane that grows and shrinks while messages are published loses and doubles nothing", arguments: BrokerKind.allCases)
  func growing(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 4)
    for commands in [lane.growth, lane.shrinkage, lane.growth, lane.shrinkage] {
      for command in commands {
        var answer: Result<CommandAnswer, ConnectionEnd>?
        lane.clients.publisher.perform(command) { answer = $0 }
        let least = lane.published + 20
        try lane.clients.require("an answer to \(command.subject) and further messages") {
          if lane.clients.publisher.canPublish { lane.publishNext(id: lane.published) }
          return answer != nil && lane.published >= least
        }
        #expect(answer == .success(.done))
      }
    }
    try lane.clients.require("confirms") { lane.clients.publisher.unconfirmed == 0 }
    try lane.expectAll(lane.published)
    #expect(Set(lane.clients.consumed.deliveries.map(\.consumer)) == [0, 1, 2, 3])
    let before = lane.published
    try lane.publish(ids: 0..<50)
    try lane.expectAll(before + 50)
    #expect(lane.clients.consumed.deliveries.suffix(50).allSatisfy { $0.consumer == 0 })
    try lane.clients.close()
  }

  @Test(
    "An expired message comes through a headers exchange to the queue of the ring where it was before",
    arguments: BrokerKind.allCases)
  func returning(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 3)
    let back = Broker.uniqueName("return")
    let origin: FieldTable = ["x-push-origin": .text("send.normal")]
    try lane.perform(lane.growth)
    try lane.perform([
      .exchangeDeclare(name: back, type: "headers", arguments: FieldTable()),
      .exchangeBind(
        name: lane.ring, source: back, routingKey: "",
        arguments: ["x-match": .text("all-with-x"), "x-push-origin": .text("send.normal")]),
    ])
    let wait = try lane.clients.makeQueue(
      "wait",
      [
        "x-message-ttl": .integer(100), "x-dead-letter-exchange": .text(back), "x-overflow": .text("reject-publish"),
        "x-dead-letter-strategy": .text("at-least-once"),
      ])
    try lane.publish(ids: 0..<60)
    try lane.publish(ids: 0..<60, exchange: "", key: wait) { $0.headers = origin }
    try lane.expectAll(120)
    #expect(lane.queuesOfIDs.values.allSatisfy { $0.count == 2 && $0[0] == $0[1] })
    #expect(Set(lane.clients.consumed.deliveries.map(\.consumer)) == [0, 1, 2])
    try lane.clients.close()
  }

  @Test(
    "Unbinding and deleting succeed if nothing is there; binding a missing exchange fails",
    arguments: BrokerKind.allCases)
  func idempotent(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 1)
    let (queue, none) = (lane.queues[0], FieldTable())
    try lane.perform([
      .queueUnbind(queue: queue, exchange: lane.send, routingKey: "other", arguments: none),
      .queueUnbind(queue: queue, exchange: lane.ring, routingKey: "normal", arguments: none),
      .queueUnbind(queue: lane.ring, exchange: lane.send, routingKey: "normal", arguments: none),
      .queueUnbind(queue: queue, exchange: lane.send, routingKey: "normal", arguments: ["a": .integer(1)]),
      .exchangeDelete(name: lane.ring),
    ])
    try lane.publish(ids: 0..<1)
    let unbinding = Command.queueUnbind(queue: queue, exchange: lane.send, routingKey: "normal", arguments: none)
    try lane.perform([unbinding, unbinding])
    let missing = ConnectionEnd.notFound("NOT_FOUND - no exchange '\(lane.ring)' in vhost '/'")
    #expect(try lane.clients.perform(lane.entry()) == .failure(missing))
    let fromMissing = Command.exchangeBind(name: lane.send, source: lane.ring, routingKey: "1", arguments: none)
    #expect(try lane.clients.perform(fromMissing) == .failure(missing))
    #expect(
      try lane.clients.perform(.exchangeDelete(name: ""))
        == .failure(.accessRefused("ACCESS_REFUSED - operation not permitted on the default exchange")))
    #expect(
      try lane.clients.perform(.exchangeDelete(name: "amq.direct"))
        == .failure(.accessRefused("ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed")))
    #expect(try lane.publishOne() == .returned(code: 312))
    try lane.expectAll(1)
    try lane.clients.close()
  }

  @Test("A deleted exchange takes its bindings from and to it along", arguments: BrokerKind.allCases)
  func deleted(_ kind: BrokerKind) throws {
    let lane = try Lane(kind, queues: 2)
    try lane.perform(lane.growth)
    try lane.perform([.exchangeDelete(name: lane.ring)])
    #expect(try lane.publishOne() == .returned(code: 312))
    try lane.perform([lane.declaration, lane.member(0)])
    #expect(try lane.publishOne() == .returned(code: 312))
    try lane.perform([.exchangeDelete(name: lane.ring), lane.declaration, lane.entry()])
    #expect(try lane.publishOne() == .returned(code: 312))
    try lane.perform([lane.member(1)])
    #expect(try lane.publishOne() == nil)
    try lane.expectAll(1)
    try lane.clients.close()
  }

  @Test(
    "An exchange without a binding for the message passes it to its alternate one; a bound exchange that leads nowhere doesn't count",
    arguments: BrokerKind.allCases)
  func alternate(_ kind: BrokerKind) throws {
    let stray = Broker.uniqueName("stray")
    let lane = try Lane(kind, queues: 2, arguments: ["alternate-exchange": .text(stray)])
    try lane.perform([
      .exchangeDeclare(name: stray, type: "fanout", arguments: FieldTable()),
      .queueBind(queue: lane.queues[1], exchange: stray, routingKey: "", arguments: FieldTable()),
      .queueUnbind(queue: lane.queues[0], exchange: lane.send, routingKey: "normal", arguments: FieldTable()),
    ])
    #expect(try lane.publishOne() == nil)
    try lane.perform([lane.declaration, lane.entry()])
    #expect(try lane.publishOne() == .returned(code: 312))
    // An alternate exchange of the inner exchange counts.
    try lane.perform([
      .exchangeDelete(name: lane.ring),
      .exchangeDeclare(
        name: lane.ring, type: "x-consistent-hash",
        arguments: ["hash-property": .text("message_id"), "alternate-exchange": .text(stray)]),
      lane.entry(),
    ])
    #expect(try lane.publishOne() == nil)
    try lane.perform([lane.member(0)])
    #expect(try lane.publishOne() == nil)
    try lane.expectAll(3)
    #expect(lane.clients.consumed.deliveries.map(\.consumer).sorted() == [0, 1, 1])
    try lane.clients.close()
  }

  @Test(
    "After a kill of the broker each message id has one queue again, but perhaps another one", arguments: BrokerKind.allCases)
  func restarted(_ kind: BrokerKind) throws {
    let broker = try kind.make()
    defer { broker.stop() }
    let lane = try Lane(broker, queues: 3)
    try lane.perform(lane.growth)
    try lane.publish(ids: 0..<60)
    try lane.expectAll(60)
    let before = lane.queuesOfIDs
    try lane.clients.require("queues on disk") { lane.queues.allSatisfy { broker.isOnDisk(queue: $0) } }
    broker.kill9()
    try lane.clients.require("ended links") { lane.clients.allEnded }
    try broker.restart()
    let again = try Lane(broker, after: lane)
    try again.clients.require("the deliveries in hand") { again.clients.consumed.deliveries.count == 60 }
    #expect(again.queuesOfIDs == before)
    // After one of thirty kills, the queue that was bound last got no messages. Workers declare their topology again.
    try again.perform(again.growth)
    try again.publish(ids: 0..<60)
    try again.publish(ids: 0..<60)
    try again.expectAll(180)
    let after = again.queuesOfIDs
    #expect(after.values.allSatisfy { $0.count == 3 && $0[1] == $0[2] })
    #expect(Set(after.values.map { $0[2] }) == [0, 1, 2])
    // RabbitMQ may by chance build the same ring.
    if kind == .model { #expect(after.values.contains { $0[0] != $0[2] }) }
    try again.clients.close()
  }
}

/// A direct exchange `send`, whose key `normal` leads to the first queue until the lane grows, and a consumer of all queues.
private final class Lane {
  let clients: LiveClients
  let send: String
  let ring: String
  let queues: [String]
  /// Bodies of messages are their numbers.
  private(set) var published = 0

  convenience init(_ kind: BrokerKind, queues count: Int, arguments: FieldTable = FieldTable()) throws {
    try self.init(kind.shared, queues: count, arguments: arguments)
  }

  init(_ broker: any LiveBroker, queues count: Int, arguments: FieldTable = FieldTable()) throws {
    let clients = try LiveClients(broker.uri)
    self.clients = clients
    send = Broker.uniqueName("send")
    ring = Broker.uniqueName("ring")
    queues = try (0..<count).map { try clients.makeQueue("lane\($0)", ["x-delivery-limit": .integer(50)]) }
    try perform([
      .exchangeDeclare(name: send, type: "direct", arguments: arguments),
      .queueBind(queue: queues[0], exchange: send, routingKey: "normal", arguments: FieldTable()),
    ])
    try clients.consume(queues.map { .init(queue: $0, prefetch: 65_535) })
  }

  /// The same lane for new clients.
  init(_ broker: any LiveBroker, after lane: Lane) throws {
    clients = try LiveClients(broker.uri)
    (send, ring, queues, published) = (lane.send, lane.ring, lane.queues, lane.published)
    try clients.consume(queues.map { .init(queue: $0, prefetch: 65_535) })
  }

  // MARK: - Topology

  var declaration: Command {
    .exchangeDeclare(name: ring, type: "x-consistent-hash", arguments: ["hash-property": .text("message_id")])
  }
  func entry() -> Command { .exchangeBind(name: ring, source: send, routingKey: "normal", arguments: FieldTable()) }
  func member(_ queue: Int, weight: String = "100") -> Command {
    .queueBind(queue: queues[queue], exchange: ring, routingKey: weight, arguments: FieldTable())
  }

  /// From the direct binding of the first queue to the ring of all queues.
  var growth: [Command] {
    [
      declaration, member(0), entry(),
      .queueUnbind(queue: queues[0], exchange: send, routingKey: "normal", arguments: FieldTable()),
    ] + queues.indices.dropFirst().map { member($0) }
  }

  /// Back to the direct binding of the first queue.
  var shrinkage: [Command] {
    queues.dropFirst().map { .queueUnbind(queue: $0, exchange: ring, routingKey: "100", arguments: FieldTable()) } + [
      .queueBind(queue: queues[0], exchange: send, routingKey: "normal", arguments: FieldTable()),
      .exchangeDelete(name: ring),
    ]
  }

  func perform(_ commands: some Sequence<Command>) throws {
    for command in commands { #expect(try clients.perform(command) == .success(.done), "\(command)") }
  }

  // MARK: - Messages

  func publishNext(
    id: Int, exchange: String? = nil, key: String = "normal", _ change: (inout BasicProperties) -> Void = { _ in }
  ) {
    var properties = properties(id: "\(id)")
    change(&properties)
    clients.publish(exchange ?? send, key, properties, bytes("\(published)"), tag: published)
    published += 1
  }

  /// Publishes a message for each id and waits for the confirms.
  func publish(
    ids: Range<Int>, exchange: String? = nil, key: String = "normal", _ change: (inout BasicProperties) -> Void = { _ in }
  ) throws {
    for id in ids { publishNext(id: id, exchange: exchange, key: key, change) }
    try clients.require("confirms") { clients.publisher.unconfirmed == 0 }
    #expect(clients.published.failed.isEmpty)
  }

  /// Publishes one message. Returns its failure; nil if it was confirmed.
  func publishOne() throws -> PublishFailure? {
    let tag = published
    publishNext(id: tag)
    try clients.require("an outcome") { clients.publisher.unconfirmed == 0 }
    for case .failed(tag, let failure) in clients.published.events { return failure }
    return nil
  }

  /// Waits for this number of deliveries and checks that each is of another message and none follows.
  func expectAll(_ count: Int) throws {
    try clients.require("\(count) deliveries") { clients.consumed.deliveries.count >= count }
    _ = clients.loop.run(atMost: 0.2) { clients.consumed.deliveries.count > count }
    #expect(clients.consumed.deliveries.count == count && Set(clients.consumed.numbers).count == count)
  }

  /// The queues to which the messages of an id went, in order.
  var queuesOfIDs: [[UInt8]: [Int]] {
    clients.consumed.deliveries.reduce(into: [:]) { $0[$1.properties.messageID ?? [], default: []].append($1.consumer) }
  }
}
