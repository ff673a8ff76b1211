import HTTP2
import PushCore

/// The scripted handling of one request.
public struct Step: Sendable, Equatable {
  /// The status of the answer; nil for the normal answer.
  public var status: Int?
  /// APNs: the `reason`. FCM: the `errorCode`, or the `status` of an error without one. Web push: as the
  /// vendor names it: Mozilla's and ntfy's code, Apple's `reason`, FCM's title, WNS's description.
  public var reason: String?
  /// For APNs' status 410: the time in Unix milliseconds at which the token became invalid.
  public var timestamp: Int64?
  /// Value of the `retry-after` header: seconds or any text.
  public var retryAfter: String?
  /// Replaces the body that status and reason would give.
  public var body: String?
  public var fault: Fault?
  /// New limit of the connection's streams.
  public var streams: Int?
  public var delayMilliseconds: Int64 = 0
  /// Number of requests for this step. Nil means 1 in a sequence, and all for a single step.
  public var times: Int?
  /// Apply the step only to each n-th request that reaches it. The others get the normal answer.
  public var every: Int?

  public init(status: Int? = nil, reason: String? = nil) {
    self.status = status
    self.reason = reason
  }

  public enum Fault: Sendable, Equatable {
    /// GOAWAY. The request itself is answered if `lastStream` covers it.
    case goAway(GoAwayPlan)
    /// RST_STREAM with REFUSED_STREAM.
    case refuse
    case stall
    case reset(ErrorCode)
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

    /// True if the request is answered after the fault.
    var hasAnswer: Bool {
      guard case .goAway(let plan) = self else { return false }
      return plan.lastStream == .this || plan.lastStream == .max
    }

    func strike(_ connection: any SimulatedConnection, _ stream: Int32) {
      switch self {
      case .stall: break
      case .refuse: connection.reset(stream, .refusedStream)
      case .reset(let code): connection.reset(stream, code)
      case .close: connection.abort()
      case .goAway(let plan):
        let last: Int32 =
          switch plan.lastStream {
          case .this: stream
          case .previous: max(stream - 2, 0)
          case .none: 0
          case .max: .max
          }
        let debugData = plan.reason.map { (["reason": $0] as JSONObject).line } ?? []
        connection.goAway(lastStreamID: last, code: plan.code, debugData: debugData)
      }
    }
  }

  public struct GoAwayPlan: Sendable, Equatable {
    /// The stream that the GOAWAY names as the last processed one.
    public enum LastStream: String, Sendable { case this, previous, none, max }
    public var lastStream = LastStream.this
    public var code = ErrorCode.noError
    /// Sent as `{"reason": …}`. Nil leaves the debug data empty.
    public var reason: String?

    public init() {}
  }
}
