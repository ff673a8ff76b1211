import PushCore

/// An APNs provider token (JWT) as sent in `authorization`, the same in each process that has the key.
///
/// Tokens are numbered by the half hours of UNIX time, at the beginning of which they are issued.
struct ProviderToken: Sendable, CustomStringConvertible {
  /// Seconds between two tokens: more than the 20 minutes within which Apple wants one of a key, and half of the hour for which it takes one
  /// ("Establishing a token-based connection to APNs").
  static let period: Int64 = 30 * 60

  /// `bearer <JWT>`.
  let authorization: [UInt8]
  let number: Int

  /// Without the token itself.
  var description: String { "provider token of \(Self.issuedAt(number))" }

  /// The one that is issued last.
  /// - Parameter wallClock: UNIX time in milliseconds.
  static func number(at wallClock: Int64) -> Int { Int(max(wallClock, 0) / 1000 / period) }

  /// The claim `iat`, in UNIX seconds.
  static func issuedAt(_ number: Int) -> Int64 { Int64(number) * period }

  static func make(_ number: Int, keyID: String, teamID: String, sign: ([UInt8]) throws -> [UInt8]) rethrows -> ProviderToken {
    var (header, claims) = (JSONObjectWriter(), JSONObjectWriter())
    header.set("alg", "ES256")
    header.set("kid", keyID)
    claims.set("iss", teamID)
    claims.set("iat", issuedAt(number))
    let token = try JSONWebToken.make(header: header.closed(), claims: claims.closed(), sign: sign)
    return ProviderToken(authorization: Array("bearer ".utf8) + token, number: number)
  }
}
