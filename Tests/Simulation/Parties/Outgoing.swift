import AMQP

/// What a backend publishes.
struct Outgoing {
  var exchange: String
  var routingKey: String
  var properties: BasicProperties
  var body: String
  /// The broker has it.
  var isAccepted: () -> Void = {}
}
