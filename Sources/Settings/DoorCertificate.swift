import TLS

/// The loaded certificate chain and key of one of the gateway's listeners.
package struct DoorCertificate {
  package let setting: String
  package let pem: (certificate: [UInt8], key: [UInt8])
  package let identity: Identity

  package var expiry: CertificateExpiry { CertificateExpiry(name: setting, notAfter: identity.notAfter) }

  /// - Parameter door: the path of the listener's settings, such as `gateway.http`.
  init(_ material: (certificate: Material, key: Material), of door: String) throws(ConfigurationError) {
    setting = "\(door).certificate"
    pem = (try material.certificate.bytes(for: setting), try material.key.bytes(for: "\(door).key"))
    let names = (certificate: material.certificate.description, key: material.key.description)
    do throws(CredentialError) {
      identity = try Identity(pem: pem.certificate, file: names.certificate, key: pem.key, keyFile: names.key)
    } catch {
      let isKey = error.file == names.key && names.key != names.certificate
      throw ConfigurationError(key: isKey ? "\(door).key" : setting, problem: "cannot be used: \(error)")
    }
  }
}

extension GatewayHTTPSettings {
  /// nil for plain HTTP.
  package func loadCertificate() throws(ConfigurationError) -> DoorCertificate? {
    guard let identity else { return nil }
    return try DoorCertificate(identity, of: "gateway.http")
  }
}

extension GatewayAPNsSettings {
  package func loadCertificate() throws(ConfigurationError) -> DoorCertificate {
    try DoorCertificate((certificate, key), of: "gateway.apns")
  }

  package func tls(_ own: DoorCertificate) throws(ConfigurationError) -> TLSServerContext {
    let authorities = try clients.map { (material) throws(ConfigurationError) in try material.bytes(for: "gateway.apns.clients")
    }
    return try usable("gateway.apns.clients") { () throws(CredentialError) in
      try TLSServerContext(forOldClients: own.identity, clients: authorities, file: clients?.description)
    }
  }
}
