import PushCore
import TLS
import Wire

/// The value of a push's `Authorization`: `vapid t=<token>, k=<public key>` (RFC 8292 §3).
struct VAPIDToken {
  let header: [UInt8]
  let claims: JournalEntry.Vapid
  private let token: WebToken
  private let key: [UInt8]

  init?(_ header: [UInt8]) {
    guard let parameters = WebToken.credential(header, behind: "vapid ") else { return nil }
    var values: [UInt8: [UInt8]] = [:]
    for parameter in parameters.split(separator: UInt8(ascii: ",")) {
      let trimmed = parameter.drop { $0 == UInt8(ascii: " ") }
      guard let name = trimmed.first, trimmed.dropFirst().first == UInt8(ascii: "=") else { return nil }
      values[name] = Array(trimmed.dropFirst(2))
    }
    guard let token = values[UInt8(ascii: "t")].flatMap(WebToken.init), let key = values[UInt8(ascii: "k")] else { return nil }
    self.header = header
    self.token = token
    self.key = key
    claims = JournalEntry.Vapid(
      key: key, audience: token.claim("aud"), subject: token.claim("sub"), expires: token.time("exp"))
  }

  /// The uncompressed point; nil if the key has another form.
  var publicPoint: [UInt8]? {
    guard let point = Base64URL.decode(key), point.count == 65, point[0] == 4 else { return nil }
    return point
  }

  /// The fault of the claims (RFC 8292 §2); nil if there is none.
  /// - Parameters:
  ///   - origin: of the push service.
  ///   - now: Unix seconds.
  func fault(origin: String?, now: Int64) -> String? {
    guard token.header("alg") == Array("ES256".utf8) else { return "alg is not ES256" }
    guard let expires = claims.expires else { return "exp is missing" }
    guard expires > now else { return "it has expired" }
    guard expires <= now + Self.longestLife else { return "exp is more than 24 hours ahead" }
    guard let origin, claims.audience?.elementsEqual(origin.utf8) == true else { return "aud is not the service's origin" }
    return nil
  }

  func isSigned(by point: [UInt8]) throws(CredentialError) -> Bool {
    try VerifyingKey(publicPoint: point).verifies(token.signature, of: token.signed)
  }

  /// Seconds.
  private static let longestLife: Int64 = 24 * 3600
}
