import Synchronization
import Wire

/// One provider token per key, shared by every shard of the process: Apple limits how often a key's token may change.
///
/// The lock is held while signing, which takes some 50 µs once in 50 minutes, so a renewal happens once however many ask.
public final class ProviderTokenCache: Sendable {
  /// Of this process.
  public static let shared = ProviderTokenCache()

  /// A key file replaced under the same key id is another key.
  struct Key: Hashable, Sendable {
    let keyID: String
    let teamID: String
    let fingerprint: Int
  }

  private let lifetimes = Mutex<[Key: TokenLifetime]>([:])
  /// Signs the bytes by the credential's key.
  private let sign: @Sendable (_ credential: TokenCredential, _ bytes: [UInt8]) throws -> [UInt8]

  public init() { sign = { credential, bytes in try credential.key.signES256(bytes) } }

  /// With signatures that repeat themselves, which the key's own don't.
  package init(sign: @escaping @Sendable (_ credential: TokenCredential, _ bytes: [UInt8]) throws -> [UInt8]) {
    self.sign = sign
  }

  /// The key's token, minted if there is none or it is due.
  func token(of credential: TokenCredential, at now: MonotonicTime, wallClock: Int64) throws -> ProviderToken {
    try lifetimes.withLock { lifetimes throws in
      var lifetime = lifetimes[credential.cacheKey] ?? TokenLifetime(refreshAge: credential.refreshAge)
      defer { lifetimes[credential.cacheKey] = lifetime }
      if let token = lifetime.token, !lifetime.isDue(at: now, wallClock: wallClock) { return token }
      return try mint(credential, &lifetime, now, wallClock)
    }
  }

  /// The provider called `generation` expired: gives its successor, which another shard may have minted already, or nil where
  /// minting one now would be too often.
  ///
  /// - Parameter ifMisdated: the provider refused the token for an unknown reason: minted only where its time may be the reason.
  func successor(
    of generation: Int, of credential: TokenCredential, at now: MonotonicTime, wallClock: Int64, ifMisdated: Bool = false
  ) throws -> ProviderToken? {
    try lifetimes.withLock { lifetimes throws in
      var lifetime = lifetimes[credential.cacheKey] ?? TokenLifetime(refreshAge: credential.refreshAge)
      defer { lifetimes[credential.cacheKey] = lifetime }
      if let token = lifetime.token, token.generation > generation { return token }
      guard !ifMisdated || lifetime.isMisdated(at: now, wallClock: wallClock), lifetime.mayReplaceExpired(at: now) else {
        return nil
      }
      return try mint(credential, &lifetime, now, wallClock)
    }
  }

  /// The provider complained of too many token updates.
  func rest(_ credential: TokenCredential, at now: MonotonicTime) {
    lifetimes.withLock { $0[credential.cacheKey]?.rest(at: now) }
  }

  private func mint(
    _ credential: TokenCredential, _ lifetime: inout TokenLifetime, _ now: MonotonicTime, _ wallClock: Int64
  ) throws -> ProviderToken {
    let token = try ProviderToken.mint(
      keyID: credential.keyID, teamID: credential.teamID, generation: (lifetime.token?.generation ?? 0) + 1, at: now,
      wallClock: wallClock, sign: { try sign(credential, $0) })
    lifetime.minted(token)
    return token
  }
}
