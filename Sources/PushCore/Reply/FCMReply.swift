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
    plainName(body) ?? ErrorBody.document(body)?.string("name")
  }

  /// Reads `{ "name": "…" }`, FCM's usual answer, without parsing it as JSON; nil for any other form.
  private static func plainName(_ body: [UInt8]) -> [UInt8]? {
    let span = body.span
    var index = 0
    func skipSpace() {
      while index < span.count, span[index] == 0x20 || span[index] == 0x0A || span[index] == 0x0D { index += 1 }
    }
    func take(_ byte: UInt8) -> Bool {
      skipSpace()
      guard index < span.count, span[index] == byte else { return false }
      index += 1
      return true
    }
    guard take(UInt8(ascii: "{")), take(UInt8(ascii: "\"")) else { return nil }
    for byte in "name\"".utf8 {
      guard index < span.count, span[index] == byte else { return nil }
      index += 1
    }
    guard take(UInt8(ascii: ":")), take(UInt8(ascii: "\"")) else { return nil }
    let start = index
    while index < span.count, span[index] != UInt8(ascii: "\"") {
      guard span[index] > 0x20, span[index] < 0x7F, span[index] != UInt8(ascii: "\\") else { return nil }
      index += 1
    }
    let end = index
    guard take(UInt8(ascii: "\"")), take(UInt8(ascii: "}")) else { return nil }
    skipSpace()
    return index == span.count ? Array(body[start..<end]) : nil
  }

  private static func meaning(status: Int, _ error: FCMErrorBody) -> ReplyMeaning {
    var row: ReplyRow?
    if let code = error.errorCode { row = byErrorCode[code] }
    if row == nil, let word = error.status { row = byStatusWord[word] }
    guard let row, row.status / 100 == status / 100 else {
      return statusRows.judge(status, error.errorCode ?? error.status)
    }
    var meaning = row.meaning(status: status)
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

  private static let byErrorCode = Dictionary(
    errorCodeRows.map { ($0.reason, $0) }, uniquingKeysWith: { first, _ in first })
  private static let byStatusWord = Dictionary(
    statusWordRows.map { ($0.reason, $0) }, uniquingKeysWith: { first, _ in first })
}
