/// The codes by which producers and consumers know a failure: GCM's own (server reference, table of downstream error responses) and,
/// where GCM has no word, ours. The raw value stands in results and in the header `x-push-error`.
public enum PushError: String, CaseIterable, Sendable {
  /// The body isn't one well-formed JSON object.
  case invalidJSON = "InvalidJSON"
  /// The request names no target.
  case missingRegistration = "MissingRegistration"
  /// A target that can't be one, or that the provider doesn't take: wrong form, wrong environment.
  case invalidRegistration = "InvalidRegistration"
  /// The application is gone from the device.
  case notRegistered = "NotRegistered"
  /// `restricted_package_name` isn't the application's name.
  case invalidPackageName = "InvalidPackageName"
  /// The token belongs to another sender or topic.
  case mismatchSenderID = "MismatchSenderId"
  /// Over a size limit.
  case messageTooBig = "MessageTooBig"
  /// A reserved name among the keys of `data`.
  case invalidDataKey = "InvalidDataKey"
  /// `time_to_live` isn't an integer from 0 to 2,419,200.
  case invalidTTL = "InvalidTtl"
  /// An unknown name, a wrong type or a value out of its range.
  case invalidParameters = "InvalidParameters"
  /// The credential for the provider is missing, expired or refused.
  case invalidAPNsCredential = "InvalidApnsCredential"
  /// Could not be processed in time; may be sent again.
  case unavailable = "Unavailable"
  /// A fault inside the fleet or the provider.
  case internalServerError = "InternalServerError"
  /// Too many messages to one device.
  case deviceMessageRateExceeded = "DeviceMessageRateExceeded"
  /// Too many messages to one topic.
  case topicsMessageRateExceeded = "TopicsMessageRateExceeded"
  /// The request's lifetime was over before it could be sent.
  case expired = "Expired"
  /// Withdrawn before it was sent.
  case cancelled = "Cancelled"
  /// The producer may not ask for it: neither for this application, nor for this topic or this queue for results.
  case notAllowed = "NotAllowed"
  /// Nothing in the request is for a device of this platform.
  case nothingForPlatform = "NothingForPlatform"
  /// The push was sent and its answer never came: it may have been delivered.
  case unknown = "Unknown"
  /// A newer request with the same collapse key has taken its place while it waited: it isn't sent any more.
  case collapsed = "Collapsed"

  /// A number that stays the same for ever: for compact records. 0 is left for "no error".
  public var code: UInt8 {
    switch self {
    case .invalidJSON: 1
    case .missingRegistration: 2
    case .invalidRegistration: 3
    case .notRegistered: 4
    case .invalidPackageName: 5
    case .mismatchSenderID: 6
    case .messageTooBig: 7
    case .invalidDataKey: 8
    case .invalidTTL: 9
    case .invalidParameters: 10
    case .invalidAPNsCredential: 11
    case .unavailable: 12
    case .internalServerError: 13
    case .deviceMessageRateExceeded: 14
    case .topicsMessageRateExceeded: 15
    case .expired: 16
    case .cancelled: 17
    case .notAllowed: 18
    case .nothingForPlatform: 19
    case .unknown: 20
    case .collapsed: 21
    }
  }

  /// The push was wanted no more before it was sent. It counts neither as failed nor among those that were to be delivered.
  public var isWithdrawn: Bool { self == .collapsed || self == .cancelled }

  /// Outcomes that leave a dead letter only where an operator asks for it.
  public static let withOptionalLetter: [PushError] = [.expired, .collapsed, .nothingForPlatform]

  private static let byCode = Dictionary(uniqueKeysWithValues: allCases.map { ($0.code, $0) })

  /// The error of a ``code``, or nil.
  public init?(code: UInt8) {
    guard let error = Self.byCode[code] else { return nil }
    self = error
  }
}

/// A request, or one of its targets, that is refused for good. A value, not a fault: it becomes an outcome.
public struct Rejection: Error, Equatable, Sendable, CustomStringConvertible {
  public var code: PushError
  /// Place and rule in words: `notification.title: expected a string, found a number at byte 57`. Never holds a device token, and of
  /// the input at most a short, escaped excerpt.
  public var reason: String

  public init(_ code: PushError, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  public var description: String { "\(code.rawValue): \(reason)" }
}
