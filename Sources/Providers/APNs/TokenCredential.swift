import TLS

/// An APNs signing key (`.p8`) with its two identifiers. Immutable; its token is shared through a `ProviderTokenCache`.
public struct TokenCredential: Sendable, CustomStringConvertible {
  /// Ten characters each.
  public let keyID: String
  public let teamID: String
  let key: SigningKey
  /// Seconds after which the token is renewed.
  let refreshAge: Double
  let cacheKey: ProviderTokenCache.Key

  /// - Parameters:
  ///   - pem: the content of the `.p8` file.
  ///   - refreshAge: moved into 20 to 60 minutes; Apple refuses what is renewed sooner or later.
  /// - Throws: when the file holds no P-256 key.
  public init(pem: [UInt8], keyID: String, teamID: String, refreshAge: Double = 50 * 60) throws(CredentialError) {
    key = try SigningKey(pem: pem)
    self.keyID = keyID
    self.teamID = teamID
    self.refreshAge = refreshAge
    var hasher = Hasher()
    hasher.combine(pem)
    cacheKey = ProviderTokenCache.Key(keyID: keyID, teamID: teamID, fingerprint: hasher.finalize())
    // A key of the wrong kind is found out now, not at the first push.
    _ = try key.signES256([])
  }

  public var description: String { "APNs key \(keyID) of team \(teamID)" }
}
