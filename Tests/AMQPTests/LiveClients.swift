import AMQP
import Broker
import Reactor
import TLS
import TestSupport
import Testing
import Wire

/// A consumer and a publisher on sockets of one loop, against a broker.
final class LiveClients {
  let loop: EventLoop
  let settings: ConnectionSettings
  let published = PublisherRecorder()
  let consumed = ConsumerRecorder()
  let publisher: Publisher
  private(set) var consumer: Consumer?
  private let tls: TLSClientContext?
  private var links: [Link] = []

  init(_ uri: String, ca: String? = nil, name: String = "live test") throws {
    loop = try EventLoop()
    settings = ConnectionSettings(broker: try BrokerURI(parsing: uri), name: name)
    publisher = Publisher(settings: settings, handler: published)
    tls = try ca.map { try TLSClientContext(ca: $0) }
    connect(publisher)
    try require("a ready publisher") { published.events.last == .ready }
  }

  func connect(_ machine: any Machine) {
    let endpoint = Endpoint(host: settings.broker.host, port: settings.broker.port)
    let link = Link(loop: loop, machine: machine, to: endpoint, tls: tls)
    links.append(link)
    link.start()
  }

  func consume(_ queues: [Consumer.Subscription], maximumBody: Int = 1 << 20) throws {
    let consumer = Consumer(settings: settings, queues: queues, maximumBody: maximumBody, handler: consumed)
    self.consumer = consumer
    connect(consumer)
    try require("a ready consumer") { consumed.events.last == .ready }
  }

  /// Drops a machine's connection without a word.
  func disconnect(_ machine: any Machine) throws {
    for link in links where link.machine === machine { link.close() }
    try require("a dropped connection") { links.allSatisfy { $0.machine !== machine || $0.end != nil } }
  }

  func require(_ what: String, atMost seconds: Double = 30, until condition: () -> Bool) throws {
    let isMet = loop.run(atMost: seconds, until: condition)
    try #require(isMet, "waited for \(what); \(published.events.suffix(3)) \(consumed.events.suffix(3))")
  }

  func perform(_ command: Command) throws -> Result<CommandAnswer, ConnectionEnd> {
    var answer: Result<CommandAnswer, ConnectionEnd>?
    publisher.perform(command) { answer = $0 }
    try require("an answer to \(command.subject)") { answer != nil }
    return answer!
  }

  /// A queue of the kind the fleet uses, under a name no other test uses.
  func makeQueue(_ stem: String, _ arguments: FieldTable = FieldTable()) throws -> String {
    let name = Broker.uniqueName(stem)
    var all: FieldTable = ["x-queue-type": .text("quorum")]
    for (key, value) in arguments.entries { all.append(String(decoding: key, as: UTF8.self), value) }
    let answer = try perform(.queueDeclare(name: name, arguments: all))
    #expect(answer == .success(.queue(messages: 0, consumers: 0)))
    return name
  }

  func declare(_ topology: Topology) throws -> Result<[TopologyNotice], TopologyFailure> {
    var answer: Result<[TopologyNotice], TopologyFailure>?
    publisher.declare(topology) { answer = $0 }
    try require("a declared topology", atMost: 60) { answer != nil }
    return answer!
  }

  /// Publishes messages whose body is their tag, and waits for their confirms.
  func publish(_ tags: ClosedRange<Int>, to queue: String, expiration: String? = nil) throws {
    for tag in tags {
      var properties = properties(id: "\(tag)")
      properties.expiration = expiration.map { bytes($0) }
      publish("", queue, properties, bytes("\(tag)"), tag: tag)
    }
    try require("confirms") { publisher.unconfirmed == 0 }
  }

  func messageCount(_ queue: String) throws -> Int? {
    if case .success(.queue(let messages, _)) = try perform(.queueInspect(name: queue)) { messages } else { nil }
  }

  func publish(_ exchange: String, _ key: String, _ properties: BasicProperties, _ body: [UInt8], tag: Int) {
    publisher.publish(exchange: bytes(exchange), routingKey: bytes(key), properties: properties, body: body, tag: tag)
  }

  var allEnded: Bool { links.allSatisfy { $0.end != nil } }

  func close() throws {
    publisher.close()
    consumer?.close()
    try require("ended links") { allEnded }
  }
}
