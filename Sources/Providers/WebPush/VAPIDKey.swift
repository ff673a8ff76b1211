import PushCore
import TLS
import Wire

/// A key that identifies an application to push services (VAPID, RFC 8292), and its tokens. All processes with the key make the
/// same tokens: one for each origin and half day.
public final class VAPIDKey: Sendable, CustomStringConvertible {
  /// Seconds between two tokens. Services keep the result of a verification, and Apple allows one token an hour.
  static let period: Int64 = 12 * 3600
  /// Seconds from the beginning of a token's period to its expiry. Services allow 24 hours from now on; the rest is for wrong clocks.
  private static let lifetime: Int64 = 18 * 3600

  /// A subscription's token has the id of its key (``WebPushSubscription/keyID(ofPoint:)``).
  public let id: [UInt8]
  /// An uncompressed point of P-256, 65 bytes.
  public let publicPoint: [UInt8]
  private let key: SigningKey
  /// `mailto:` or `https:`, for the claim `sub`.
  public let subject: String

  /// - Parameters:
  ///   - pem: a private key of P-256.
  ///   - file: the source file, for errors.
  public init(pem: [UInt8], file: String? = nil, subject: String) throws(CredentialError) {
    key = try SigningKey(pem: pem, file: file)
    guard let point = key.publicPoint else {
      throw CredentialError(file: file, reason: "it is an RSA key; web push needs a key on the curve P-256")
    }
    publicPoint = point
    id = WebPushSubscription.keyID(ofPoint: point)
    self.subject = subject
  }

  /// The key as browsers want it in `applicationServerKey`.
  public var applicationServerKey: [UInt8] { Base64URL.encode(publicPoint) }
  public var description: String { "VAPID key \(String(decoding: id.hexText, as: UTF8.self))" }

  /// - Parameter wallClock: Unix milliseconds.
  static func number(at wallClock: Int64) -> Int { Int(max(wallClock, 0) / 1000 / period) }

  /// The value of `authorization`: `vapid t=<JWT>,k=<public key>`.
  /// - Parameters:
  ///   - origin: the claim `aud`.
  ///   - number: the number of the half day since 1970.
  ///   - renewal: makes another token, after the service has refused those with smaller numbers.
  func authorization(for origin: WebPushOrigin, _ number: Int, renewal: Int) throws -> [UInt8] {
    let expiry = Int64(number) * Self.period + Self.lifetime + Int64(renewal)
    let token = try JSONWebToken.make(
      header: ["typ": "JWT", "alg": "ES256"], claims: ["aud": origin.text, "exp": expiry, "sub": subject], sign: key.signES256)
    return Array("vapid t=".utf8) + token + Array(",k=".utf8) + applicationServerKey
  }
}
