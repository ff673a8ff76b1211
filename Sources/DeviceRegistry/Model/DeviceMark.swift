import PushCore

/// What a provider's answer says of a token.
public struct DeviceMark: Equatable, Sendable {
  public enum Verdict: Equatable, Sendable {
    /// The app is gone since `since`: Unix milliseconds, the provider's own time, or the time at which the request was sent where the
    /// provider tells none.
    case gone(since: Int64)
    /// Refused in a way that a wrong setting can cause.
    case suspect
  }
  public var app: [UInt8]
  public var platform: Platform
  public var token: [UInt8]
  /// It is meant for an activity's token, and never for a device's own; otherwise the other way round.
  public var isForActivity: Bool
  public var verdict: Verdict
  /// The provider's word, kept for people: `Unregistered`, `BadDeviceToken`.
  public var reason: [UInt8]

  public init(app: [UInt8], platform: Platform, token: [UInt8], isForActivity: Bool = false, verdict: Verdict, reason: [UInt8])
  {
    self.app = app
    self.platform = platform
    self.token = token
    self.isForActivity = isForActivity
    self.verdict = verdict
    self.reason = reason
  }
}

/// What became of a mark.
public enum MarkOutcome: Equatable, Sendable {
  /// Marked now. The registration is for the feedback.
  case marked(registration: [UInt8])
  /// The token was registered after the provider's time: left as it is.
  case registeredSince(registration: [UInt8])
  /// It bore the mark already, or is gone where the mark is a suspicion.
  case unchanged(registration: [UInt8])
  /// No such token.
  case unknown
  /// Somebody else changes the device right now: to be marked again later.
  case busy
}
