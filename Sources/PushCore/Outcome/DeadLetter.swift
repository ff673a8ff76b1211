import Wire

/// The headers of a message on `push.dead`: a request, or one of its devices, that will not be retried.
public struct DeadLetter: Sendable {
  public var error: PushError
  public var reason: String
  /// The provider's HTTP status; nil if no provider answered.
  public var status: Int?
  /// Number of attempts; 0 if the request was never sent.
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

  /// Marks dead letters and the requests replayed from them.
  public static let errorHeader = "x-push-error"

  /// In this order. `x-push-status` is present only if a provider has answered.
  public var headers: [(name: String, value: Value)] {
    var headers: [(name: String, value: Value)] = [
      (Self.errorHeader, .text(Array(error.rawValue.utf8))), ("x-push-reason", .text(Self.bounded(reason))),
    ]
    if let status { headers.append(("x-push-status", .number(Int64(status)))) }
    headers.append(("x-push-attempts", .number(Int64(attempts))))
    headers.append(("x-push-failed-at", .text(Timestamp.text(failedAt))))
    return headers
  }

  /// Bytes. Limits the size that the headers add to a message.
  static let longestReason = 512

  /// Cuts to `longestReason` bytes at a character boundary; control characters become spaces.
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

  public static func target(channel: [UInt8]) -> [UInt8] { Array("apns-channel:".utf8) + channel }

  /// The `to` of a device, or of FCM's own topics, without the registry.
  public static func target(_ platform: Platform, token: [UInt8]) -> [UInt8] {
    if platform == .fcm, FCMAddress(token[...]) == .installation { return token }
    let text = platform == .webpush ? WebPushSubscription(token: token).map { Base64URL.encode($0.json) } : token
    return Array("\(platform.word):".utf8) + (text ?? token)
  }
}
