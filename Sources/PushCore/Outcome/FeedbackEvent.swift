/// One dead, doubtful, replaced or silent token, for those who prune: the body of a message on `push.feedback`.
public struct FeedbackEvent: Sendable {
  /// The raw value is the word on the wire.
  public enum Event: String, CaseIterable, Sendable {
    /// The token is dead.
    case notRegistered = "NotRegistered"
    /// The token, its environment or its app is wrong.
    case invalidRegistration = "InvalidRegistration"
    case mismatchSenderID = "MismatchSenderId"
    /// The installation has registered another token.
    case moved = "Moved"
    /// The device hasn't registered for longer than the configuration allows.
    case stale = "Stale"

    /// What a provider's answer says; nil for a code that says nothing against a token.
    init?(_ code: PushError) { self.init(rawValue: code.rawValue) }
  }

  public var event: Event
  public var app: [UInt8]
  public var platform: Platform
  /// The provider's token.
  public var token: [UInt8]
  /// What has replaced it.
  public var newToken: [UInt8]?
  /// The registry's id of the device, when it was sent to by one.
  public var registration: [UInt8]?
  /// The provider's word.
  public var reason: String
  /// The HTTP status; 0 when no provider was asked.
  public var status: Int
  /// Unix milliseconds, the provider's own time: prune only a token registered before it.
  public var invalidSince: Int64?
  public var messageID: [UInt8]
  /// Unix milliseconds.
  public var observedAt: Int64
  /// What is known of the token besides.
  public var details: Details

  /// What helps to find the right row; absent where it isn't known.
  public struct Details: Equatable, Sendable {
    /// Which of Apple's services the token belongs to: `production` or `sandbox`.
    public var environment: String?
    public var sender: [UInt8]?
    public var installation: [UInt8]?
    public var user: [UInt8]?
    /// The push that was answered so.
    public var apnsID: [UInt8]?
    /// What the token is for: a ``TokenKind``, or the push type.
    public var kind: String?

    public init(
      environment: String? = nil, sender: [UInt8]? = nil, installation: [UInt8]? = nil, user: [UInt8]? = nil,
      apnsID: [UInt8]? = nil, kind: String? = nil
    ) {
      self.environment = environment
      self.sender = sender
      self.installation = installation
      self.user = user
      self.apnsID = apnsID
      self.kind = kind
    }
  }

  public init(
    event: Event, app: [UInt8], platform: Platform, token: [UInt8], newToken: [UInt8]? = nil, registration: [UInt8]? = nil,
    reason: String, status: Int, invalidSince: Int64? = nil, messageID: [UInt8], observedAt: Int64, details: Details = Details()
  ) {
    self.event = event
    self.app = app
    self.platform = platform
    self.token = token
    self.newToken = newToken
    self.registration = registration
    self.reason = reason
    self.status = status
    self.invalidSince = invalidSince
    self.messageID = messageID
    self.observedAt = observedAt
    self.details = details
  }

  /// What follows from an answer for a device; nil when it says nothing against the token.
  public init?(
    _ meaning: ReplyMeaning, app: [UInt8], platform: Platform, token: [UInt8], registration: [UInt8]?, messageID: [UInt8],
    observedAt: Int64, details: Details = Details()
  ) {
    guard meaning.reaction.isFeedback, let event = meaning.reaction.code.flatMap(Event.init) else { return nil }
    self.init(
      event: event, app: app, platform: platform, token: token, registration: registration, reason: meaning.reason,
      status: meaning.status, invalidSince: meaning.invalidSince, messageID: messageID, observedAt: observedAt, details: details
    )
  }

  /// The message's body: one JSON object, members in this order, and all of them there but for the replacement and the details.
  public func json() -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(480 + token.count)
    body.append(contentsOf: #"{"event":"#.utf8)
    body.appendSafeJSONString(event.rawValue)
    body.append(contentsOf: #","app":"#.utf8)
    body.appendSafeJSONString(app)
    body.append(contentsOf: (platform == .apns ? #","platform":"apns","token":"# : #","platform":"fcm","token":"#).utf8)
    body.appendSafeJSONString(token)
    body.appendKnown(#","new_token":"#, newToken)
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
    body.appendKnown(#","environment":"#, details.environment.map { Array($0.utf8) })
    body.appendKnown(#","sender":"#, details.sender)
    body.appendKnown(#","installation":"#, details.installation)
    body.appendKnown(#","user":"#, details.user)
    body.appendKnown(#","apns_id":"#, details.apnsID)
    body.appendKnown(#","kind":"#, details.kind.map { Array($0.utf8) })
    body.append(0x7D)
    return body
  }
}

extension [UInt8] {
  /// A member that is left out where its value isn't known.
  fileprivate mutating func appendKnown(_ member: String, _ value: [UInt8]?) {
    guard let value else { return }
    append(contentsOf: member.utf8)
    appendSafeJSONString(value)
  }

  /// A quoted RFC 3339 time of Unix milliseconds.
  mutating func appendJSONTime(_ milliseconds: Int64) {
    append(0x22)
    Timestamp.append(milliseconds, to: &self)
    append(0x22)
  }
}
