/// Refuses a live activity's token where the push would go to it more than once.
extension RequestReader {
  /// The token is one device's: for each of several, the same push would go to it once more.
  func checkActivity(_ request: SendRequest) throws(Rejection) {
    guard let token = request.apns(.liveActivityToken) else { return }
    switch request.targets {
    case .one(let target) where target.isOneDevice: return
    case .list(let targets) where targets.count == 1 && targets[0].isOneDevice: return
    case .one, .list, .condition:
      throw refusal(token, .invalidParameters, "expected one device as the request's target, an activity is on one")
    }
  }
}

extension Target {
  /// It names one device, or would if it were right.
  fileprivate var isOneDevice: Bool {
    switch self {
    case .apns, .fcm, .registration, .invalid: true
    default: false
    }
  }
}
