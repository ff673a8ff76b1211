import TLS

/// The settings of a client certificate: a PKCS#12 archive, or PEM.
public struct IdentityMaterial: Sendable, Hashable {
  public var certificate: Material
  /// Nil if the certificate's material contains the key.
  public var key: Material?
  public var passphrase: Material?

  /// The names of the settings.
  struct Names {
    let certificate: String
    let key: String
    let passphrase: String

    static let broker = Names(certificate: "brokerCertificate", key: "brokerKey", passphrase: "brokerPassphrase")
    static let inCredential = Names(certificate: "certificate", key: "key", passphrase: "passphrase")

    func inside(_ setting: String) -> Names {
      Names(certificate: "\(setting).\(certificate)", key: "\(setting).\(key)", passphrase: "\(setting).\(passphrase)")
    }
  }

  /// Nil without a certificate. A key or passphrase alone is an error.
  static func read(_ reader: ConfigurationReader, _ names: Names) -> IdentityMaterial? {
    guard let certificate = reader.material(names.certificate) else {
      for other in [names.key, names.passphrase] where reader.has(other) && !reader.has(names.certificate) {
        reader.report(other, "is given without \(names.certificate)")
      }
      return nil
    }
    return IdentityMaterial(
      certificate: certificate, key: reader.material(names.key), passphrase: reader.secret(names.passphrase))
  }

  func load(_ files: MaterialCache, _ names: Names) throws(ConfigurationError) -> Identity {
    let bytes = try files.bytes(of: certificate, for: names.certificate)
    let keyBytes = if let key { try files.bytes(of: key, for: names.key) } else { bytes }
    var phrase: String?
    if let passphrase { phrase = try files.text(of: passphrase, for: names.passphrase) }
    return try usable(names.certificate) { () throws(CredentialError) in
      bytes.firstRange(of: Array("-----BEGIN".utf8)) == nil
        ? try Identity(pkcs12: bytes, file: certificate.path, passphrase: phrase ?? "")
        : try Identity(
          pem: bytes, file: certificate.path, key: keyBytes, keyFile: (key ?? certificate).path, passphrase: phrase)
    }
  }

  func materials(_ names: Names) -> [(name: String, material: Material)] {
    let all: [(String, Material?)] = [(names.certificate, certificate), (names.key, key), (names.passphrase, passphrase)]
    return all.compactMap { name, material in material.map { (name, $0) } }
  }
}
