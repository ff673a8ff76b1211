/// A declaration or question to the broker, answered once.
public enum Command: Sendable, Equatable {
  /// Durable.
  case exchangeDeclare(name: String, type: String, arguments: FieldTable)
  /// Passive. Fails with `.notFound`.
  case exchangeInspect(name: String)
  /// Durable; what kind of queue is up to the arguments.
  case queueDeclare(name: String, arguments: FieldTable)
  /// Passive: how many messages are ready and how many consumers there are. Fails with `.notFound`.
  case queueInspect(name: String)
  /// Whether the user may consume from a queue, which always fails: with `.accessRefused` where he may not, and otherwise because no
  /// consumer has such a priority. RabbitMQ looks at the user before it looks at the arguments.
  case consumeRight(queue: String)
  case queueBind(queue: String, exchange: String, routingKey: String, arguments: FieldTable)

  /// What it is about, for messages to people.
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

/// The broker's answer to a command.
public enum CommandAnswer: Sendable, Equatable {
  case done
  /// Ready messages (unacknowledged and expired-but-unnoticed ones not counted as RabbitMQ sees fit) and consumers.
  case queue(messages: Int, consumers: Int)
}
