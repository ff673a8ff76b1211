import PushCore

/// The answer of a token endpoint (RFC 6749 §5.1, §5.2).
enum AccessTokenAnswer: Equatable {
  /// `lifetime` in seconds.
  case token([UInt8], lifetime: Double)
  /// The endpoint refuses the account (`invalid_grant`): an operator must act, or the clock is wrong.
  case refused(String)
  /// Any other error; retried later.
  case failed(String)
  /// The endpoint is unreachable or doesn't answer.
  case unanswered(String)

  /// Seconds, for an answer without a lifetime. Google's tokens live 3,599 s.
  static let assumedLifetime = 3600.0

  init(status: Int, body: [UInt8]) {
    guard let document = try? JSONDocument(body), document.kind(document.root) == .object else {
      self = .failed("HTTP \(status) without a JSON object")
      return
    }
    if status == 200, let token = document.string("access_token"), !token.isEmpty,
      token.allSatisfy({ 0x21...0x7E ~= $0 })
    {
      self = .token(token, lifetime: Self.lifetime(in: document))
      return
    }
    let word = document.string("error").map { String(decoding: $0.prefix(60).filter { 0x20...0x7E ~= $0 }, as: UTF8.self) }
    if 400..<500 ~= status, status != 408, status != 429, let word {
      self = .refused(word)
    } else {
      self = .failed("HTTP \(status)" + (word.map { ": \($0)" } ?? " without an access token"))
    }
  }

  private static func lifetime(in document: JSONDocument) -> Double {
    guard let node = document.value("expires_in", of: document.root),
      let seconds = Double(String(decoding: document.string(node), as: UTF8.self)), seconds.isFinite
    else { return assumedLifetime }
    return min(max(seconds, 1), 24 * 3600)
  }
}
