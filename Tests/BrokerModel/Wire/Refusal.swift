/// The broker's reason to close a channel or connection, in RabbitMQ's words.
struct Refusal: Error, Equatable {
  var code: UInt16
  var text: String
  /// The refused method; zeros if there is none.
  var classID: UInt16 = 0
  var methodID: UInt16 = 0
  /// True if the connection is closed, false for the channel only.
  var closesConnection: Bool

  private init(_ code: UInt16, _ name: String, _ text: String, closesConnection: Bool) {
    self.code = code
    self.text = "\(name) - \(text)"
    self.closesConnection = closesConnection
  }

  static func accessRefused(_ text: String) -> Refusal { Refusal(403, "ACCESS_REFUSED", text, closesConnection: false) }
  static func notFound(_ text: String) -> Refusal { Refusal(404, "NOT_FOUND", text, closesConnection: false) }
  static func resourceLocked(_ text: String) -> Refusal { Refusal(405, "RESOURCE_LOCKED", text, closesConnection: false) }
  static func preconditionFailed(_ text: String) -> Refusal {
    Refusal(406, "PRECONDITION_FAILED", text, closesConnection: false)
  }

  static func connectionForced(_ text: String) -> Refusal { Refusal(320, "CONNECTION_FORCED", text, closesConnection: true) }
  static func loginRefused(_ text: String) -> Refusal { Refusal(403, "ACCESS_REFUSED", text, closesConnection: true) }
  static func frameError(_ text: String) -> Refusal { Refusal(501, "FRAME_ERROR", text, closesConnection: true) }
  static func syntaxError(_ text: String) -> Refusal { Refusal(502, "SYNTAX_ERROR", text, closesConnection: true) }
  static func commandInvalid(_ text: String) -> Refusal { Refusal(503, "COMMAND_INVALID", text, closesConnection: true) }
  static func channelError(_ text: String) -> Refusal { Refusal(504, "CHANNEL_ERROR", text, closesConnection: true) }
  static func unexpectedFrame(_ text: String) -> Refusal { Refusal(505, "UNEXPECTED_FRAME", text, closesConnection: true) }
  static func notAllowed(_ text: String) -> Refusal { Refusal(530, "NOT_ALLOWED", text, closesConnection: true) }
  static func notImplemented(_ text: String) -> Refusal { Refusal(540, "NOT_IMPLEMENTED", text, closesConnection: true) }
  static func internalError(_ text: String) -> Refusal { Refusal(541, "INTERNAL_ERROR", text, closesConnection: true) }

  /// A channel error that no client has caused.
  static func of(_ code: UInt16, _ text: String) -> Refusal {
    let name = [403: "ACCESS_REFUSED", 404: "NOT_FOUND", 405: "RESOURCE_LOCKED", 406: "PRECONDITION_FAILED"][code]
    return Refusal(code, name ?? "INTERNAL_ERROR", text, closesConnection: false)
  }

  /// Cuts off everything after 255 bytes.
  var shortText: [UInt8] { Array(text.utf8.prefix(255)) }
}
