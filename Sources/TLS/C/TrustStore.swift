import COpenSSL
import Glibc

/// Trusted authorities, shared by TLS contexts. The system's authorities take about 40 ms to parse and 1 MB of memory.
/// Immutable; may be shared between threads.
public final class TrustStore: @unchecked Sendable {
  let store: OpaquePointer

  public static func system() throws(CredentialError) -> TrustStore {
    let trust = try TrustStore()
    guard X509_STORE_set_default_paths(trust.store) == 1, trust.hasAuthorities else {
      throw CredentialError(
        file: systemFile,
        reason: "this system has no certificate authorities: install ca-certificates, or name a file by `ca` or SSL_CERT_FILE")
    }
    return trust
  }

  /// OpenSSL treats a missing file as empty, and searches the folder only when it needs an authority.
  private var hasAuthorities: Bool {
    if shim_x509_store_count(store) > 0 { return true }
    return Self.systemFolders.split(separator: ":").contains { Self.holdsAuthorities(String($0)) }
  }

  /// Each file is named by a hash, such as 5ed36f99.0.
  private static func holdsAuthorities(_ path: String) -> Bool {
    guard let folder = opendir(path) else { return false }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.wholeMatch(of: /[0-9a-f]{8}\.[0-9]+/) != nil { return true }
    }
    return false
  }

  private static var systemFile: String {
    getenv(X509_get_default_cert_file_env()).map { String(cString: $0) } ?? String(cString: X509_get_default_cert_file())
  }

  private static var systemFolders: String {
    getenv(X509_get_default_cert_dir_env()).map { String(cString: $0) } ?? String(cString: X509_get_default_cert_dir())
  }

  /// - Parameters:
  ///   - pem: the authorities' certificates.
  ///   - file: the source file, for errors.
  public convenience init(pem: [UInt8], file: String? = nil) throws(CredentialError) {
    try self.init()
    for certificate in try KeyFiles.certificates(pem, file: file) {
      X509_STORE_add_cert(store, certificate)
      X509_free(certificate)
    }
  }

  private init() throws(CredentialError) {
    OpenSSLError.clear()
    guard let store = X509_STORE_new() else { throw TLSSetting.failure(nil, "TLS cannot be set up") }
    self.store = store
  }

  deinit { X509_STORE_free(store) }
}
