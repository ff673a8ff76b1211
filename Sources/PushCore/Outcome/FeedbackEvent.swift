/// The body of a message on `push.feedback`: a token that is dead, suspect, replaced or silent.
public struct FeedbackEvent: Sendable {
  public enum Event: String, CaseIterable, Sendable {
    case notRegistered = "NotRegistered"
    /// The token, its environment or its app is wrong.
    case invalidRegistration = "InvalidRegistration"
    case mismatchSenderID = "MismatchSenderId"
    /// The installation has registered another token.
    case moved = "Moved"
    /// The device hasn't registered for longer than the configuration allows.
    case stale = "Stale"

    /// Nil if the code says nothing against a token.
    init?(_ code: PushError) { self.init(rawValue: code.rawValue) }
  }

  public var event: Event
  public var app: [UInt8]
  public var platform: Platform
  public var token: [UInt8]
  public var newToken: [UInt8]?
  /// The registry's id of the device, if the push was addressed through the registry.
  public var registration: [UInt8]?
  public var reason: String
  /// The HTTP status; 0 if no provider was asked.
  public var status: Int
  /// The provider's own time in Unix milliseconds. Prune a token only if it was registered before.
  public var invalidSince: Int64?
  public var messageID: [UInt8]
  /// Unix milliseconds.
  public var observedAt: Int64
  public var details: Details

  public struct Details: Equatable, Sendable {
    /// The APNs environment of the token: `production` or `sandbox`.
    public var environment: String?
    public var sender: [UInt8]?
    public var installation: [UInt8]?
    public var user: [UInt8]?
    /// The id of the push that got this answer.
    public var apnsID: [UInt8]?
    /// The use of the token: a ``TokenKind``, or the push type. Web push has its own.
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

  /// Nil if the answer says nothing against the token.
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

  /// The body: one JSON object with the members in this order. Only the replacement and the details may be absent. The tokens of
  /// web push are shown as endpoints, by which applications know their subscriptions.
  public func json() -> [UInt8] {
    var event = JSONObjectWriter()
    event.set("event", self.event.rawValue)
    event.set("app", app)
    event.set("platform", platform.word)
    event.set("token", shown(token))
    event.set("new_token", ifKnown: newToken.map(shown))
    event.set("registration", registration)
    event.set("reason", reason)
    event.set("status", Int64(status))
    event.set("invalid_since", time: invalidSince)
    event.set("message_id", messageID)
    event.set("observed_at", time: observedAt)
    event.set("environment", ifKnown: details.environment.map { Array($0.utf8) })
    event.set("sender", ifKnown: details.sender)
    event.set("installation", ifKnown: details.installation)
    event.set("user", ifKnown: details.user)
    event.set("apns_id", ifKnown: details.apnsID)
    event.set("kind", ifKnown: (platform == .webpush ? platform.word : details.kind).map { Array($0.utf8) })
    return event.closed()
  }

  /// The replacement may be of another platform. Only tokens of web push have a zero byte, so others stay as they are.
  private func shown(_ token: [UInt8]) -> [UInt8] { Array(WebPushSubscription.endpoint(of: token[...])) }
}
