import COpenSSL

/// Encryption of a web push message for one browser (RFC 8291), as a body with the content coding aes128gcm. Only the browser can
/// read it.
public enum MessageEncryption {
  /// A body has at most 4,096 bytes, header, tag and delimiter included.
  public static let longestPlaintext =
    EncryptedContent.recordSize - EncryptedContent.fixedSize - P256.pointSize - EncryptedContent.overhead
  static let authSize = 16
  private static let infoHead = Array("WebPush: info\0".utf8)

  /// Encrypts with a new key and salt.
  /// - Parameters:
  ///   - publicKey: the browser's, an uncompressed point of P-256, 65 bytes.
  ///   - auth: the browser's authentication secret, 16 bytes.
  public static func encrypt(
    _ plaintext: [UInt8], publicKey: [UInt8], auth: [UInt8]
  ) throws(CredentialError) -> [UInt8] {
    var salt = [UInt8](repeating: 0, count: EncryptedContent.saltSize)
    guard RAND_bytes(&salt, Int32(salt.count)) == 1 else { throw TLSSetting.failure(nil, "a salt cannot be made") }
    return try encrypt(plaintext, publicKey: publicKey, auth: auth, sender: KeyPair(), salt: salt)
  }

  /// - Parameters:
  ///   - sender: used for this message only.
  ///   - salt: 16 random bytes.
  ///   - padding: the number of zero bytes after the plaintext.
  package static func encrypt(
    _ plaintext: [UInt8], publicKey: [UInt8], auth: [UInt8], sender: KeyPair, salt: [UInt8], padding: Int = 0
  ) throws(CredentialError) -> [UInt8] {
    guard plaintext.count + padding <= longestPlaintext else {
      throw TLSSetting.failure(nil, "the message has more than \(longestPlaintext) bytes")
    }
    guard auth.count == authSize, let secret = sender.sharedSecret(with: publicKey) else {
      throw TLSSetting.failure(nil, "the subscription's keys are not usable")
    }
    let material = material(secret, auth: auth, receiver: publicKey, sender: sender.publicPoint)
    let body = EncryptedContent.encode(
      plaintext, material: material, salt: salt, keyID: sender.publicPoint, padding: padding)
    guard let body else { throw CredentialError(file: nil, reason: "encryption failed: \(OpenSSLError.text())") }
    return body
  }

  /// The input keying material of the content coding (RFC 8291 §3.4).
  fileprivate static func material(_ secret: [UInt8], auth: [UInt8], receiver: [UInt8], sender: [UInt8]) -> [UInt8] {
    HKDF.expand(HKDF.extract(secret, salt: auth), info: infoHead + receiver + sender)
  }
}

extension KeyPair {
  /// The receiver's side of ``MessageEncryption``. Reads any number of records. Returns nil if the body is not valid.
  public func decrypt(_ body: [UInt8], auth: [UInt8]) -> [UInt8]? {
    guard auth.count == MessageEncryption.authSize else { return nil }
    return EncryptedContent.decode(body) { keyID in
      let sender = Array(keyID)
      guard let secret = sharedSecret(with: sender) else { return nil }
      return MessageEncryption.material(secret, auth: auth, receiver: publicPoint, sender: sender)
    }
  }
}
