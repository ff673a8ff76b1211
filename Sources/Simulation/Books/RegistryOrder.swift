import AMQP
import PushCore

/// A change of the registry that a backend publishes: of one device that no request names.
struct RegistryOrder {
  enum Operation: String, CaseIterable { case register, unregister, subscribe, unsubscribe }

  var number: Int
  var app: Int
  /// Which of the application's devices that no request names.
  var device: Int
  var operation: Operation

  var platform: Platform { device % 2 == 0 ? .apns : .fcm }
  var token: String { Workload.token(platform, app: app, number: 5_000 + device) }
  var id: String { "change-\(number)" }
  static let topic = "news"

  private var reference: String { "\(platform == .fcm ? "fcm" : "apns"):\(token)" }

  private var body: String {
    let app = Scenario.app(app)
    return switch operation {
    case .register:
      #"{"op":"register","app":"\#(app)","platform":"\#(platform == .fcm ? "fcm" : "apns")","token":"\#(token)"}"#
    case .unregister: #"{"op":"unregister","app":"\#(app)","token":"\#(reference)"}"#
    case .subscribe, .unsubscribe:
      #"{"op":"\#(operation.rawValue)","app":"\#(app)","topic":"\#(Self.topic)","tokens":["\#(reference)"]}"#
    }
  }

  var outgoing: Outgoing {
    var properties = BasicProperties()
    properties.deliveryMode = 2
    properties.userID = Array(Scenario.user.utf8)
    properties.messageID = Array(id.utf8)
    properties.replyTo = Array(Producer.replies.utf8)
    properties.correlationID = Array(id.utf8)
    return Outgoing(exchange: "", routingKey: Books.registryQueue, properties: properties, body: body)
  }
}
