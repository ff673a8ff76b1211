import PushCore
import Wire

/// An APNs provider token (JWT) as sent in `authorization`, numbered per key.
struct ProviderToken: Sendable, CustomStringConvertible {
  /// `bearer <JWT>`.
  let authorization: [UInt8]
  /// 1 for the first token of a key in this process, then counting.
  let generation: Int
  let mintedAt: MonotonicTime
  /// The claim `iat`, in UNIX seconds.
  let issuedAt: Int64

  /// Without the token itself.
  var description: String { "provider token \(generation), issued at \(issuedAt)" }

  static func mint(
    keyID: String, teamID: String, generation: Int, at now: MonotonicTime, wallClock: Int64,
    sign: ([UInt8]) throws -> [UInt8]
  ) rethrows -> ProviderToken {
    let issuedAt = wallClock / 1000
    var (header, claims) = (JSONObjectWriter(), JSONObjectWriter())
    header.set("alg", "ES256")
    header.set("kid", keyID)
    claims.set("iss", teamID)
    claims.set("iat", issuedAt)
    let token = try JSONWebToken.make(header: header.closed(), claims: claims.closed(), sign: sign)
    return ProviderToken(
      authorization: Array("bearer ".utf8) + token, generation: generation, mintedAt: now, issuedAt: issuedAt)
  }
}

/// When a key's token is renewed, as a value: no clock, no key.
///
/// Apple wants a token renewed between 20 and 60 minutes of age ("Establishing a token-based connection to APNs"). Age is counted on the
/// monotonic clock from the minting; the wall clock is only what `iat` says, so a clock that jumped is noticed as the two drifting apart.
struct TokenLifetime {
  static let shortest = 20.0 * 60
  static let longest = 60.0 * 60
  /// Wall and monotonic clock apart by this much since the minting: `iat` is not what the provider would now believe.
  static let tolerableDrift = 5.0 * 60

  /// Seconds, within `shortest...longest`.
  let refreshAge: Double
  private(set) var token: ProviderToken?
  /// Minting rests until then: the provider complained of too many tokens.
  private var restsUntil: MonotonicTime?
  /// The last minting earlier than `shortest`, which a refusal may force once in that time.
  private var forcedAt: MonotonicTime?

  init(refreshAge: Double) { self.refreshAge = min(max(refreshAge, Self.shortest), Self.longest) }

  mutating func minted(_ token: ProviderToken) { self.token = token }

  /// Whether the token is to be replaced in the ordinary course of things.
  func isDue(at now: MonotonicTime, wallClock: Int64) -> Bool {
    guard let token else { return true }
    let age = now.seconds(since: token.mintedAt)
    if let restsUntil, now < restsUntil, age < Self.longest { return false }
    if age < Self.shortest { return false }
    return age >= refreshAge || abs(drift(of: token, age: age, wallClock: wallClock)) >= Self.tolerableDrift
  }

  /// The provider called the token `generation` expired. Says whether a new one may be minted for it: at the ordinary age, or
  /// once in 20 minutes as the first reaction.
  mutating func mayReplaceExpired(at now: MonotonicTime) -> Bool {
    guard let token else { return true }
    if let restsUntil, now < restsUntil { return false }
    if now.seconds(since: token.mintedAt) >= Self.shortest { return true }
    if let forcedAt, now.seconds(since: forcedAt) < Self.shortest { return false }
    forcedAt = now
    return true
  }

  /// The clock has been set since the minting: `iat` is not what it would be now.
  func isMisdated(at now: MonotonicTime, wallClock: Int64) -> Bool {
    guard let token else { return false }
    return abs(drift(of: token, age: now.seconds(since: token.mintedAt), wallClock: wallClock)) >= Self.tolerableDrift
  }

  /// The provider saw too many tokens: the current one stays for 20 minutes, unless it turns an hour old.
  mutating func rest(at now: MonotonicTime) { restsUntil = now.advanced(bySeconds: Self.shortest) }

  private func drift(of token: ProviderToken, age: Double, wallClock: Int64) -> Double {
    Double(wallClock) / 1000 - Double(token.issuedAt) - age
  }
}
