/// One dead or doubtful token, for those who prune: the body of a message on `push.feedback`.
public struct FeedbackEvent: Sendable {
  /// `notRegistered`, `invalidRegistration` or `mismatchSenderID`.
  public var event: PushError
  public var app: [UInt8]
  public var platform: Platform
  /// The provider's token.
  public var token: [UInt8]
  /// The registry's id of the device, when it was sent to by one.
  public var registration: [UInt8]?
  /// The provider's word.
  public var reason: String
  /// The HTTP status.
  public var status: Int
  /// Unix milliseconds, the provider's own time: prune only a token registered before it.
  public var invalidSince: Int64?
  public var messageID: [UInt8]
  /// Unix milliseconds.
  public var observedAt: Int64

  public init(
    event: PushError, app: [UInt8], platform: Platform, token: [UInt8], registration: [UInt8]? = nil, reason: String,
    status: Int, invalidSince: Int64? = nil, messageID: [UInt8], observedAt: Int64
  ) {
    self.event = event
    self.app = app
    self.platform = platform
    self.token = token
    self.registration = registration
    self.reason = reason
    self.status = status
    self.invalidSince = invalidSince
    self.messageID = messageID
    self.observedAt = observedAt
  }

  /// What follows from an answer for a device; nil when it says nothing against the token.
  public init?(
    _ meaning: ReplyMeaning, app: [UInt8], platform: Platform, token: [UInt8], registration: [UInt8]?, messageID: [UInt8],
    observedAt: Int64
  ) {
    guard meaning.reaction.isFeedback, let code = meaning.reaction.code else { return nil }
    self.init(
      event: code, app: app, platform: platform, token: token, registration: registration, reason: meaning.reason,
      status: meaning.status, invalidSince: meaning.invalidSince, messageID: messageID, observedAt: observedAt)
  }

  /// The message's body: one JSON object, members always all there and in this order.
  public func json() -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(320 + token.count)
    body.append(contentsOf: #"{"event":"#.utf8)
    body.appendSafeJSONString(event.rawValue)
    body.append(contentsOf: #","app":"#.utf8)
    body.appendSafeJSONString(app)
    body.append(contentsOf: (platform == .apns ? #","platform":"apns","token":"# : #","platform":"fcm","token":"#).utf8)
    body.appendSafeJSONString(token)
    body.append(contentsOf: #","registration":"#.utf8)
    if let registration { body.appendSafeJSONString(registration) } else { body.append(contentsOf: "null".utf8) }
    body.append(contentsOf: #","reason":"#.utf8)
    body.appendSafeJSONString(reason)
    body.append(contentsOf: #","status":"#.utf8)
    body.appendDecimal(status)
    body.append(contentsOf: #","invalid_since":"#.utf8)
    if let invalidSince { body.appendJSONTime(invalidSince) } else { body.append(contentsOf: "null".utf8) }
    body.append(contentsOf: #","message_id":"#.utf8)
    body.appendSafeJSONString(messageID)
    body.append(contentsOf: #","observed_at":"#.utf8)
    body.appendJSONTime(observedAt)
    body.append(0x7D)
    return body
  }
}

extension [UInt8] {
  /// A quoted RFC 3339 time of Unix milliseconds.
  mutating func appendJSONTime(_ milliseconds: Int64) {
    append(0x22)
    Timestamp.append(milliseconds, to: &self)
    append(0x22)
  }
}
