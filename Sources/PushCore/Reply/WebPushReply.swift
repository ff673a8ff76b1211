/// Interprets answers of push services (RFC 8030 §5, and what the vendors add). The vendor's word decides, then the HTTP status.
public enum WebPushReply {
  /// The header fields of an answer that decide beside its body.
  public struct Headers: Sendable {
    public var retryAfter: [UInt8]?
    /// `X-WNS-ERROR-DESCRIPTION`.
    public var wnsError: [UInt8]?
    /// `X-WNS-STATUS`: `received`, `dropped` or `channelthrottled`.
    public var wnsStatus: [UInt8]?

    public init(retryAfter: [UInt8]? = nil, wnsError: [UInt8]? = nil, wnsStatus: [UInt8]? = nil) {
      self.retryAfter = retryAfter
      self.wnsError = wnsError
      self.wnsStatus = wnsStatus
    }
  }

  /// Never fails.
  /// - Parameters:
  ///   - path: of the endpoint, which is a secret: the reason has no part of it.
  ///   - now: Unix milliseconds; nil ignores a `Retry-After` that is a date.
  public static func interpret(
    status: Int, body: [UInt8], path: [UInt8] = [], headers: Headers = Headers(), now: Int64? = nil
  ) -> ReplyMeaning {
    var meaning: ReplyMeaning
    if let wnsStatus = headers.wnsStatus, TextForm.isAnyCase(wnsStatus, of: throttled.reason.utf8) {
      meaning = throttled.meaning(status: status)
    } else if 200...299 ~= status {
      return .delivered(status)
    } else {
      meaning = Self.meaning(status: status, body, path, headers)
    }
    meaning.retryAfter = headers.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
    return meaning
  }

  public static func words(for meaning: ReplyMeaning) -> String {
    (rows + textRows).first { $0.reason == meaning.reason }?.words ?? statusRows.row(of: meaning.status).words
  }

  private static func meaning(status: Int, _ body: [UInt8], _ path: [UInt8], _ headers: Headers) -> ReplyMeaning {
    let reader = WebPushErrorBody(path: path)
    let word =
      reader.word(body) ?? headers.wnsError.flatMap { reader.cleaned($0[...]) }
      ?? headers.wnsStatus.flatMap { reader.cleaned($0[...]) }
    // With these, a subscription has ended. The word does not matter.
    guard status != 404, status != 410 else { return statusRows.judge(status, word) }
    let row = word.flatMap { word in rows.first { $0.reason == word } } ?? textRow(body)
    return statusRows.judge(status, word, by: row)
  }

  private static func textRow(_ body: [UInt8]) -> ReplyRow? {
    guard !body.isEmpty, body.count <= ErrorBody.largest else { return nil }
    let text = String(decoding: body, as: UTF8.self).lowercased()
    return textRows.first { text.contains($0.reason) }
  }
}
