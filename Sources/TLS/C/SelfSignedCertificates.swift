import COpenSSL

/// Keys and certificates for tests: an authority and a server certificate signed by it, on P-256, valid for ten years.
public struct SelfSignedCertificates {
  public let authority: [UInt8]
  public let certificate: [UInt8]
  /// PKCS#8 PEM. The authority's key is not kept.
  public let key: [UInt8]

  private static let seconds = 10 * 365 * 86_400

  /// - Parameter names: subject alternative names in OpenSSL's form, such as `DNS:localhost` or `IP:127.0.0.1`.
  public init(for names: [String]) throws(CredentialError) {
    let authorityKey = try Self.makeKey(EVP_PKEY_EC)
    defer { EVP_PKEY_free(authorityKey) }
    let serverKey = try Self.makeKey(EVP_PKEY_EC)
    defer { EVP_PKEY_free(serverKey) }
    let signed = try Self.make(
      "pushfleet test CA", authorityKey, issuer: nil, authorityKey,
      [
        (NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign"),
        (NID_subject_key_identifier, "hash"),
      ])
    defer { X509_free(signed) }
    let server = try Self.make(
      "localhost", serverKey, issuer: signed, authorityKey,
      [
        (NID_subject_alt_name, names.joined(separator: ",")), (NID_ext_key_usage, "serverAuth"),
        (NID_authority_key_identifier, "keyid"),
      ])
    defer { X509_free(server) }
    authority = try Self.pem { PEM_write_bio_X509($0, signed) }
    certificate = try Self.pem { PEM_write_bio_X509($0, server) }
    key = try Self.pem(ofKey: serverKey)
  }

  public enum KeyKind { case p256, rsa }

  /// A new private key as PKCS#8 PEM, the form of Apple's and Google's keys.
  public static func privateKey(_ kind: KeyKind) throws(CredentialError) -> [UInt8] {
    let key = try makeKey(kind == .p256 ? EVP_PKEY_EC : EVP_PKEY_RSA)
    defer { EVP_PKEY_free(key) }
    return try pem(ofKey: key)
  }

  public static func publicKey(of pem: [UInt8]) throws(CredentialError) -> [UInt8] {
    let key = try KeyFiles.privateKey(pem, file: nil, passphrase: nil)
    defer { EVP_PKEY_free(key) }
    return try self.pem { PEM_write_bio_PUBKEY($0, key) }
  }

  private static var failure: CredentialError { CredentialError(file: nil, reason: "OpenSSL: \(OpenSSLError.text())") }

  private static func makeKey(_ type: Int32) throws(CredentialError) -> OpaquePointer {
    OpenSSLError.clear()
    let context = EVP_PKEY_CTX_new_id(type, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1,
      type == EVP_PKEY_EC
        ? EVP_PKEY_CTX_set_group_name(context, "prime256v1") == 1 : EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048) == 1,
      EVP_PKEY_keygen(context, &key) == 1, let key
    else { throw failure }
    return key
  }

  private static func make(
    _ name: String, _ key: OpaquePointer, issuer: OpaquePointer?, _ signer: OpaquePointer, _ extensions: [(Int32, String)]
  ) throws(CredentialError) -> OpaquePointer {
    OpenSSLError.clear()
    guard let certificate = X509_new() else { throw failure }
    var isDone = false
    defer { if !isDone { X509_free(certificate) } }
    let subject = X509_get_subject_name(certificate)
    var serial: UInt64 = 0
    let isRandom = withUnsafeMutableBytes(of: &serial) {
      RAND_bytes($0.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32($0.count)) == 1
    }
    guard isRandom, X509_set_version(certificate, 2) == 1,
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1,
      // Valid from one hour ago, because clocks differ.
      X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) != nil,
      X509_gmtime_adj(X509_getm_notAfter(certificate), seconds) != nil, X509_set_pubkey(certificate, key) == 1,
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, Array(name.utf8), Int32(name.utf8.count), -1, 0) == 1,
      X509_set_issuer_name(certificate, issuer.map { X509_get_subject_name($0) } ?? subject) == 1
    else { throw failure }
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer ?? certificate, certificate, nil, nil, 0)
    for (number, value) in extensions {
      guard let made = X509V3_EXT_conf_nid(nil, &context, number, value) else { throw failure }
      defer { X509_EXTENSION_free(made) }
      guard X509_add_ext(certificate, made, -1) == 1 else { throw failure }
    }
    guard X509_sign(certificate, signer, EVP_sha256()) > 0 else { throw failure }
    isDone = true
    return certificate
  }

  private static func pem(ofKey key: OpaquePointer) throws(CredentialError) -> [UInt8] {
    try pem { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
  }

  private static func pem(_ write: (OpaquePointer?) -> Int32) throws(CredentialError) -> [UInt8] {
    guard let bytes = KeyFiles.written(by: { write($0) == 1 }) else { throw failure }
    return bytes
  }
}
