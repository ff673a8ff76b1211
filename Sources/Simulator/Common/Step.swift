import HTTP2

/// What a script has a simulator do with one request.
public struct Step: Sendable, Equatable {
  /// Answered with this status; nil is the normal answer.
  public var status: Int?
  /// APNs: the `reason`. FCM: the `errorCode`, or the `status` of an error without one.
  public var reason: String?
  /// APNs, with 410: when the token was found invalid, in milliseconds.
  public var timestamp: Int64?
  /// Value of a `retry-after` header: seconds or anything else.
  public var retryAfter: String?
  /// Sent in place of the body that status and reason would give.
  public var body: String?
  public var fault: Fault?
  /// The streams that the connection may have from here on.
  public var streams: Int?
  public var delayMilliseconds: Int64 = 0
  /// Requests that this step is for; nil is one in a sequence, and all of them where it stands alone.
  public var times: Int?
  /// Only each so-manieth request that reaches this step is hit; the others are answered normally.
  public var every: Int?

  public init(status: Int? = nil, reason: String? = nil) {
    self.status = status
    self.reason = reason
  }

  public enum Fault: Sendable, Equatable {
    /// GOAWAY; the request itself is answered when `lastStream` covers it.
    case goAway(GoAwayPlan)
    /// RST_STREAM with REFUSED_STREAM.
    case refuse
    /// No answer, ever.
    case stall
    case reset(ErrorCode)
    /// The connection is dropped.
    case close

    var name: String {
      switch self {
      case .goAway: "goaway"
      case .refuse: "refuse"
      case .stall: "stall"
      case .reset: "reset"
      case .close: "close"
      }
    }
  }

  public struct GoAwayPlan: Sendable, Equatable {
    /// Which stream the GOAWAY names as the last one acted upon.
    public enum LastStream: String, Sendable { case this, previous, none, max }
    public var lastStream = LastStream.this
    public var code = ErrorCode.noError
    /// Sent as `{"reason": …}`; nil leaves the debug data empty.
    public var reason: String?

    public init() {}
  }
}
