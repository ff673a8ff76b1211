/// Interprets answers of APNs: `{"reason": "Unregistered", "timestamp": 1732137600000}` with a status. A success has no body.
public enum APNsReply {
  /// Never fails. If the body is not JSON, is too large, or has an unknown reason, the status decides.
  /// - Parameter now: Unix milliseconds; nil ignores a `Retry-After` that is a date.
  public static func interpret(status: Int, body: [UInt8], retryAfter: [UInt8]? = nil, now: Int64? = nil) -> ReplyMeaning {
    if 200...299 ~= status { return .delivered(status) }
    let document = ErrorBody.document(body)
    let word = document?.string("reason").map(ErrorBody.word)
    var meaning = statusRows.judge(status, word, by: word.flatMap { byReason[$0] })
    meaning.retryAfter = retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
    if status == 410 { meaning.invalidSince = document.flatMap(timestamp) }
    return meaning
  }

  public static func words(for meaning: ReplyMeaning) -> String {
    byReason[meaning.reason]?.words ?? statusRows.row(of: meaning.status).words
  }

  /// Unix milliseconds, only with 410. A string of digits is accepted too; any other value counts as absent.
  private static func timestamp(_ document: JSONDocument) -> Int64? {
    guard let node = document.value("timestamp", of: document.root) else { return nil }
    let value: Int64? =
      switch document.kind(node) {
      case .number: document.integer(node)
      case .string: Int64(String(decoding: document.string(node), as: UTF8.self))
      default: nil
      }
    guard let value, value > 0, value <= Timestamp.latest else { return nil }
    return value
  }

  private static let byReason = rows.byReason
}
