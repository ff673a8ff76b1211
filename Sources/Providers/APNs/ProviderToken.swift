import PushCore

/// An APNs provider token (JWT) for `authorization`. All processes with the key make the same tokens. A token's number is that
/// of a half hour of Unix time; the token is issued at its start.
struct ProviderToken: Sendable, CustomStringConvertible {
  /// Seconds between two tokens. Apple allows at most one token in 20 minutes and accepts a token for an hour ("Establishing a
  /// token-based connection to APNs").
  static let period: Int64 = 30 * 60

  /// `bearer <JWT>`.
  let authorization: [UInt8]
  let number: Int

  var description: String { "provider token of \(Self.issuedAt(number))" }

  /// - Parameter wallClock: Unix milliseconds.
  static func number(at wallClock: Int64) -> Int { Int(max(wallClock, 0) / 1000 / period) }

  /// The claim `iat` in Unix seconds.
  static func issuedAt(_ number: Int) -> Int64 { Int64(number) * period }

  static func make(_ number: Int, keyID: String, teamID: String, sign: ([UInt8]) throws -> [UInt8]) rethrows -> ProviderToken {
    let token = try JSONWebToken.make(
      header: ["alg": "ES256", "kid": keyID], claims: ["iss": teamID, "iat": issuedAt(number)], sign: sign)
    return ProviderToken(authorization: Array("bearer ".utf8) + token, number: number)
  }
}
