import AMQP
import PushCore

/// A change of the registry by a backend, for a device that no request uses.
struct RegistryOrder {
  enum Operation: String, CaseIterable {
    case register, unregister, subscribe, unsubscribe
    /// The installation registers another token.
    case move
  }

  var number: Int
  var app: Int
  /// Number of the device among those that no request uses.
  var device: Int
  var operation: Operation
  /// Number of the token that the installation registers.
  var variant = 0
  /// Those of the application's browsers.
  var services: [PushService] = []

  var platform: Platform {
    let platforms: [Platform] = services.isEmpty ? [.apns, .fcm] : [.apns, .fcm, .webpush]
    return platforms[device % platforms.count]
  }
  var token: String {
    let number = operation == .move ? 5_100 + 10 * device + variant : 5_000 + device
    return Workload.token(platform, app: app, number: number, at: services)
  }
  var installation: String { "moving-\(device)" }
  var id: String { "change-\(number)" }
  static let topic = "news"

  private var reference: String { Workload.reference(token) }

  private var registered: String {
    let device =
      platform == .webpush
      ? #""subscription":\#(String(decoding: PushService.subscription(token).json, as: UTF8.self))"# : #""token":"\#(token)""#
    return #""platform":"\#(platform.word)",\#(device)"#
  }

  private var body: String {
    let app = Scenario.app(app)
    return switch operation {
    case .register:
      #"{"op":"register","app":"\#(app)",\#(registered)}"#
    case .move:
      #"{"op":"register","app":"\#(app)",\#(registered),"installation":"\#(installation)"}"#
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
    return Outgoing(exchange: "", routingKey: OutcomeRecorder.registryQueue, properties: properties, body: body)
  }
}
