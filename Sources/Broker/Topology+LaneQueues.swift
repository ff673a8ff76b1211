import AMQP

/// Lanes of several queues, for more requests than one queue leader accepts. A lane is divided if it has an exchange of its own,
/// of type `x-consistent-hash` (a plugin of RabbitMQ), which chooses a queue for each request by its message id. So a repeated
/// request comes to the queue of the first one.
///
/// Only `pushfleet topology` divides the lanes of an existing fleet. If a worker did, those with an older configuration would still
/// bind the first queue to `sendExchange`, and requests would be copied to two queues.
extension Topology {
  public static let mostLaneQueues = 16
  /// The places of a queue on the ring. With 100 places the queues get equal numbers of requests within a few percent.
  private static let weight = "100"
  private static var requestLanes: [WorkQueue] { WorkQueue.allCases.filter { !$0.isFanOut } }

  /// The queues of a lane. The first one has the lane's name.
  package func queues(of lane: WorkQueue) -> [String] {
    (0..<(lane.isFanOut ? 1 : laneQueues)).map { queue(of: lane, number: $0) }
  }

  package func queue(of lane: WorkQueue, number: Int) -> String {
    number == 0 ? name(lane.origin) : name("\(lane.origin).\(number)")
  }

  /// The lane of one of its queues, both without prefix. Names of other queues are unchanged.
  static func lane(ofQueue queue: String) -> String {
    requestLanes.map(\.origin).first { queue.hasPrefix($0 + ".") && Int(queue.dropFirst($0.count + 1)) != nil } ?? queue
  }

  /// The queues of all lanes.
  public var allLaneQueues: [String] { WorkQueue.allCases.flatMap(queues) }

  /// Fails with `.notFound` if the lanes are not divided.
  package var divisionQuestion: Command { .exchangeInspect(name: name(WorkQueue.sendNormal.origin)) }

  /// The commands with which each process that declares the topology binds its queues.
  var bindingCommands: [Command] {
    let divided = laneQueues > 1 ? Self.requestLanes.map { name($0.origin) } : []
    return bindings.filter { !divided.contains($0.queue) }.map(Self.bind)
  }

  private static func bind(_ binding: Binding) -> Command {
    .queueBind(
      queue: binding.queue, exchange: binding.exchange, routingKey: binding.routingKey, arguments: binding.arguments)
  }

  private static func unbind(_ binding: Binding) -> Command {
    .queueUnbind(
      queue: binding.queue, exchange: binding.exchange, routingKey: binding.routingKey, arguments: binding.arguments)
  }

  /// The bindings in front of a divided lane's first queue: that of the queue to the lane's exchange, and those of the exchange. While
  /// the queue has bindings of its own too, it gets one copy of each request.
  var entrances: [Command] { Self.requestLanes.flatMap(entrances) }

  private func entrances(_ lane: WorkQueue) -> [Command] {
    let exchange = name(lane.origin)
    return [Self.bind((exchange, exchange, Self.weight, FieldTable()))]
      + laneBindings(lane).map {
        .exchangeBind(name: exchange, source: $0.exchange, routingKey: $0.routingKey, arguments: $0.arguments)
      }
  }

  /// The exchanges of divided lanes.
  var laneExchanges: [Command] {
    let arguments: FieldTable = ["hash-property": .text("message_id"), "alternate-exchange": .text(strayExchange)]
    return Self.requestLanes.map {
      .exchangeDeclare(name: name($0.origin), type: "x-consistent-hash", arguments: arguments)
    }
  }

  /// The commands that divide the lanes among their queues. After each of them a new request has exactly one queue.
  var dividing: [Command] {
    Self.requestLanes.flatMap { lane in
      entrances(lane) + laneBindings(lane).map(Self.unbind)
        + queues(of: lane).dropFirst().map { Self.bind(($0, name(lane.origin), Self.weight, FieldTable())) } + leaving(lane)
    }
  }

  /// The commands after which new requests come to the first queue of each lane only, without an exchange of its own.
  var uniting: [Command] {
    Self.requestLanes.flatMap { lane in
      leaving(lane) + laneBindings(lane).map(Self.bind) + [.exchangeDelete(name: name(lane.origin))]
    }
  }

  /// Takes new requests away from queues beyond `laneQueues`. Workers that still consume them empty them.
  private func leaving(_ lane: WorkQueue) -> [Command] {
    (laneQueues..<Self.mostLaneQueues).map {
      Self.unbind((queue(of: lane, number: $0), name(lane.origin), Self.weight, FieldTable()))
    }
  }
}
