import PushCore

extension PushError {
  /// True if a later repeat may succeed.
  var isPassing: Bool {
    switch self {
    case .unavailable, .internalServerError, .deviceMessageRateExceeded, .topicsMessageRateExceeded: true
    default: false
    }
  }
}
