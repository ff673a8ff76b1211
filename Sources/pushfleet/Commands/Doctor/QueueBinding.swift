import AMQP

/// A queue's binding, from the topology or the management API.
struct QueueBinding: Equatable {
  var queue: String
  var key: String
  /// Text arguments by name; the fleet's bindings have no others.
  var arguments: [String: String]

  init(_ binding: (queue: String, exchange: String, routingKey: String, arguments: FieldTable)) {
    queue = binding.queue
    key = binding.routingKey
    arguments = [:]
    for (name, value) in binding.arguments.entries {
      if case .string(let text) = value {
        arguments[String(decoding: name, as: UTF8.self)] = String(decoding: text, as: UTF8.self)
      }
    }
  }

  /// A binding of a lane's exchange, which has the name of the lane's first queue, is like the binding of that queue.
  init?(_ object: [String: Any]) {
    guard let queue = object["destination"] as? String, let key = object["routing_key"] as? String else { return nil }
    self.queue = queue
    self.key = key
    arguments = (object["arguments"] as? [String: Any] ?? [:]).mapValues { $0 as? String ?? "\($0)" }
  }
}
