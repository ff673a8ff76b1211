import AMQP
import Broker
import Foundation
import Reactor
import TestSupport
import Testing

@Suite("Against a running broker", .serialized)
struct LiveBrokerTests {
  @Test(
    "10,000 messages are published with confirms and consumed in order, bodies and properties unchanged",
    arguments: BrokerKind.allCases)
  func tenThousand(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("orders")
    try clients.consume([.init(queue: queue, prefetch: 500)])
    clients.consumed.acknowledging = clients.consumer
    let count = 10_000
    var next = 0
    try clients.require("all confirmed and delivered", atMost: 60) {
      while next < count, clients.publisher.canPublish {
        clients.publish("", queue, properties(id: "m-\(next)"), bytes("body \(next)"), tag: next)
        next += 1
      }
      return clients.published.confirmedCount == count && clients.consumed.deliveries.count == count
    }
    #expect(clients.published.failed.isEmpty)
    #expect(clients.consumed.deliveries.map(\.body) == (0..<count).map { bytes("body \($0)") })
    #expect(clients.consumed.deliveries.allSatisfy { $0.properties.deliveryMode == 2 && !$0.redelivered })
    #expect(clients.consumed.deliveries[17].properties.messageID == bytes("m-17"))
    #expect(clients.publisher.unconfirmed == 0 && clients.consumer!.unacknowledged == 0)
    try clients.close()
    #expect(clients.consumed.events == [.ready, .ended(.closedHere)])
    #expect(clients.published.end == .closedHere)
    let later = try LiveClients(kind.shared.uri)
    #expect(try later.messageCount(queue) == 0)
    try later.close()
  }

  @Test("A body of several frames arrives whole, or cut at the limit with its size told", arguments: BrokerKind.allCases)
  func largeBody(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("large")
    let body = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    clients.publish("", queue, properties(), body, tag: 1)
    clients.publish("", queue, properties(), [], tag: 2)
    clients.publish("", queue, properties(), Array(body[..<300_001]), tag: 3)
    try clients.consume([.init(queue: queue, prefetch: 10)], maximumBody: 500_000)
    try clients.require("three deliveries") { clients.consumed.deliveries.count == 3 }
    let deliveries = clients.consumed.deliveries
    #expect(deliveries[0].body == Array(body[..<500_000]) && deliveries[0].bodySize == 700_000 && deliveries[0].isTruncated)
    #expect(deliveries[1].body.isEmpty && !deliveries[1].isTruncated)
    #expect(deliveries[2].body == Array(body[..<300_001]))
    try clients.close()
  }

  @Test(
    "The topology can be declared twice, and a queue with other arguments is a fatal configuration error",
    arguments: BrokerKind.allCases)
  func topology(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let prefix = Broker.uniqueName("t")
    let topology = Topology(
      prefix: prefix, ladder: [RetryStep(name: "1s", delay: 1000), RetryStep(name: "1h", delay: 3_600_000)])
    #expect(try clients.declare(topology).get() == [])
    #expect(try clients.declare(topology).get() == [])
    let other = Topology(prefix: prefix, ladder: [RetryStep(name: "1s", delay: 2000)])
    guard case .failure(let failure) = try clients.declare(other) else {
      Issue.record("the broker accepted other arguments")
      return
    }
    #expect(failure.reason.isFatalConfiguration)
    #expect(failure.subject == "queue \(prefix).retry.1s")
    #expect(failure.description.contains("x-message-ttl"))
    #expect(clients.published.events == [.ready])
    try clients.close()
  }

  @Test(
    "A request with a wrong routing key goes to the dead letters; an exchange that can't catch it is kept, with a notice",
    arguments: BrokerKind.allCases)
  func wrongRoutingKey(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let topology = Topology(prefix: Broker.uniqueName("t"), ladder: [RetryStep(name: "1s", delay: 1000)])
    #expect(try clients.declare(topology).get() == [])
    for (tag, key) in ["urgent", "", "normal"].enumerated() {
      clients.publish(topology.sendExchange, key, properties(), bytes("request"), tag: tag)
    }
    try clients.require("three confirms") { clients.published.confirmedCount == 3 }
    #expect(try clients.messageCount(topology.deadQueue) == 2)
    #expect(try clients.messageCount(topology.name("send.normal")) == 1)

    let former = Topology(prefix: Broker.uniqueName("t"), ladder: topology.ladder)
    #expect(
      try clients.perform(.exchangeDeclare(name: former.sendExchange, type: "direct", arguments: FieldTable()))
        == .success(.done))
    #expect(
      try clients.declare(former).get() == [
        .dropsUnroutable(exchange: former.sendExchange, alternate: former.strayExchange)
      ])
    #expect(try clients.messageCount(former.deadQueue) == 0)
    try clients.close()
  }

  @Test("A quarantine with an earlier fleet's delivery limit serves as it is", arguments: BrokerKind.allCases)
  func formerQuarantine(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let topology = Topology(prefix: Broker.uniqueName("t"), ladder: [RetryStep(name: "1s", delay: 1000)])
    let former: FieldTable = [
      "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(3), "x-overflow": .text("reject-publish"),
      "x-dead-letter-exchange": .text(topology.deadExchange), "x-dead-letter-routing-key": .text("dead"),
      "x-dead-letter-strategy": .text("at-least-once"),
    ]
    #expect(
      try clients.perform(.queueDeclare(name: topology.quarantineQueue, arguments: former))
        == .success(.queue(messages: 0, consumers: 0)))
    #expect(try clients.declare(topology).get() == [.endsInnocents(queue: topology.quarantineQueue)])
    #expect(try clients.declare(topology).get() == [.endsInnocents(queue: topology.quarantineQueue)])
    try clients.close()
  }

  @Test("An expired retry goes back to where its header says and nowhere else, again and again", arguments: BrokerKind.allCases)
  func retryLadder(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let topology = Topology(prefix: Broker.uniqueName("t"), ladder: [RetryStep(name: "300ms", delay: 300)])
    _ = try clients.declare(topology).get()
    try clients.consume(Topology.lanes.map { .init(queue: topology.name($0), prefetch: 50) })
    clients.consumed.acknowledging = clients.consumer
    let count = 40
    for index in 0..<count {
      let lane = Topology.lanes[index % 4]
      let headers: FieldTable = [Topology.originHeader: .text(lane), "x-push-attempt": .integer(1)]
      clients.publish(
        topology.retryExchange, "300ms", properties(id: "\(index)", headers: headers), bytes("\(index)"), tag: index)
    }
    for round in 1...3 {
      try clients.require("round \(round)") { clients.consumed.deliveries.count >= count }
      let deliveries = clients.consumed.deliveries
      clients.consumed.deliveries = []
      #expect(Set(deliveries.map(\.body)).count == count && deliveries.count == count)
      for delivery in deliveries {
        let lane = Topology.lanes[delivery.consumer]
        #expect(delivery.properties.headers.string(Topology.originHeader) == bytes(lane))
        #expect(delivery.properties.headers["x-death"] != nil)
        guard round < 3 else { continue }
        var again = delivery.properties
        again.headers = delivery.properties.headers.removing(["x-death"])
        clients.publish(topology.retryExchange, "300ms", again, delivery.body, tag: 1000 * round)
      }
    }
    #expect(clients.published.failed.isEmpty)
    #expect(try clients.messageCount(topology.retryQueue(topology.ladder[0])) == 0)
    try clients.close()
  }

  @Test(
    "A retry must not carry x-death from its lane: the broker takes its return for a cycle and keeps it for ever",
    arguments: BrokerKind.allCases)
  func cycle(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let topology = Topology(prefix: Broker.uniqueName("t"), ladder: [RetryStep(name: "300ms", delay: 300)])
    _ = try clients.declare(topology).get()
    try clients.consume([.init(queue: topology.name("send.high"), prefetch: 50)])
    // What a request bears that was dead-lettered after too many returns and then replayed by hand.
    let death: FieldTable = [
      "count": .integer(1), "reason": .text("delivery_limit"), "queue": .text(topology.name("send.high")),
      "time": .timestamp(1),
      "exchange": .text(topology.sendExchange), "routing-keys": .array([.text("high")]),
    ]
    let carrying: FieldTable = [Topology.originHeader: .text("send.high"), "x-death": .array([.table(death)])]
    clients.publish(topology.retryExchange, "300ms", properties(headers: carrying), bytes("carrying"), tag: 1)
    clients.publish(
      topology.retryExchange, "300ms", properties(headers: carrying.removing(["x-death"])), bytes("freed"), tag: 2)
    try clients.require("a delivery") { !clients.consumed.deliveries.isEmpty }
    try clients.require("an empty step") { try! clients.messageCount(topology.retryQueue(topology.ladder[0])) == 0 }
    #expect(clients.consumed.deliveries.map(\.body) == [bytes("freed")])
    try clients.require("a dead letter") { try! kind.shared.deadLetters(of: topology.retryQueue(topology.ladder[0])) == 1 }
    try clients.close()
  }

  @Test(
    "A publish to a missing queue is returned, one to a missing exchange closes only the channel",
    arguments: BrokerKind.allCases)
  func unroutable(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("real")
    for tag in 0..<30 { clients.publish("", tag % 3 == 1 ? "nowhere" : queue, properties(id: "\(tag)"), bytes("x"), tag: tag) }
    try clients.require("all settled") { clients.publisher.unconfirmed == 0 }
    #expect(clients.published.failed.sorted() == (0..<30).filter { $0 % 3 == 1 })
    #expect(clients.published.events.contains(.failed(1, .returned(code: 312))))
    clients.published.events = []
    clients.publish("no.such.exchange", "k", properties(), bytes("x"), tag: 99)
    try clients.require("ready again") { clients.published.events.last == .ready }
    guard case .failed(99, .channelClosed(.notFound))? = clients.published.events.first else {
      Issue.record("\(clients.published.events)")
      return
    }
    clients.publish("", queue, properties(), bytes("y"), tag: 100)
    try clients.require("confirmed") { clients.published.confirmed == [100] }
    try clients.close()
  }

  @Test("Asking for a missing queue fails and leaves the publishing channel alone", arguments: BrokerKind.allCases)
  func inspectMissing(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    guard case .failure(.notFound) = try clients.perform(.queueInspect(name: "no.such.queue")) else {
      Issue.record("the queue was found")
      return
    }
    _ = try clients.makeQueue("there")
    #expect(clients.published.events == [.ready])
    try clients.close()
  }

  @Test("A wrong password and a missing virtual host are told apart", arguments: BrokerKind.allCases)
  func refused(_ kind: BrokerKind) throws {
    let port = try kind.shared.port
    let cases: [(uri: String, isExpected: (ConnectionEnd) -> Bool)] = [
      ("amqp://guest:wrong@127.0.0.1:\(port)/", { if case .authenticationRefused = $0 { true } else { false } }),
      ("amqp://guest:guest@127.0.0.1:\(port)/nope", { if case .virtualHostRefused = $0 { true } else { false } }),
    ]
    for (uri, isExpected) in cases {
      let loop = try EventLoop()
      let recorder = PublisherRecorder()
      let settings = ConnectionSettings(broker: try BrokerURI(parsing: uri))
      let publisher = Publisher(settings: settings, handler: recorder)
      let link = Link(loop: loop, machine: publisher, to: Endpoint(host: settings.broker.host, port: settings.broker.port))
      link.start()
      try #require(loop.run { recorder.end != nil })
      #expect(isExpected(recorder.end!) && recorder.end!.isRefusal, "\(recorder.end!)")
    }
  }

  @Test("A foreign client's message arrives", arguments: BrokerKind.allCases)
  func foreignClient(_ kind: BrokerKind) throws {
    let broker = try kind.shared
    let clients = try LiveClients(broker.uri)
    let queue = try clients.makeQueue("foreign")
    try clients.consume([.init(queue: queue, prefetch: 10)])
    let foreign = [
      "/usr/bin/amqp-publish", "--url=\(broker.uri)", "--routing-key=\(queue)", "--content-type=application/json",
      "--persistent",
      "--header=x-push-sender: 42", "--body={}",
    ]
    #expect(try ChildProcess(foreign, environment: [:], output: nil).wait() == 0)
    try clients.require("a delivery") { clients.consumed.deliveries.count == 1 }
    let delivery = clients.consumed.deliveries[0]
    #expect(delivery.body == bytes("{}") && delivery.properties.contentType == bytes("application/json"))
    #expect(delivery.properties.headers.string("x-push-sender") == bytes("42"))
    #expect(delivery.routingKey == bytes(queue))
    try clients.close()
  }

  @Test("A deleted queue is reported, and can be consumed again once it is back", arguments: BrokerKind.allCases)
  func queueDeleted(_ kind: BrokerKind) throws {
    let broker = try kind.shared
    let clients = try LiveClients(broker.uri)
    let queue = try clients.makeQueue("deleted")
    try clients.consume([.init(queue: queue, prefetch: 10)])
    try broker.deleteQueue(queue)
    try clients.require("a cancel") { clients.consumed.events.last == .cancelled(0) }
    _ = try clients.perform(.queueDeclare(name: queue, arguments: ["x-queue-type": .text("quorum")]))
    clients.consumer!.consume(queue: 0)
    try clients.require("ready again") { clients.consumed.events.last == .ready }
    try clients.close()
  }

  @Test("A full queue nacks, and the failure says so", arguments: BrokerKind.allCases)
  func fullQueue(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("full", ["x-max-length": .integer(3), "x-overflow": .text("reject-publish")])
    for tag in 0..<10 {
      clients.publish("", queue, properties(id: "\(tag)"), bytes("x"), tag: tag)
      try clients.require("settled") { clients.publisher.unconfirmed == 0 }
    }
    #expect(clients.published.events.last == .failed(9, .nacked))
    #expect(clients.published.confirmed.count >= 3)
    try clients.close()
  }

  @Test(
    "Cancelled consumers deliver nothing more, and what is in hand can still be acknowledged", arguments: BrokerKind.allCases)
  func draining(_ kind: BrokerKind) throws {
    let clients = try LiveClients(kind.shared.uri)
    let queue = try clients.makeQueue("drained")
    for tag in 0..<100 { clients.publish("", queue, properties(), bytes("\(tag)"), tag: tag) }
    try clients.require("confirmed") { clients.publisher.unconfirmed == 0 }
    try clients.consume([.init(queue: queue, prefetch: 10)])
    try clients.require("a full prefetch") { clients.consumed.deliveries.count == 10 }
    clients.consumer!.cancelConsumers()
    try clients.require("cancelled") { clients.consumer!.isCancelled }
    for delivery in clients.consumed.deliveries { clients.consumer!.acknowledge(delivery.token) }
    try clients.close()
    #expect(clients.consumed.deliveries.count == 10)
    let later = try LiveClients(kind.shared.uri)
    #expect(try later.messageCount(queue) == 90)
    try later.close()
  }

  @Test("What is acknowledged before a close reaches its queue, however slow the log of that is", arguments: [false, true])
  func closedWhileSlow(_ isInTurn: Bool) throws {
    let broker = try Broker.shared
    let clients = try LiveClients(broker.uri)
    let queue = try clients.makeQueue("slow")
    try clients.publish(1...300, to: queue)
    try clients.consume([.init(queue: queue, prefetch: 300)])
    try clients.require("all in hand") { clients.consumed.deliveries.count == 300 }
    try broker.evaluate("sys:suspend(list_to_existing_atom(\"%2F_\(queue)\")).")
    // The first one stays in hand, so that no frame acknowledges the others together.
    for delivery in clients.consumed.deliveries.dropFirst() { clients.consumer!.acknowledge(delivery.token) }
    if isInTurn { clients.consumer!.closeInTurn() } else { clients.consumer!.close() }
    let hasEndedEarly = clients.loop.run(atMost: 1) { clients.consumed.events.last == .ended(.closedHere) }
    #expect(!hasEndedEarly, "the connection ended before the queue answered")
    try broker.evaluate("sys:resume(list_to_existing_atom(\"%2F_\(queue)\")).")
    try clients.require("the end") { clients.consumed.events.last == .ended(.closedHere) }
    try clients.require("the first one back") { try! clients.messageCount(queue) == 1 }
    clients.publisher.close()
    try clients.require("ended links") { clients.allEnded }
  }
}
