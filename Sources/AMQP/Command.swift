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

  /// The name of the object that the command is about, for messages to people.
  public var subject: String {
    switch self {
    case .exchangeDeclare(let name, _, _), .exchangeInspect(let name): "exchange \(name)"
    case .queueDeclare(let name, _), .queueInspect(let name), .consumeRight(let name): "queue \(name)"
    case .queueBind(let queue, let exchange, _, _): "binding of \(queue) to \(exchange)"
    }
  }

  var method: OutboundMethod {
    switch self {
    case .exchangeDeclare(let name, let type, let arguments):
      .exchangeDeclare(name: Array(name.utf8), type: Array(type.utf8), arguments: arguments)
    case .exchangeInspect(let name): .exchangeInspect(name: Array(name.utf8))
    case .queueDeclare(let name, let arguments):
      .queueDeclare(name: Array(name.utf8), passive: false, arguments: arguments)
    case .queueInspect(let name): .queueDeclare(name: Array(name.utf8), passive: true, arguments: FieldTable())
    case .consumeRight(let queue):
      .consume(queue: Array(queue.utf8), consumerTag: [], arguments: ["x-priority": .text("none")])
    case .queueBind(let queue, let exchange, let routingKey, let arguments):
      .queueBind(
        queue: Array(queue.utf8), exchange: Array(exchange.utf8), routingKey: Array(routingKey.utf8), arguments: arguments)
    }
  }
}

public enum CommandAnswer: Sendable, Equatable {
  case done
  /// RabbitMQ may not count unacknowledged messages, or expired ones that it hasn't noticed.
  case queue(messages: Int, consumers: Int)
}
