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
  /// Lanes have several queues, but only the first one gets requests.
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
      "only the first of the \(queues) queues of each lane gets requests until `pushfleet topology` runs"
    }
  }
}

extension Publisher {
  public typealias Declared = (Result<[TopologyNotice], TopologyFailure>) -> Void

  /// Declares the whole topology, with lanes divided as they are. Idempotent; stops at the first refusal.
  public func declare(_ topology: Topology, _ completion: @escaping Declared) {
    findDivision(topology) { [unowned self] isDivided in
      let notices = isDivided || topology.laneQueues == 1 ? [] : [TopologyNotice.isUndivided(queues: topology.laneQueues)]
      let commands = topology.declarations + topology.bindingCommands(isDivided: isDivided)
      declare(commands[...], topology, notices, completion)
    }
  }

  /// Declares the whole topology, and divides the lanes among their queues or unites them.
  public func declareDividing(_ topology: Topology, _ completion: @escaping Declared) {
    perform(topology.divisionQuestion) { [unowned self] answer in
      let isDivided = if case .success = answer { true } else { false }
      let staysDivided = topology.laneQueues > 1
      let change = staysDivided ? topology.dividing : isDivided ? topology.uniting : []
      let commands = topology.declarations + change + topology.bindingCommands(isDivided: staysDivided)
      // The second time removes bindings that a worker has made since the first, because it had not seen the exchanges yet.
      declare((commands + (staysDivided ? change : []))[...], topology, [], completion)
    }
  }

  /// Asks whether the lanes are divided, if they have several queues. If the broker refuses to answer, the next command shows why.
  func findDivision(_ topology: Topology, _ completion: @escaping (_ isDivided: Bool) -> Void) {
    guard topology.laneQueues > 1 else { return completion(false) }
    perform(topology.divisionQuestion) { answer in
      let isDivided = if case .success = answer { true } else { false }
      completion(isDivided)
    }
  }

  private func declare(
    _ commands: ArraySlice<Command>, _ topology: Topology, _ notices: [TopologyNotice], _ completion: @escaping Declared
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
