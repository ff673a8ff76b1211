import AMQP

public struct TopologyFailure: Error, Equatable, Sendable, CustomStringConvertible {
  public var subject: String
  public var reason: ConnectionEnd

  public var description: String {
    // RabbitMQ's answer to a type of exchange that it doesn't know.
    guard case .closedByBroker(503, _) = reason else { return "\(subject): \(reason)" }
    return "\(subject): \(reason); on each node run `rabbitmq-plugins enable rabbitmq_consistent_hash_exchange`"
  }
}

/// An existing object that a declaration left unchanged although it differs.
public enum TopologyNotice: Equatable, Sendable, CustomStringConvertible {
  /// The exchange exists without its alternate exchange. Messages with a wrong routing key are dropped.
  case dropsUnroutable(exchange: String, alternate: String)
  /// The quarantine exists with the delivery limit of an earlier fleet.
  case endsInnocents(queue: String)
  /// The configuration has several queues for each lane, but the broker has one.
  case isUndivided(queues: Int)

  public var description: String {
    switch self {
    case .dropsUnroutable(let exchange, let alternate):
      "the exchange \(exchange) exists without an alternate exchange: messages with a wrong routing key are dropped unless a policy "
        + "adds one. rabbitmqctl set_policy \(exchange)-unroutable '^\(exchange)$' "
        + "'{\"alternate-exchange\":\"\(alternate)\"}' --apply-to exchanges"
    case .endsInnocents(let queue):
      "the queue \(queue) exists with a delivery limit of \(Topology.formerQuarantineLimit): if more connections than that close one "
        + "after the other, its messages may become dead letters. Delete the queue when it is empty and all workers have this version; the "
        + "next worker that starts declares it again"
    case .isUndivided(let queues):
      "`pushfleet topology` has not divided the lanes among their \(queues) queues: only the first queue of each gets requests. If the exchanges of the "
        + "lanes were deleted, requests become dead letters"
    }
  }
}

extension Publisher {
  public typealias Declared = (Result<[TopologyNotice], TopologyFailure>) -> Void

  /// Declares the whole topology, and divides the lanes of a new fleet. Idempotent; stops at the first refusal.
  public func declare(_ topology: Topology, _ completion: @escaping Declared) {
    guard topology.laneQueues > 1 else {
      return declare((topology.declarations + topology.bindingCommands)[...], topology, [], completion)
    }
    findDivision(topology) { [unowned self] isDivided in
      if isDivided == true {
        let commands = topology.declarations + topology.laneExchanges + topology.entrances + topology.bindingCommands
        return declare(commands[...], topology, [], completion)
      }
      perform(.exchangeInspect(name: topology.sendExchange)) { [unowned self] answer in
        if case .failure(.notFound) = answer { return declareDividing(topology, completion) }
        let notice = TopologyNotice.isUndivided(queues: topology.laneQueues)
        declare((topology.declarations + topology.bindingCommands)[...], topology, [notice], completion)
      }
    }
  }

  /// Declares the whole topology, and divides the lanes among their queues or unites them.
  public func declareDividing(_ topology: Topology, _ completion: @escaping Declared) {
    let isDividing = topology.laneQueues > 1
    // First, so that a broker without the plugin refuses before producers can publish.
    let commands =
      (isDividing ? topology.laneExchanges : []) + topology.declarations
      + (isDividing ? topology.dividing : topology.uniting) + topology.bindingCommands
    declare(commands[...], topology, [], completion)
  }

  /// Asks whether the lanes are divided; nil if the broker did not answer.
  func findDivision(_ topology: Topology, _ completion: @escaping (_ isDivided: Bool?) -> Void) {
    perform(topology.divisionQuestion) { answer in
      switch answer {
      case .success: completion(true)
      case .failure(.notFound): completion(false)
      case .failure: completion(nil)
      }
    }
  }

  package func declare(
    _ commands: ArraySlice<Command>, _ topology: Topology, _ notices: [TopologyNotice] = [], _ completion: @escaping Declared
  ) {
    guard let command = commands.first else { return completion(.success(notices)) }
    perform(command) { [unowned self] result in
      switch result {
      case .success: declare(commands.dropFirst(), topology, notices, completion)
      case .failure(let reason):
        // Producers use this exchange and its arguments can't be changed, so an existing one is accepted.
        if case .exchangeDeclare(topology.sendExchange, let type, let arguments) = command, reason.isFatalConfiguration,
          arguments != FieldTable()
        {
          let plain = Command.exchangeDeclare(name: topology.sendExchange, type: type, arguments: FieldTable())
          let notice = TopologyNotice.dropsUnroutable(exchange: topology.sendExchange, alternate: topology.strayExchange)
          return declare([plain] + commands.dropFirst(), topology, notices + [notice], completion)
        }
        // Workers of an earlier fleet may still run, and the messages in the queue must be processed.
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
