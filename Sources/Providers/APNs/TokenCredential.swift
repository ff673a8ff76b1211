import Synchronization
import TLS

/// An APNs signing key (`.p8`) with its two identifiers, and the tokens made of it: each is signed once for all that share the credential.
public final class TokenCredential: Sendable, CustomStringConvertible {
  /// Ten characters each.
  public let keyID: String
  public let teamID: String
  private let key: SigningKey
  /// The newest last. The lock is held while one is signed, once in half an hour.
  private let made = Mutex<[ProviderToken]>([])
  /// The clock's own, the one before, and the one after.
  private static let kept = 3

  /// - Parameter pem: the content of the `.p8` file.
  /// - Throws: when the file holds no P-256 key.
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
