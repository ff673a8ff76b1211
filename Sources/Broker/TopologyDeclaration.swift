import AMQP

/// A part of the topology that the broker refused.
public struct TopologyFailure: Error, Equatable, Sendable, CustomStringConvertible {
  public var subject: String
  public var reason: ConnectionEnd

  public var description: String { "\(subject): \(reason)" }
}

/// What a declaration has left as it found it on the broker.
public enum TopologyNotice: Equatable, Sendable, CustomStringConvertible {
  /// The exchange exists, declared without its alternate exchange: what is published to it with a wrong routing key is dropped.
  case dropsUnroutable(exchange: String, alternate: String)
  /// The quarantine exists with an earlier fleet's delivery limit.
  case endsInnocents(queue: String)

  public var description: String {
    switch self {
    case .dropsUnroutable(let exchange, let alternate):
      "the exchange \(exchange) exists without an alternate exchange: unless a policy adds one, what is published to it with a wrong "
        + "routing key is dropped. rabbitmqctl set_policy \(exchange)-unroutable '^\(exchange)$' "
        + "'{\"alternate-exchange\":\"\(alternate)\"}' --apply-to exchanges"
    case .endsInnocents(let queue):
      "the queue \(queue) exists with a delivery limit of \(Topology.formerQuarantineLimit): where more connections than that are closed one "
        + "after the other, what is in it may become a dead letter. Delete it when it is empty and all workers are of this version; the next "
        + "one that starts declares it"
    }
  }
}

extension Publisher {
  /// Declares everything, idempotently; stops at the first refusal.
  public func declare(_ topology: Topology, _ completion: @escaping (Result<[TopologyNotice], TopologyFailure>) -> Void) {
    declare(topology.commands[...], topology, [], completion)
  }

  private func declare(
    _ commands: ArraySlice<Command>, _ topology: Topology, _ notices: [TopologyNotice],
    _ completion: @escaping (Result<[TopologyNotice], TopologyFailure>) -> Void
  ) {
    guard let command = commands.first else { return completion(.success(notices)) }
    perform(command) { [unowned self] result in
      switch result {
      case .success: declare(commands.dropFirst(), topology, notices, completion)
      case .failure(let reason):
        // Producers use it and an exchange's arguments can't be changed, so one of an earlier fleet serves as it is.
        if case .exchangeDeclare(topology.sendExchange, let type, let arguments) = command, reason.isFatalConfiguration,
          arguments != FieldTable()
        {
          let plain = Command.exchangeDeclare(name: topology.sendExchange, type: type, arguments: FieldTable())
          let notice = TopologyNotice.dropsUnroutable(exchange: topology.sendExchange, alternate: topology.strayExchange)
          return declare([plain] + commands.dropFirst(), topology, notices + [notice], completion)
        }
        // Workers of an earlier fleet may still be there, and what is in it is to be processed.
        let former = topology.deadLettered(after: Topology.formerQuarantineLimit)
        if case .queueDeclare(topology.quarantineQueue, let arguments) = command, reason.isFatalConfiguration,
          arguments != former
        {
          let same = Command.queueDeclare(name: topology.quarantineQueue, arguments: former)
          return declare(
            [same] + commands.dropFirst(), topology, notices + [.endsInnocents(queue: topology.quarantineQueue)], completion)
        }
        completion(.failure(TopologyFailure(subject: command.subject, reason: reason)))
      }
    }
  }
}
