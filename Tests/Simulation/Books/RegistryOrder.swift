import AMQP
import PushCore

/// A change of the registry that a backend publishes: of one device that no request names.
struct RegistryOrder {
  enum Operation: String, CaseIterable {
    case register, unregister, subscribe, unsubscribe
    /// The device's installation registers another one of its tokens.
    case move
  }

  var number: Int
  var app: Int
  /// Which of the application's devices that no request names.
  var device: Int
  var operation: Operation
  /// Which of its tokens the installation registers.
  var variant = 0

  var platform: Platform { device % 2 == 0 ? .apns : .fcm }
  var token: String {
    Workload.token(platform, app: app, number: operation == .move ? 5_100 + 10 * device + variant : 5_000 + device)
  }
  var installation: String { "moving-\(device)" }
  var id: String { "change-\(number)" }
  static let topic = "news"

  private var reference: String { "\(platform == .fcm ? "fcm" : "apns"):\(token)" }

  private var body: String {
    let app = Scenario.app(app)
    return switch operation {
    case .register:
      #"{"op":"register","app":"\#(app)","platform":"\#(platform == .fcm ? "fcm" : "apns")","token":"\#(token)"}"#
    case .move:
      #"{"op":"register","app":"\#(app)","platform":"\#(platform == .fcm ? "fcm" : "apns")","token":"\#(token)","installation":"\#(installation)"}"#
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
