import COpenSSL

/// Trusted authorities, parsed once and shared by every TLS context that verifies with them: the system's take some 40 ms and
/// a megabyte. Immutable, shareable between threads.
public final class TrustStore: @unchecked Sendable {
  // OpenSSL counts the references and locks the look-ups.
  let store: OpaquePointer

  /// The authorities that the system trusts.
  public static func system() throws(CredentialError) -> TrustStore {
    let trust = try TrustStore()
    guard X509_STORE_set_default_paths(trust.store) == 1 else {
      throw TLSSetting.failure(nil, "the system's certificate authorities cannot be read")
    }
    return trust
  }

  /// - Parameters:
  ///   - pem: the authorities' certificates.
  ///   - file: where they came from, for errors.
  public convenience init(pem: [UInt8], file: String? = nil) throws(CredentialError) {
    try self.init()
    for certificate in try KeyFiles.certificates(pem, file: file) {
      X509_STORE_add_cert(store, certificate)
      X509_free(certificate)
    }
  }

  public convenience init(file: String) throws(CredentialError) {
    try self.init(pem: KeyFiles.bytes(file), file: file)
  }

  private init() throws(CredentialError) {
    OpenSSLError.clear()
    guard let store = X509_STORE_new() else { throw TLSSetting.failure(nil, "TLS cannot be set up") }
    self.store = store
  }

  deinit { X509_STORE_free(store) }
}
