import DeviceRegistry
import PushCore
import TLS
import Wire

/// A service account's signed request for a token (RFC 7523).
struct Assertion {
  static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
  /// Seconds that the sender's clock may differ, and the longest lifetime of an assertion.
  private static let (skew, longest) = (300.0, 3_600.0)
  /// Google's libraries write these as `aud` whatever the account's `token_uri` is (google-auth, gtoken).
  private static let googleAudiences = [
    "https://oauth2.googleapis.com/token", "https://www.googleapis.com/oauth2/v4/token",
    "https://accounts.google.com/o/oauth2/token",
  ].map { Array($0.utf8) }

  /// The part of `iss` before the @.
  let keyID: [UInt8]
  private let token: WebToken
  private let issuedAt: Double
  private let expires: Double

  /// - Parameter form: a form with `grant_type` and `assertion`.
  init(_ form: [UInt8]) throws(Fault) {
    guard let fields = PercentEncoding.fields(form) else { throw .badRequest("the form can't be read") }
    func field(_ name: String) -> [UInt8]? { fields.first { $0.name.elementsEqual(name.utf8) }?.value }
    guard field("grant_type")?.elementsEqual(Self.grantType.utf8) == true else { throw .badGrant }
    guard let assertion = field("assertion") else { throw .badRequest("assertion: missing") }
    guard let token = WebToken(assertion), token.header("alg")?.elementsEqual("RS256".utf8) == true,
      let issuer = token.claim("iss"), case let id = Array(issuer.prefix { $0 != UInt8(ascii: "@") }), NewSecret.isID(id),
      token.claims.value("sub", of: 0) == nil || token.claim("sub") == issuer,
      let issuedAt = Self.time("iat", token), let expires = Self.time("exp", token)
    else { throw .wrongKey }
    (keyID, self.token, self.issuedAt, self.expires) = (id, token, issuedAt, expires)
  }

  /// - Parameter now: Unix seconds.
  func isGood(for key: GatewayKey, at now: Int64) -> Bool {
    guard let account = key.account, case let now = Double(now), let audience = token.claim("aud"),
      audience == account.tokenURI || Self.googleAudiences.contains(audience),
      expires > now, expires - issuedAt <= Self.longest, issuedAt <= now + Self.skew,
      issuedAt > now - Self.longest - Self.skew, let verifying = try? VerifyingKey(pem: account.publicKey)
    else { return false }
    return verifying.verifies(token.signature, of: token.signed)
  }

  /// A NumericDate, possibly with a fraction (RFC 7519 §2).
  private static func time(_ name: String, _ token: WebToken) -> Double? {
    guard let node = token.claims.value(name, of: 0), token.claims.kind(node) == .number,
      let seconds = Double(String(decoding: token.claims.bytes[token.claims.source(node)], as: UTF8.self)),
      (0...1e12).contains(seconds)
    else { return nil }
    return seconds
  }
}
