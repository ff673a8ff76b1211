import PushCore
import TLS
import Wire

/// The OAuth token endpoint: exchanges a service account's signed assertion for an access token (RFC 7523 §2.1).
final class AccessTokenIssuer {
  struct Refusal: Error, Equatable {
    var error: String
    var description: String
  }

  private let configuration: FCMConfiguration
  private let key: VerifyingKey?
  /// Valid tokens and their ends in Unix seconds.
  private var ends: [[UInt8]: Int64] = [:]

  init(_ configuration: FCMConfiguration) throws(CredentialError) {
    self.configuration = configuration
    if let pem = configuration.accountKey { key = try VerifyingKey(pem: pem) } else { key = nil }
  }

  /// - Parameter id: the random part of a new token.
  /// - Returns: the body of the answer, and the account that asked.
  func exchange(_ form: [UInt8], id: [UInt8], at time: Int64) -> (Result<[UInt8], Refusal>, JournalEntry.Authorization?) {
    let fields = Self.fields(form)
    guard fields["grant_type"] == Array("urn:ietf:params:oauth:grant-type:jwt-bearer".utf8) else {
      return (.failure(Refusal(error: "unsupported_grant_type", description: "Invalid grant_type")), nil)
    }
    guard let assertion = fields["assertion"], let token = WebToken(assertion), token.header("alg") == Array("RS256".utf8),
      let issuer = token.claim("iss"), let issuedAt = token.time("iat"), let expires = token.time("exp")
    else { return (.failure(Refusal(error: "invalid_grant", description: "Bad Request")), nil) }
    let asker = JournalEntry.Authorization(keyID: token.header("kid") ?? [], issuer: issuer, issuedAt: issuedAt)
    if let refusal = judge(token, issuer, issuedAt, expires, now: time / 1000) { return (.failure(refusal), asker) }
    let access = Array("ya29.".utf8) + id
    let now = time / 1000
    ends = ends.filter { $0.value > now }
    ends[access] = now + Int64(configuration.tokenLifetime)
    let answer: JSONObject = ["access_token": access, "expires_in": configuration.tokenLifetime, "token_type": "Bearer"]
    return (.success(answer.line), asker)
  }

  private func judge(_ token: WebToken, _ issuer: [UInt8], _ issuedAt: Int64, _ expires: Int64, now: Int64) -> Refusal? {
    let time = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
    // The bounds prevent an overflow of the differences.
    guard (0...1 << 40).contains(issuedAt), (0...1 << 40).contains(expires), expires > now, expires - issuedAt <= 3600,
      issuedAt <= now + 300, issuedAt > now - 3600
    else { return Refusal(error: "invalid_grant", description: time) }
    if let email = configuration.clientEmail, !issuer.elementsEqual(email.utf8) {
      return Refusal(error: "invalid_grant", description: "Invalid grant: account not found")
    }
    guard token.claim("aud")?.isEmpty == false else {
      return Refusal(error: "invalid_grant", description: "Invalid JWT: Failed audience check.")
    }
    let scopes = (token.claim("scope") ?? []).split(separator: UInt8(ascii: " "))
    guard scopes.contains(where: { scope in Self.scopes.contains { scope.elementsEqual($0.utf8) } }) else {
      return Refusal(error: "invalid_scope", description: "Invalid OAuth scope or ID token audience provided.")
    }
    guard key?.verifies(token.signature, of: token.signed) ?? true else {
      return Refusal(error: "invalid_grant", description: "Invalid JWT Signature.")
    }
    return nil
  }

  /// True if the `authorization` header has a token that was issued here and is still valid.
  func accepts(_ header: [UInt8]?, at milliseconds: Int64) -> Bool {
    guard let token = header.flatMap(WebToken.bearer) else { return false }
    return ends[token].map { $0 > milliseconds / 1000 } ?? false
  }

  private static let scopes = [
    "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
  ]

  /// Decodes `application/x-www-form-urlencoded` (WHATWG URL §5.1).
  static func fields(_ form: [UInt8]) -> [String: [UInt8]] {
    var fields: [String: [UInt8]] = [:]
    for pair in form.split(separator: UInt8(ascii: "&")) {
      let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      fields[String(decoding: decoded(sides[0]), as: UTF8.self)] = sides.count > 1 ? decoded(sides[1]) : []
    }
    return fields
  }

  private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
    PercentEncoding.decode(text, plusIsSpace: true) ?? Array(text)
  }
}
