import Synchronization
import TLS

/// An APNs signing key (`.p8`), its two identifiers, and its tokens. Each token is signed once for all users of the credential.
public final class TokenCredential: Sendable, CustomStringConvertible {
  /// Ten characters each.
  public let keyID: String
  public let teamID: String
  private let key: SigningKey
  /// The newest last. Signing holds the lock, once in half an hour.
  private let made = Mutex<[ProviderToken]>([])
  /// The clock's own token, the previous and the next.
  private static let kept = 3

  /// - Parameter pem: the content of the `.p8` file.
  /// - Throws: if the file has no P-256 key.
  public init(pem: [UInt8], keyID: String, teamID: String) throws(CredentialError) {
    key = try SigningKey(pem: pem)
    guard key.algorithm == .es256 else { throw CredentialError(file: nil, reason: "an RSA key cannot sign ES256") }
    self.keyID = keyID
    self.teamID = teamID
  }

  public var description: String { "APNs key \(keyID) of team \(teamID)" }

  func token(_ number: Int) throws -> ProviderToken {
    try made.withLock { made throws in
      if let token = made.first(where: { $0.number == number }) { return token }
      let token = try ProviderToken.make(number, keyID: keyID, teamID: teamID) { try key.signES256($0) }
      if made.count == Self.kept { made.removeFirst() }
      made.append(token)
      return token
    }
  }
}
