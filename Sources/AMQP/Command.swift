/// A declaration or question to the broker. It gets exactly one answer.
public enum Command: Sendable, Equatable {
  case exchangeDeclare(name: String, type: String, arguments: FieldTable)
  /// Checks that an exchange exists (passive declare). Fails with `.notFound`.
  case exchangeInspect(name: String)
  /// Declares a durable queue. The arguments determine its type.
  case queueDeclare(name: String, arguments: FieldTable)
  /// Asks for the numbers of ready messages and consumers (passive declare). Fails with `.notFound`.
  case queueInspect(name: String)
  /// Asks whether the user may consume from a queue. It always fails: with `.accessRefused` if the user may not, otherwise
  /// because the consumer priority is invalid. RabbitMQ checks the user's permission before the arguments.
  case consumeRight(queue: String)
  case queueBind(queue: String, exchange: String, routingKey: String, arguments: FieldTable)
  /// Succeeds if there is no such binding, queue or exchange.
  case queueUnbind(queue: String, exchange: String, routingKey: String, arguments: FieldTable)
  /// Routes messages from the exchange `source` to another exchange.
  case exchangeBind(name: String, source: String, routingKey: String, arguments: FieldTable)
  /// Deletes an exchange with its bindings. Succeeds if it doesn't exist.
  case exchangeDelete(name: String)

  /// The name of the object that the command is about, for messages to people.
  public var subject: String {
    switch self {
    case .exchangeDeclare(let name, _, _), .exchangeInspect(let name), .exchangeDelete(let name): "exchange \(name)"
    case .queueDeclare(let name, _), .queueInspect(let name), .consumeRight(let name): "queue \(name)"
    case .queueBind(let name, let exchange, _, _), .queueUnbind(let name, let exchange, _, _),
      .exchangeBind(let name, let exchange, _, _):
      "binding of \(name) to \(exchange)"
    }
  }
}

public enum CommandAnswer: Sendable, Equatable {
  case done
  /// RabbitMQ may not count unacknowledged messages, or expired ones that it hasn't noticed.
  case queue(messages: Int, consumers: Int)
}
