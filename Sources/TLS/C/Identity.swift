import COpenSSL
import Glibc

/// A client or server certificate with its private key and chain. Immutable; may be shared between threads.
public final class Identity: @unchecked Sendable {
  private let key: OpaquePointer
  private let certificate: OpaquePointer
  private let chain: [OpaquePointer]

  /// End of the certificate's validity in Unix seconds.
  public let notAfter: Int64
  /// The topics in Apple's extension 1.2.840.113635.100.6.3.6; empty if the certificate has none.
  public let topics: [String]

  /// - Parameters:
  ///   - pem: the certificate, followed by its chain.
  ///   - key: the private key in PEM form.
  ///   - file, keyFile: the source files, for errors.
  public convenience init(
    pem: [UInt8], file: String? = nil, key: [UInt8], keyFile: String? = nil, passphrase: String? = nil
  ) throws(CredentialError) {
    let certificates = try KeyFiles.certificates(pem, file: file)
    let privateKey: OpaquePointer
    do { privateKey = try KeyFiles.privateKey(key, file: keyFile, passphrase: passphrase) } catch {
      for certificate in certificates { X509_free(certificate) }
      throw error
    }
    try self.init(
      KeyFiles.Bundle(key: privateKey, certificate: certificates[0], chain: Array(certificates.dropFirst())), file: file)
  }

  /// - Parameter pkcs12: a PKCS#12 archive (.p12, .pfx). The old ciphers of Apple's Keychain are supported.
  public convenience init(pkcs12: [UInt8], file: String? = nil, passphrase: String = "") throws(CredentialError) {
    try self.init(KeyFiles.pkcs12(pkcs12, file: file, passphrase: passphrase), file: file)
  }

  private init(_ bundle: KeyFiles.Bundle, file: String?) throws(CredentialError) {
    key = bundle.key
    certificate = bundle.certificate
    chain = bundle.chain
    notAfter = Self.unixSeconds(X509_get0_notAfter(certificate))
    topics = AppleTopics.names(in: Self.extensionValue(certificate, AppleTopics.identifier))
    guard X509_check_private_key(certificate, key) == 1 else {
      throw TLSSetting.failure(file, "the private key does not belong to the certificate")
    }
  }

  deinit {
    EVP_PKEY_free(key)
    X509_free(certificate)
    for one in chain { X509_free(one) }
  }

  func install(in context: OpaquePointer) throws(CredentialError) {
    OpenSSLError.clear()
    guard SSL_CTX_use_certificate(context, certificate) == 1, SSL_CTX_use_PrivateKey(context, key) == 1 else {
      throw CredentialError(file: nil, reason: "the certificate cannot be used: \(OpenSSLError.text())")
    }
    for one in chain { _ = shim_ctx_add_chain_certificate(context, one) }
  }

  private static func unixSeconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
    var parts = tm()
    guard ASN1_TIME_to_tm(time, &parts) == 1 else { return 0 }
    return Int64(timegm(&parts))
  }

  static func subject(_ certificate: OpaquePointer, _ attribute: Int32) -> String? {
    let name = X509_get_subject_name(certificate)
    let index = X509_NAME_get_index_by_NID(name, attribute, -1)
    guard index >= 0, let data = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)) else { return nil }
    var utf8: UnsafeMutablePointer<UInt8>?
    let length = ASN1_STRING_to_UTF8(&utf8, data)
    guard length >= 0, let utf8 else { return nil }
    defer { CRYPTO_free(utf8, nil, 0) }
    return String(decoding: UnsafeBufferPointer(start: utf8, count: Int(length)), as: UTF8.self)
  }

  private static func extensionValue(_ certificate: OpaquePointer, _ identifier: String) -> [UInt8] {
    guard let object = OBJ_txt2obj(identifier, 1) else { return [] }
    defer { ASN1_OBJECT_free(object) }
    let index = X509_get_ext_by_OBJ(certificate, object, -1)
    guard index >= 0, let value = X509_EXTENSION_get_data(X509_get_ext(certificate, index)) else { return [] }
    return Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(value), count: Int(ASN1_STRING_length(value))))
  }
}
