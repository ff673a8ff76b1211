import AMQP

struct Outgoing {
  var exchange: String
  var routingKey: String
  var properties: BasicProperties
  var body: String
  /// Called when the broker has confirmed the message.
  var isAccepted: () -> Void = {}
}
