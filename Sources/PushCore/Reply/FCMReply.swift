/// Interprets answers of FCM v1: `{"error": {"code", "message", "status", "details": [{"@type": "…FcmError", "errorCode"}]}}`.
///
/// Order of precedence: errorCode, status, HTTP status. Only UNREGISTERED, SENDER_ID_MISMATCH and an INVALID_ARGUMENT that
/// names the token concern a token. A bare 404 concerns the project.
public enum FCMReply {
  public static func interpret(status: Int, body: [UInt8], retryAfter: [UInt8]? = nil, now: Int64? = nil) -> ReplyMeaning {
    if 200...299 ~= status { return .delivered(status) }
    let error = FCMErrorBody(body)
    var meaning = meaning(status: status, error)
    meaning.retryAfter = retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
    return meaning
  }

  public static func words(for meaning: ReplyMeaning) -> String {
    byErrorCode[meaning.reason]?.words ?? byStatusWord[meaning.reason]?.words ?? statusRows.row(of: meaning.status).words
  }

  /// The `projects/<id>/messages/<message id>` of a success; nil if the body has none.
  public static func messageName(_ body: [UInt8]) -> [UInt8]? {
    ErrorBody.document(body)?.string("name")
  }

  private static func meaning(status: Int, _ error: FCMErrorBody) -> ReplyMeaning {
    let row = error.errorCode.flatMap { byErrorCode[$0] } ?? error.status.flatMap { byStatusWord[$0] }
    var meaning = statusRows.judge(status, error.errorCode ?? error.status, by: row)
    guard let row, row.counts(with: status) else { return meaning }
    switch row.reason {
    case "INVALID_ARGUMENT":
      if error.namesToken {
        meaning.reaction = .suspect(.invalidRegistration)
      } else if error.isTooBig {
        meaning.reaction = .drop(.messageTooBig)
      }
    case "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED":
      if error.concernsDevice { meaning.reaction = .retry(.perDevice, .deviceMessageRateExceeded) }
    default: break
    }
    return meaning
  }

  private static let byErrorCode = errorCodeRows.byReason
  private static let byStatusWord = statusWordRows.byReason
}
