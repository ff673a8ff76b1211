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

  private static func der(_ raw: [UInt8]) -> [UInt8]? {
    guard raw.count == 64, let signature = ECDSA_SIG_new() else { return nil }
    defer { ECDSA_SIG_free(signature) }
    let (r, s) = raw.withUnsafeBufferPointer { buffer in
      (BN_bin2bn(buffer.baseAddress, 32, nil), BN_bin2bn(buffer.baseAddress! + 32, 32, nil))
    }
    guard ECDSA_SIG_set0(signature, r, s) == 1 else {
      BN_free(r)
      BN_free(s)
      return nil
    }
    let count = i2d_ECDSA_SIG(signature, nil)
    guard count > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: Int(count))
    bytes.withUnsafeMutableBufferPointer { buffer in
      var end = buffer.baseAddress
      _ = i2d_ECDSA_SIG(signature, &end)
    }
    return bytes
  }
}
