/// The meaning of an answer for its device: feedback, dead letter or retry (docs/send/outcomes.md).
public enum Reaction: Equatable, Sendable {
  case delivered
  /// Permanent failure: a dead letter with this code. Says nothing about the token.
  case drop(PushError)
  /// The token is dead: feedback with this code (`NotRegistered`), no dead letter.
  case gone(PushError)
  /// The token doesn't fit this app, environment or sender: feedback with this code **and** a dead letter. The dead letter can
  /// be replayed once the configuration is right.
  case suspect(PushError)
  /// Transient failure: to the retry ladder. A dead letter with this code once attempts or time to live are used up.
  case retry(RetryClass, PushError)
  /// The provider refuses the credential, its topic or its project, whatever the push. The push counts as not sent and waits
  /// until the provider accepts the credential. A push that can't wait ends with this code.
  case credential(PushError)

  /// The GCM code of the outcome; nil if delivered.
  public var code: PushError? {
    switch self {
    case .delivered: nil
    case .drop(let code), .gone(let code), .suspect(let code), .retry(_, let code), .credential(let code): code
    }
  }

  /// True if a feedback event is published.
  public var isFeedback: Bool {
    switch self {
    case .gone, .suspect: true
    case .delivered, .drop, .retry, .credential: false
    }
  }
}

/// The meaning of an answer for its connection and for the credential.
public enum ConnectionReaction: String, Equatable, Sendable, CaseIterable {
  case keep
  case replace
  /// Make a token and replace the connection: on the old connection, APNs keeps refusing the new token.
  case refreshTokenAndReplace
  case refreshToken
  /// Make no token before the provider's twenty minutes are over. Send only occasional probes until then.
  case keepTokenAndWait
  /// Send only occasional probes until the provider accepts the credential.
  case stopCredential
  /// Like `stopCredential` if the topic is the app's own. If the request chose the topic, only this push is dropped.
  case stopTopic
  /// Like `stopCredential` until the provider has accepted a push. After that, only this push is dropped.
  case stopProject
}

public struct ReplyMeaning: Equatable, Sendable {
  public var reaction: Reaction
  /// The provider's word (`Unregistered`, `QUOTA_EXCEEDED`), or `HTTP 502` without one. At most 200 printable ASCII characters.
  public var reason: String
  public var status: Int
  /// When the provider found the token dead, in Unix milliseconds. Prune only tokens registered before.
  public var invalidSince: Int64?
  /// Seconds, clamped to `RetryAfter.range`.
  public var retryAfter: Int?
  public var connection = ConnectionReaction.keep
  /// True if a person must act: the configuration is wrong, or this software has a bug.
  public var alarm = false

  static func delivered(_ status: Int) -> ReplyMeaning { ReplyMeaning(reaction: .delivered, reason: "", status: status) }
}
