import PushCore

public struct DeviceMark: Equatable, Sendable {
  public enum Verdict: Equatable, Sendable {
    /// The app is gone since `since` (Unix milliseconds): the provider's time or, if it gives none, the time of the request.
    case gone(since: Int64)
    /// Refused for a reason that a wrong setting can cause.
    case suspect
  }
  public var app: [UInt8]
  public var platform: Platform
  public var token: [UInt8]
  /// True for a mark on a live activity's token, false for a mark on a device's own token. It has no effect on the other sort.
  public var isForActivity: Bool
  public var verdict: Verdict
  /// The provider's reason, for people: `Unregistered`, `BadDeviceToken`.
  public var reason: [UInt8]

  /// Of a gone app; nil for a suspect token.
  var goneSince: Int64? { if case .gone(let since) = verdict { since } else { nil } }

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

public enum MarkOutcome: Equatable, Sendable {
  /// Marked now. The registration is for the feedback.
  case marked(registration: [UInt8])
  /// The token was registered after the provider's time, so it is unchanged.
  case registeredSince(registration: [UInt8])
  /// It already had this mark, or a suspect mark was for a gone token.
  case unchanged(registration: [UInt8])
  case unknown
  /// Another writer is changing the device. Mark it again later.
  case busy
}
