import AMQP

struct Request {
  enum Audience {
    /// Devices with their platforms. Only requests with a collapse key share devices.
    case tokens([String])
    /// A topic, user or group as named in a request, and the tokens of its devices.
    case registered(to: String, members: [String])
  }

  var number: Int
  var app: Int
  var audience: Audience
  /// Seconds; nil for the default of four weeks.
  var lifetime: Int?
  var collapseKey: String?
  /// True if the pushes carry each device's counter. Only for registered devices.
  var countsBadge = false
  /// `high` or `normal`.
  var lane: String
  /// Unix milliseconds.
  var publishedAt: Int64
  /// The sender whose credential is used; nil for the application's credential.
  var sender: Scenario.Sender?
  /// True if the result also goes to the backend's queue.
  var wantsReply = false
  /// Headers that only workers may write. Workers must ignore them in producers' messages.
  var forged = FieldTable()

  /// Requests to several applications may have the same id and body.
  var messageID: String
  var id: String { "\(Scenario.app(app))/\(messageID)" }

  var deadline: Int64 { publishedAt + Int64(lifetime.map { $0 == 0 ? 10_000 : $0 * 1000 } ?? 2_419_200_000) }

  func names(_ token: String) -> Bool {
    switch audience {
    case .tokens(let tokens): tokens.contains { FinalAudit.own($0) == token }
    case .registered(_, let members): members.contains(token)
    }
  }

  /// True if the other request goes to the same topic, user or group.
  func hasAudience(of other: Request) -> Bool {
    guard case .registered(let to, _) = audience, case .registered(to, _) = other.audience else { return false }
    return app == other.app && sender == other.sender
  }

  /// True for a push type whose topic the credential lacks.
  var lacksTopic = false
  /// True if no device may get the request.
  var isRefused: Bool { sender == .unknown || lacksTopic }

  private var body: String {
    let target =
      switch audience {
      case .tokens(let tokens) where tokens.count == 1: #""to":"\#(Workload.target(FinalAudit.own(tokens[0])))""#
      case .tokens(let tokens):
        #""registration_ids":[\#(tokens.map { "\"\(Workload.target(FinalAudit.own($0)))\"" }.joined(separator: ","))]"#
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
