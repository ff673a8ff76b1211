import TLS

extension CredentialError {
  /// - Returns: the file's contents.
  package static func bytes(_ path: String) throws(CredentialError) -> [UInt8] {
    do { return try FileContents.read(path) } catch {
      throw CredentialError(file: path, reason: "cannot be read (\(error))")
    }
  }
}

extension Identity {
  /// Reads a PEM file. The key may be in the same file or in its own.
  public static func pem(_ path: String, key keyPath: String? = nil, passphrase: String? = nil) throws(CredentialError)
    -> Identity
  {
    let pem = try CredentialError.bytes(path)
    let key = if let keyPath { try CredentialError.bytes(keyPath) } else { pem }
    return try Identity(pem: pem, file: path, key: key, keyFile: keyPath ?? path, passphrase: passphrase)
  }
}

extension TLSServerContext {
  /// - Parameters:
  ///   - certificate: PEM file: the certificate, then its chain.
  ///   - key: PEM file without a passphrase.
  ///   - clientCA: PEM file; refuses clients without a certificate of one of these authorities.
  ///   - alpn: protocols by preference. A client that offers only others is refused; a client that offers none is accepted.
  public convenience init(
    certificate: String, key: String, clientCA: String? = nil, alpn: [String] = []
  ) throws(CredentialError) {
    try self.init(identity: .pem(certificate, key: key), clientCA: clientCA, alpn: alpn)
  }
}
