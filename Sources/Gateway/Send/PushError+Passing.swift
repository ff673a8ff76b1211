import PushCore

extension PushError {
  /// Who sends it again later may have more luck.
  var isPassing: Bool {
    switch self {
    case .unavailable, .internalServerError, .deviceMessageRateExceeded, .topicsMessageRateExceeded: true
    default: false
    }
  }
}
