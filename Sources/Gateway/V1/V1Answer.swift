import PushCore
import StatusHTTP

/// Answers in the format of FCM's HTTP v1.
struct V1Answer {
  let project: [UInt8]
  /// The request's outcome is published under this id.
  let messageID: [UInt8]
  let isDryRun: Bool
  /// True for a topic, a condition or the whole application: an empty audience is a success.
  var isAudience = false

  func answer(_ outcome: SendService.Outcome) -> HTTPAnswer {
    if let fault = outcome.fault { return ErrorFormat.google.answer(fault) }
    guard case .result(let body) = outcome, let result = WorkerResult(body) else { return success(messageID) }
    return answer(result)
  }

  private func answer(_ result: WorkerResult) -> HTTPAnswer {
    switch result.targets.first {
    case .accepted(let id, _)?: return success(id.isEmpty ? messageID : id)
    case .failed(let code)?: return failure(String(decoding: code, as: UTF8.self))
    case nil where result.success == 0 && !result.failedRegistrations.isEmpty:
      return failure(PushError.unavailable.rawValue)
    // An audience.
    case nil: return success(messageID)
    }
  }

  /// Only the last part of FCM's own message name is used; the project is the sender's.
  private func success(_ id: [UInt8]) -> HTTPAnswer {
    let last = isDryRun ? Array("fake_message_id".utf8) : id.split(separator: UInt8(ascii: "/")).last.map(Array.init) ?? id
    return .json(200, ["name": Array("projects/".utf8) + project + Array("/messages/".utf8) + last])
  }

  private func failure(_ code: String) -> HTTPAnswer {
    // FCM dropped expired messages silently.
    if code == PushError.expired.rawValue { return success(messageID) }
    if isAudience, code == PushError.invalidRegistration.rawValue { return success(messageID) }
    var answer = Self.error(code)
    if PushError(rawValue: code)?.isPassing == true { answer.headers["Retry-After"] = "10" }
    return answer
  }

  private static func error(_ code: String) -> HTTPAnswer {
    switch PushError(rawValue: code) {
    case .notRegistered: .google(404, "NOT_FOUND", "Requested entity was not found.", fcmCode: "UNREGISTERED")
    case .invalidRegistration: V1Send.error(Rejection(.invalidRegistration, ""))
    case .mismatchSenderID: .google(403, "PERMISSION_DENIED", "SenderId mismatch", fcmCode: "SENDER_ID_MISMATCH")
    case .invalidAPNsCredential:
      .google(401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service", fcmCode: "THIRD_PARTY_AUTH_ERROR")
    case .deviceMessageRateExceeded, .topicsMessageRateExceeded:
      .google(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", fcmCode: "QUOTA_EXCEEDED")
    case .unavailable:
      .google(503, "UNAVAILABLE", "The service is currently unavailable.", fcmCode: "UNAVAILABLE")
    case .internalServerError: .google(500, "INTERNAL", "Internal error encountered.", fcmCode: "INTERNAL")
    case .unknown: .google(500, "UNKNOWN", "The message may have been delivered: its provider never answered.")
    case .notAllowed: .google(403, "PERMISSION_DENIED", "The sender may not ask for this.")
    default: .google(400, "INVALID_ARGUMENT", "Request contains an invalid argument: \(code)")
    }
  }
}
