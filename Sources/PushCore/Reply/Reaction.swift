/// What an answer means for the one device it concerns. The outcomes are those of docs/outcomes.md: feedback, dead letter, ladder.
public enum Reaction: Equatable, Sendable {
  /// The provider took it.
  case delivered
  /// Never again: a dead letter with this code. Says nothing about the token.
  case drop(PushError)
  /// The token is dead: feedback with this code (`NotRegistered`), no dead letter.
  case gone(PushError)
  /// The token doesn't fit this app, environment or sender: feedback with this code **and** a dead letter, so that a wrong
  /// configuration can be fixed and the requests replayed.
  case suspect(PushError)
  /// Transient: to the ladder; a dead letter with this code when attempts or time to live are used up.
  case retry(RetryClass, PushError)
  /// Refused for what is said of the credential, its topic or its project, whatever the push: it counts as not sent and waits until
  /// the provider takes it. The code is what a push ends with that can't wait.
  case credential(PushError)

  /// The GCM code that the outcome carries; nil when delivered.
  public var code: PushError? {
    switch self {
    case .delivered: nil
    case .drop(let code), .gone(let code), .suspect(let code), .retry(_, let code), .credential(let code): code
    }
  }

  /// Whether a feedback event is published.
  public var isFeedback: Bool {
    switch self {
    case .gone, .suspect: true
    case .delivered, .drop, .retry, .credential: false
    }
  }
}

/// What an answer means for the connection that it came on, and for the credential behind it.
public enum ConnectionReaction: String, Equatable, Sendable, CaseIterable {
  case keep
  /// Drain this connection and open another.
  case replace
  /// Mint a token and replace the connection: APNs goes on refusing the new token on the old connection.
  case refreshTokenAndReplace
  /// Fetch an access token; the connection stays.
  case refreshToken
  /// Mint nothing before the provider's twenty minutes are over, and send nothing but a probe now and then.
  case keepTokenAndWait
  /// Send nothing but a probe now and then until the provider takes the credential.
  case stopCredential
  /// As `stopCredential` where the topic is the app's own; a topic that the request chose is its own affair: the push is dropped.
  case stopTopic
  /// As `stopCredential` as long as the provider has taken no push; where it takes others, this one is dropped.
  case stopProject
}

/// An answer, understood.
public struct ReplyMeaning: Equatable, Sendable {
  public var reaction: Reaction
  /// The provider's word (`Unregistered`, `QUOTA_EXCEEDED`) or, without one, `HTTP 502`; at most 200 printable ASCII characters.
  public var reason: String
  /// The HTTP status.
  public var status: Int
  /// Unix milliseconds: when the provider found the token dead. Prune only what was registered before.
  public var invalidSince: Int64?
  /// Seconds, clamped to `RetryAfter.range`.
  public var retryAfter: Int?
  public var connection: ConnectionReaction
  /// A person has to look: configuration, or a fault of ours.
  public var alarm: Bool

  public init(
    reaction: Reaction, reason: String, status: Int, invalidSince: Int64? = nil, retryAfter: Int? = nil,
    connection: ConnectionReaction = .keep, alarm: Bool = false
  ) {
    self.reaction = reaction
    self.reason = reason
    self.status = status
    self.invalidSince = invalidSince
    self.retryAfter = retryAfter
    self.connection = connection
    self.alarm = alarm
  }

  static let delivered = ReplyMeaning(reaction: .delivered, reason: "", status: 200)
}
