import COpenSSL

/// A private key that signs tokens: ES256 for APNs (.p8), RS256 for Google service accounts. Immutable and shareable by
/// threads.
public final class SigningKey: @unchecked Sendable {
  public enum Algorithm: String, Sendable {
    case es256 = "ES256"
    case rs256 = "RS256"
  }

  /// P-256 keys sign ES256; RSA keys of at least 2048 bits sign RS256.
  public let algorithm: Algorithm
  private let key: OpaquePointer

  /// - Parameters:
  ///   - pem: unencrypted PKCS#8 in PEM form.
  ///   - file: the source file, for errors.
  public init(pem: [UInt8], file: String? = nil) throws(CredentialError) {
    key = try KeyFiles.privateKey(pem, file: file, passphrase: nil)
    switch EVP_PKEY_get_base_id(key) {
    case EVP_PKEY_EC:
      algorithm = .es256
      guard Self.groupName(key) == "prime256v1" else {
        throw TLSSetting.failure(file, "the elliptic-curve key is not on the curve P-256 that ES256 needs")
      }
    case EVP_PKEY_RSA:
      algorithm = .rs256
      guard EVP_PKEY_get_bits(key) >= 2048 else {
        throw TLSSetting.failure(file, "the RSA key has fewer than the 2048 bits that RS256 needs")
      }
    default:
      algorithm = .rs256
      throw TLSSetting.failure(file, "the key is neither P-256 nor RSA")
    }
  }

  deinit { EVP_PKEY_free(key) }

  /// The uncompressed point of a P-256 key, 65 bytes; nil for RSA.
  public var publicPoint: [UInt8]? {
    guard algorithm == .es256 else { return nil }
    var number: OpaquePointer?
    guard EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1, let number else { return nil }
    defer { BN_clear_free(number) }
    return P256.publicPoint(of: number)
  }

  /// The signature in JWS form: R ‖ S, 64 bytes, not DER (RFC 7518 §3.4). Deterministic (RFC 6979). It is verified, because a
  /// faulty deterministic signature would reveal the key.
  public func signES256(_ message: [UInt8]) throws(CredentialError) -> [UInt8] {
    guard algorithm == .es256 else { throw CredentialError(file: nil, reason: "an RSA key cannot sign ES256") }
    OpenSSLError.clear()
    guard let signature = DeterministicSignature.make(key, message) else {
      throw CredentialError(file: nil, reason: "signing failed: \(OpenSSLError.text())")
    }
    guard VerifyingKey.verifies(signature, of: message, key) else {
      throw CredentialError(file: nil, reason: "signing failed: the signature is not the key's")
    }
    return signature
  }

  /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 §3.3).
  public func signRS256(_ message: [UInt8]) throws(CredentialError) -> [UInt8] {
    guard algorithm == .rs256 else { throw CredentialError(file: nil, reason: "an elliptic-curve key cannot sign RS256") }
    OpenSSLError.clear()
    let context = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(context) }
    var length = 0
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
      EVP_DigestSign(context, nil, &length, message, message.count) == 1
    else { throw CredentialError(file: nil, reason: "signing failed: \(OpenSSLError.text())") }
    var signature = [UInt8](repeating: 0, count: length)
    guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1 else {
      throw CredentialError(file: nil, reason: "signing failed: \(OpenSSLError.text())")
    }
    return Array(signature[..<length])
  }

  private static func groupName(_ key: OpaquePointer) -> String {
    var name = [CChar](repeating: 0, count: 64)
    var length = 0
    guard EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else { return "" }
    return String(decoding: name[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
