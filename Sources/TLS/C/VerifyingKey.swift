import COpenSSL

/// A public key that checks token signatures: ES256 and RS256. Immutable; may be shared between threads.
public final class VerifyingKey: @unchecked Sendable {
  private let key: OpaquePointer

  /// - Parameters:
  ///   - pem: a public key (`BEGIN PUBLIC KEY`) or its private key.
  ///   - file: the source file, for errors.
  public init(pem: [UInt8], file: String? = nil) throws(CredentialError) {
    let found = KeyFiles.withBIO(pem) { PEM_read_bio_PUBKEY($0, nil, nil, nil) }
    OpenSSLError.clear()
    if let found { key = found } else { key = try KeyFiles.privateKey(pem, file: file, passphrase: nil) }
  }

  /// - Parameter publicPoint: an uncompressed point of P-256, 65 bytes.
  public init(publicPoint: [UInt8]) throws(CredentialError) {
    guard let key = P256.publicKey(publicPoint) else { throw TLSSetting.failure(nil, "the public key is no point of P-256") }
    self.key = key
  }

  deinit { EVP_PKEY_free(key) }

  /// - Parameter signature: in JWS form: R ‖ S for an elliptic curve (RFC 7518 §3.4), PKCS#1 v1.5 for RSA (§3.3).
  public func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool { Self.verifies(signature, of: message, key) }

  static func verifies(_ signature: [UInt8], of message: [UInt8], _ key: OpaquePointer) -> Bool {
    guard let encoded = EVP_PKEY_get_base_id(key) == EVP_PKEY_EC ? der(signature) : signature else { return false }
    let context = EVP_MD_CTX_new()
    defer {
      EVP_MD_CTX_free(context)
      OpenSSLError.clear()
    }
    return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
      && EVP_DigestVerify(context, encoded, encoded.count, message, message.count) == 1
  }

  /// An `ECDSA-Sig-Value` (RFC 3279 §2.2.3): a sequence of two integers.
  private static func der(_ raw: [UInt8]) -> [UInt8]? {
    guard raw.count == 64 else { return nil }
    let integers = [raw[..<32], raw[32...]].flatMap { half -> [UInt8] in
      let digits = half.drop { $0 == 0 }
      // A first bit of 1 would be the sign.
      let bytes = digits.first.map { $0 < 0x80 } == true ? Array(digits) : [0] + digits
      return [0x02, UInt8(bytes.count)] + bytes
    }
    return [0x30, UInt8(integers.count)] + integers
  }
}
