/// Refuses a live activity's token unless the target is one device. Otherwise the push would go to the token several times.
extension RequestReader {
  func checkActivity(_ request: SendRequest) throws(Rejection) {
    guard let token = request.apns(.liveActivityToken) else { return }
    let targets = request.targets.named
    if targets.count == 1, targets[0].isOneDevice { return }
    throw refusal(token, .invalidParameters, "expected one device as the request's target, an activity is on one")
  }
}

extension Target {
  /// True also for an invalid target.
  fileprivate var isOneDevice: Bool {
    switch self {
    case .apns, .fcm, .webpush, .registration, .invalid: true
    default: false
    }
  }
}
