import AMQP

/// One request of the workload.
struct Request {
  enum Audience {
    /// Devices with their platforms. No other request names them, but for those with a collapse key.
    case tokens([String])
    /// A topic, user or group, by how a request names it, and the tokens of its devices.
    case registered(to: String, members: [String])
  }

  var number: Int
  var app: Int
  var audience: Audience
  /// Seconds; nil for the default of four weeks.
  var lifetime: Int?
  var collapseKey: String?
  /// Its pushes bear each device's counter. Only for devices of the registry.
  var countsBadge = false
  /// `high` or `normal`.
  var lane: String
  /// Unix milliseconds.
  var publishedAt: Int64
  /// The application's sender whose credential is meant; nil for the application's own.
  var sender: Scenario.Sender?
  /// The result goes to the backend's own queue as well.
  var wantsReply = false
  /// Headers that only workers write; none of them counts on what producers publish.
  var forged = FieldTable()

  /// Requests to several applications may have the same id and body.
  var messageID: String
  /// What the books know it by.
  var id: String { "\(Scenario.app(app))/\(messageID)" }

  var deadline: Int64 { publishedAt + Int64(lifetime.map { $0 == 0 ? 10_000 : $0 * 1000 } ?? 2_419_200_000) }

  func names(_ token: String) -> Bool {
    switch audience {
    case .tokens(let tokens): tokens.contains { FinalAudit.own($0) == token }
    case .registered(_, let members): members.contains(token)
    }
  }

  /// Goes to the same topic, user or group as another one.
  func hasAudience(of other: Request) -> Bool {
    guard case .registered(let to, _) = audience, case .registered(to, _) = other.audience else { return false }
    return app == other.app && sender == other.sender
  }

  /// Of a push type whose topic the credential lacks.
  var lacksTopic = false
  /// Nobody is to get it.
  var isRefused: Bool { sender == .unknown || lacksTopic }

  private var body: String {
    let target =
      switch audience {
      case .tokens(let tokens) where tokens.count == 1: #""to":"\#(tokens[0])""#
      case .tokens(let tokens): #""registration_ids":[\#(tokens.map { "\"\($0)\"" }.joined(separator: ","))]"#
      case .registered(let to, _): #""to":"\#(to)""#
      }
    let life = lifetime.map { #","time_to_live":\#($0)"# } ?? ""
    let key = collapseKey.map { #","collapse_key":"\#($0)""# } ?? ""
    let badge = countsBadge ? #","badge":"auto""# : ""
    let type = lacksTopic ? #","apns":{"headers":{"apns-push-type":"voip"}}"# : ""
    return #"{\#(target)\#(life)\#(key)\#(type),"data":{"request":"\#(messageID)"},"notification":{"body":"b"\#(badge)}}"#
  }

  var outgoing: Outgoing {
    var properties = BasicProperties()
    properties.deliveryMode = 2
    properties.userID = Array(Scenario.user.utf8)
    properties.contentType = Array("application/json".utf8)
    properties.appID = Array(Scenario.app(app).utf8)
    properties.messageID = Array(messageID.utf8)
    properties.timestamp = UInt64(publishedAt / 1000)
    properties.headers = forged
    if let sender { properties.headers.append("x-push-sender", .text(sender.rawValue)) }
    if wantsReply {
      properties.replyTo = Array(Producer.replies.utf8)
      properties.correlationID = Array(id.utf8)
    }
    return Outgoing(exchange: "push.send", routingKey: lane, properties: properties, body: body)
  }
}
