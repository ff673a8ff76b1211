/// The error codes of results and of the header `x-push-error`: GCM's own (server reference, table of downstream error
/// responses), and additional codes where GCM has none.
public enum PushError: String, CaseIterable, Sendable {
  /// The body isn't one well-formed JSON object.
  case invalidJSON = "InvalidJSON"
  case missingRegistration = "MissingRegistration"
  /// The target has a wrong form, or the provider refuses it, for example because of the wrong environment.
  case invalidRegistration = "InvalidRegistration"
  /// The app was removed from the device.
  case notRegistered = "NotRegistered"
  /// `restricted_package_name` isn't the app's name.
  case invalidPackageName = "InvalidPackageName"
  /// The token belongs to another sender or topic.
  case mismatchSenderID = "MismatchSenderId"
  case messageTooBig = "MessageTooBig"
  /// A key of `data` is reserved.
  case invalidDataKey = "InvalidDataKey"
  case invalidTTL = "InvalidTtl"
  /// A name is unknown, a type is wrong, or a value is out of range.
  case invalidParameters = "InvalidParameters"
  /// The provider credential is missing, expired or refused.
  case invalidAPNsCredential = "InvalidApnsCredential"
  /// Could not be processed in time; may be sent again.
  case unavailable = "Unavailable"
  /// An error inside the fleet or the provider.
  case internalServerError = "InternalServerError"
  case deviceMessageRateExceeded = "DeviceMessageRateExceeded"
  case topicsMessageRateExceeded = "TopicsMessageRateExceeded"
  /// The request expired before it could be sent.
  case expired = "Expired"
  case cancelled = "Cancelled"
  /// The producer has no right to use this application, topic or result queue.
  case notAllowed = "NotAllowed"
  /// Nothing in the request is for a device of this platform.
  case nothingForPlatform = "NothingForPlatform"
  /// The push was sent, but no answer came: it may have been delivered.
  case unknown = "Unknown"
  /// A newer request with the same collapse key replaced this one while it waited.
  case collapsed = "Collapsed"

  /// A permanent number for compact records. 0 means "no error".
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

  /// True if the push was withdrawn before it was sent. It counts neither as failed nor as a push to deliver.
  public var isWithdrawn: Bool { self == .collapsed || self == .cancelled }

  /// Outcomes with a dead letter only if an operator enables it.
  public static let withOptionalLetter: [PushError] = [.expired, .collapsed, .nothingForPlatform]

  public init?(code: UInt8) {
    guard let error = Self.allCases.first(where: { $0.code == code }) else { return nil }
    self = error
  }
}

/// Permanently refuses a request or one of its targets. It becomes an outcome.
public struct Rejection: Error, Equatable, Sendable, CustomStringConvertible {
  public var code: PushError
  /// Place and rule: `notification.title: expected a string, found a number at byte 57`. Never contains a device token; at most
  /// a short, escaped excerpt of the input.
  public var reason: String

  public init(_ code: PushError, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  public var description: String { "\(code.rawValue): \(reason)" }
}
