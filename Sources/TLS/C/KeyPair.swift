import COpenSSL

/// A P-256 private key with its public point, for key agreement and as a new signing key. Immutable; may be shared between
/// threads.
public final class KeyPair: @unchecked Sendable {
  /// Uncompressed, 65 bytes.
  public let publicPoint: [UInt8]
  private let key: OpaquePointer

  /// Makes a new random key.
  public convenience init() throws(CredentialError) { try self.init(P256.randomKey(), orFail: "a key cannot be made") }

  /// - Parameter privateKey: 32 bytes, big-endian.
  public convenience init(privateKey: [UInt8]) throws(CredentialError) {
    try self.init(P256.key(privateKey), orFail: "the bytes are no private key of P-256")
  }

  private init(_ key: OpaquePointer?, orFail reason: String) throws(CredentialError) {
    guard let key, let point = P256.publicPoint(of: key) else {
      BN_clear_free(key)
      throw TLSSetting.failure(nil, reason)
    }
    self.key = key
    publicPoint = point
  }

  deinit { BN_clear_free(key) }

  /// The private key in PKCS#8 form.
  public var pem: [UInt8] {
    let der = Self.head + P256.bytes(of: key) + Self.middle + publicPoint
    let text = KeyFiles.written { PEM_write_bio($0, "PRIVATE KEY", "", der, der.count) > 0 }
    guard let text else { preconditionFailure("PEM is unavailable") }
    return text
  }

  /// Nil if `peer` is no point of the curve.
  func sharedSecret(with peer: [UInt8]) -> [UInt8]? { P256.sharedSecret(key, with: peer) }

  /// PrivateKeyInfo (RFC 5208 §5) with an ECPrivateKey (RFC 5915 §3), up to the private key and from there to the point.
  private static let head: [UInt8] = [
    0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A,
    0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x04, 0x6D, 0x30, 0x6B, 0x02, 0x01, 0x01, 0x04, 0x20,
  ]
  private static let middle: [UInt8] = [0xA1, 0x44, 0x03, 0x42, 0x00]
}
