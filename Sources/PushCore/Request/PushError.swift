/// The error codes of results and of the header `x-push-error`: GCM's own (server reference, table of downstream error
/// responses), and additional codes where GCM has none. New ones go to the end: databases and retry records have their numbers.
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

  /// The number of the case, from 1, for compact records. 0 means "no error".
  public var code: UInt8 { UInt8(Self.allCases.firstIndex(of: self)! + 1) }

  /// True if the push was withdrawn before it was sent. It counts neither as failed nor as a push to deliver.
  public var isWithdrawn: Bool { self == .collapsed || self == .cancelled }

  /// Outcomes with a dead letter only if an operator enables it.
  public static let withOptionalLetter: [PushError] = [.expired, .collapsed, .nothingForPlatform]

  public init?(code: UInt8) {
    guard Self.allCases.indices.contains(Int(code) - 1) else { return nil }
    self = Self.allCases[Int(code) - 1]
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
