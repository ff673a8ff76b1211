import Reactor
import TLS

extension Identity {
  /// Reads a PKCS#12 archive (.p12, .pfx), including Keychain's old ciphers.
  public static func pkcs12(_ path: String, passphrase: String = "") throws(CredentialError) -> Identity {
    try Identity(pkcs12: CredentialError.bytes(path), file: path, passphrase: passphrase)
  }
}

extension SigningKey {
  public convenience init(path: String) throws(CredentialError) {
    try self.init(pem: CredentialError.bytes(path), file: path)
  }
}

extension TrustStore {
  public convenience init(file: String) throws(CredentialError) {
    try self.init(pem: CredentialError.bytes(file), file: file)
  }
}

extension TLSClientContext {
  /// - Parameter ca: path of a PEM file with the trusted authorities; nil for the system's.
  public convenience init(ca: String? = nil, identity: Identity? = nil, alpn: [String] = []) throws(CredentialError) {
    let trust = if let ca { try TrustStore(file: ca) } else { try TrustStore.system() }
    try self.init(trust: trust, identity: identity, alpn: alpn)
  }
}
