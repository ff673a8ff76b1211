/// A request, or one device of it, that will not be tried again: the headers of a message on `push.dead`.
public struct DeadLetter: Sendable {
  public var error: PushError
  /// The provider's or the parser's own words.
  public var reason: String
  /// The provider's HTTP status; nil when none was asked.
  public var status: Int?
  /// How often it was tried; 0 when it never left.
  public var attempts: Int
  /// Unix milliseconds.
  public var failedAt: Int64

  public init(error: PushError, reason: String, status: Int? = nil, attempts: Int, failedAt: Int64) {
    self.error = error
    self.reason = reason
    self.status = status
    self.attempts = attempts
    self.failedAt = failedAt
  }

  public init(_ rejection: Rejection, attempts: Int = 0, failedAt: Int64) {
    self.init(error: rejection.code, reason: rejection.reason, attempts: attempts, failedAt: failedAt)
  }

  public enum Value: Sendable, Equatable {
    case text([UInt8])
    case number(Int64)
  }

  /// Tells a dead letter, and what was replayed of one.
  public static let errorHeader = "x-push-error"

  /// In this order; `x-push-status` only where a provider has answered.
  public var headers: [(name: String, value: Value)] {
    var headers: [(name: String, value: Value)] = [
      (Self.errorHeader, .text(Array(error.rawValue.utf8))), ("x-push-reason", .text(Self.bounded(reason))),
    ]
    if let status { headers.append(("x-push-status", .number(Int64(status)))) }
    headers.append(("x-push-attempts", .number(Int64(attempts))))
    headers.append(("x-push-failed-at", .text(Timestamp.text(failedAt))))
    return headers
  }

  /// Headers must not make a message larger without bound.
  static let longestReason = 512

  /// At most `longestReason` bytes, ended on a character's boundary; control characters become spaces.
  static func bounded(_ reason: String) -> [UInt8] {
    var text: [UInt8] = []
    for scalar in reason.unicodeScalars {
      let bytes = Array(String(scalar).utf8)
      if text.count + bytes.count > longestReason { break }
      let isControl = scalar.value < 0x20 || 0x7F...0x9F ~= scalar.value
      if isControl { text.append(0x20) } else { text.append(contentsOf: bytes) }
    }
    return text
  }

  /// How `to` names a broadcast channel of APNs.
  public static func target(channel: [UInt8]) -> [UInt8] { Array("apns-channel:".utf8) + channel }

  /// How `to` names one device of a provider, or topics of FCM's, without the registry.
  public static func target(_ platform: Platform, token: [UInt8]) -> [UInt8] {
    if platform == .fcm, FCMAddress(token[...]) == .installation { return token }
    return Array((platform == .apns ? "apns:" : "fcm:").utf8) + token
  }
}
