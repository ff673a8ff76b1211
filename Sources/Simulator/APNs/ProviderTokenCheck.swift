import PushCore
import TLS

/// Checks provider tokens like APNs: one team for each connection, tokens at most an hour old, and a new one at most every 20
/// minutes (Apple, "Establishing a token-based connection to APNs").
struct ProviderTokenCheck {
  let key: VerifyingKey?
  private(set) var current: (text: [UInt8], authorization: JournalEntry.Authorization)?

  /// - Parameter header: the value of `authorization`.
  /// - Returns: the journal's note of the token if it is readable, and the refusal if the token is not accepted.
  mutating func judge(_ header: [UInt8]?, at milliseconds: Int64) -> (JournalEntry.Authorization?, APNsVerdict?) {
    guard let header else { return (nil, .forbidden("MissingProviderToken")) }
    let now = milliseconds / 1000
    let text = WebToken.bearer(header)
    if let current, current.text == text { return (current.authorization, Self.judgeAge(current.authorization, at: now)) }
    guard let text, let token = WebToken(text), let keyID = token.header("kid"), let issuer = token.claim("iss"),
      let issuedAt = token.time("iat")
    else { return (nil, .forbidden("InvalidProviderToken")) }
    let authorization = JournalEntry.Authorization(keyID: keyID, issuer: issuer, issuedAt: issuedAt)
    guard token.header("alg") == Array("ES256".utf8), keyID.count == 10, issuer.count == 10, token.signature.count == 64,
      key?.verifies(token.signature, of: token.signed) ?? true
    else { return (authorization, .forbidden("InvalidProviderToken")) }
    if let refusal = Self.judgeAge(authorization, at: now) { return (authorization, refusal) }
    if let current {
      guard current.authorization.issuer == issuer else { return (authorization, .forbidden("InvalidProviderToken")) }
      guard abs(issuedAt - current.authorization.issuedAt) >= 20 * 60 else {
        return (authorization, APNsVerdict(status: 429, reason: "TooManyProviderTokenUpdates"))
      }
    }
    current = (text, authorization)
    return (authorization, nil)
  }

  private static func judgeAge(_ authorization: JournalEntry.Authorization, at now: Int64) -> APNsVerdict? {
    // The bounds come first, so that no issue time can overflow the difference.
    if authorization.issuedAt < now - 3600 { return .forbidden("ExpiredProviderToken") }
    if authorization.issuedAt > now + 3600 { return .forbidden("InvalidProviderToken") }
    return nil
  }
}
