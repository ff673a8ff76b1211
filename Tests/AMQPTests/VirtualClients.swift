import AMQP
import Broker
import BrokerModel
import MachineDriver
import TestSupport
import Testing
import Wire

/// Clients of a modelled broker, in memory: every byte travels at once, and time passes when the test says so.
final class VirtualClients {
  let broker: VirtualBroker
  private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
  let published = PublisherRecorder()
  let publisher: Publisher
  private var wires: [Wire] = []
  /// Everything that has happened to messages.
  private(set) var events: [BrokerEvent] = []

  private final class Wire {
    /// Nothing that the client says arrives.
    var isMuffled = false
    let client: MachineDriver
    let server: MachineDriver
    var toServer: [UInt8] = []
    var toClient: [UInt8] = []

    init(client: any Machine, server: any Machine) {
      self.client = MachineDriver(client)
      self.server = MachineDriver(server)
    }

    var isOver: Bool { client.end != nil && server.end != nil }
  }

  static var settings: ConnectionSettings {
    ConnectionSettings(broker: BrokerURI(host: "model", user: "guest", password: "guest"), name: "virtual test")
  }

  init(settings: BrokerSettings = BrokerSettings(), heartbeat: UInt16 = 10) throws {
    broker = VirtualBroker(settings: settings)
    var client = Self.settings
    client.heartbeat = heartbeat
    publisher = Publisher(settings: client, handler: published)
    broker.observer = { [unowned self] event, _ in events.append(event) }
    try connect(publisher)
    try #require(published.events.last == .ready)
  }

  /// Connects and carries out the handshake, as far as the broker does.
  func connect(_ machine: any Machine) throws {
    let wire = Wire(client: machine, server: try #require(broker.accept()))
    wires.append(wire)
    wire.server.open(at: now)
    wire.client.open(at: now)
    exchange()
  }

  /// A consumer that is ready, with a recorder of its own.
  func consume(_ queues: [Consumer.Subscription]) throws -> (consumer: Consumer, recorder: ConsumerRecorder) {
    let recorder = ConsumerRecorder()
    let consumer = Consumer(settings: Self.settings, queues: queues, handler: recorder)
    recorders.append(recorder)
    try connect(consumer)
    try #require(recorder.events.last == .ready)
    return (consumer, recorder)
  }

  private var recorders: [ConsumerRecorder] = []

  /// Cuts a client's wire: both ends are told.
  func cut(_ machine: any Machine) {
    for wire in wires where wire.client.machine === machine && !wire.isOver {
      wire.client.finish(.failed("connection reset"), at: now)
      wire.server.finish(.failed("connection reset"), at: now)
    }
    exchange()
  }

  /// From now on nothing that a client says arrives, and nobody is told.
  func muffle(_ machine: any Machine) { for wire in wires where wire.client.machine === machine { wire.isMuffled = true } }

  /// The bodies of the messages that were dropped for good.
  var dropped: [String] {
    events.compactMap {
      if case .dropped(let message, _, _) = $0 { String(decoding: message.body, as: UTF8.self) } else { nil }
    }
  }

  // MARK: - Time

  /// Carries bytes until nothing moves.
  func exchange() {
    for _ in 0..<100_000 {
      var moved = false
      if broker.deadline <= now {
        broker.deadlineReached(at: now)
        moved = true
      }
      for wire in wires { moved = carry(wire) || moved }
      wires.removeAll(where: \.isOver)
      if !moved { return }
    }
    Issue.record("the machines never fall silent")
  }

  private func carry(_ wire: Wire) -> Bool {
    var moved = wire.client.checkDeadline(at: now)
    moved = wire.server.checkDeadline(at: now) || moved
    let said = wire.client.collect(at: now)
    if !wire.isMuffled { wire.toServer += said }
    wire.toClient += wire.server.collect(at: now)
    moved = Self.hand(&wire.toServer, to: wire.server, at: now) || moved
    moved = Self.hand(&wire.toClient, to: wire.client, at: now) || moved
    for (side, other) in [(wire.client, wire.server), (wire.server, wire.client)] where side.end == nil && side.settle(at: now)
    {
      _ = Self.hand(&wire.toClient, to: wire.client, at: now)
      other.settle(at: now)
      other.finish(.closedByPeer, at: now)
      moved = true
    }
    return moved
  }

  private static func hand(_ bytes: inout [UInt8], to driver: MachineDriver, at now: MonotonicTime) -> Bool {
    guard !bytes.isEmpty, !driver.isReadingPaused else { return false }
    driver.receive(bytes, at: now)
    bytes = []
    return true
  }

  /// Moves the clock, stopping at every deadline on the way.
  func advance(by seconds: Double) {
    let target = now.advanced(bySeconds: seconds)
    while true {
      let machines = wires.flatMap { [$0.client, $0.server] }.filter { $0.isOpen }.map(\.machine.deadline)
      let next = ([broker.deadline] + machines).min() ?? .distantFuture
      guard next <= target else { break }
      now = max(next, now.advanced(bySeconds: 0.000_001))
      exchange()
    }
    now = target
    exchange()
  }

  // MARK: - What tests say

  func declare(_ name: String, _ arguments: FieldTable = FieldTable()) throws {
    var all: FieldTable = ["x-queue-type": .text("quorum")]
    for (key, value) in arguments.entries { all.append(String(decoding: key, as: UTF8.self), value) }
    #expect(try perform(.queueDeclare(name: name, arguments: all)) == .success(.queue(messages: 0, consumers: 0)))
  }

  func perform(_ command: Command) throws -> Result<CommandAnswer, ConnectionEnd> {
    var answer: Result<CommandAnswer, ConnectionEnd>?
    publisher.perform(command) { answer = $0 }
    exchange()
    return try #require(answer)
  }

  func declare(_ topology: Topology) throws {
    var answer: Result<[TopologyNotice], TopologyFailure>?
    publisher.declare(topology) { answer = $0 }
    exchange()
    #expect(try #require(answer).get() == [])
  }

  /// Publishes messages whose body is their tag.
  func publish(_ tags: ClosedRange<Int>, to queue: String, headers: FieldTable = FieldTable(), expiration: String? = nil) {
    for tag in tags {
      var properties = properties(id: "\(tag)", headers: headers)
      properties.expiration = expiration.map { bytes($0) }
      publisher.publish(exchange: [], routingKey: bytes(queue), properties: properties, body: bytes("\(tag)"), tag: tag)
    }
    exchange()
  }
}

extension ConsumerRecorder {
  /// The bodies that have come, as numbers.
  var numbers: [Int] { deliveries.map { Int(String(decoding: $0.body, as: UTF8.self)) ?? -1 } }
  /// How often each had come back before.
  var counts: [Int64] {
    deliveries.map { if case .integer(let count)? = $0.properties.headers["x-delivery-count"] { count } else { 0 } }
  }
}
