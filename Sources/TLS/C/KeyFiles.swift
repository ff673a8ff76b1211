import COpenSSL

/// Parses PEM and PKCS#12 into OpenSSL handles. Never asks for a passphrase on a terminal.
enum KeyFiles {
  static func privateKey(_ pem: [UInt8], file: String?, passphrase: String?) throws(CredentialError) -> OpaquePointer {
    let (key, wasAsked) = withBIO(pem) { bio in
      var request = PassphraseRequest(passphrase: passphrase)
      let key = withUnsafeMutablePointer(to: &request) { PEM_read_bio_PrivateKey(bio, nil, answerPassphrase, $0) }
      return (key, request.wasAsked)
    }
    if let key { return key }
    guard wasAsked else { throw TLSSetting.failure(file, "holds no private key in PEM form") }
    throw TLSSetting.failure(
      file, passphrase == nil ? "the private key needs a passphrase" : "the passphrase does not open the private key")
  }

  /// All certificates of a PEM text in order, at least one. The caller owns them.
  static func certificates(_ pem: [UInt8], file: String?) throws(CredentialError) -> [OpaquePointer] {
    var found: [OpaquePointer] = []
    let isWhole = withBIO(pem) { bio in
      while let certificate = PEM_read_bio_X509(bio, nil, refusePassphrase, nil) { found.append(certificate) }
      return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE
    }
    guard isWhole, !found.isEmpty else {
      for certificate in found { X509_free(certificate) }
      throw TLSSetting.failure(
        file, isWhole ? "holds no certificate in PEM form" : "holds a certificate that cannot be read")
    }
    ERR_clear_error()
    return found
  }

  struct Bundle {
    var key: OpaquePointer
    var certificate: OpaquePointer
    var chain: [OpaquePointer]
  }

  static func pkcs12(_ bytes: [UInt8], file: String?, passphrase: String) throws(CredentialError) -> Bundle {
    ERR_clear_error()
    guard let archive = withBIO(bytes, { d2i_PKCS12_bio($0, nil) }) else {
      throw TLSSetting.failure(file, "is no PKCS#12 archive")
    }
    defer { PKCS12_free(archive) }
    var key: OpaquePointer?
    var certificate: OpaquePointer?
    var others: OpaquePointer?
    var isOpen = PKCS12_parse(archive, passphrase, &key, &certificate, &others) == 1
    if !isOpen, loadsLegacyAlgorithms {
      // Keychain's archives use RC2 and 3DES, which OpenSSL 3 has only in its legacy provider.
      isOpen = PKCS12_parse(archive, passphrase, &key, &certificate, &others) == 1
    }
    guard isOpen else {
      let isWrong = ERR_GET_REASON(ERR_peek_last_error()) == PKCS12_R_MAC_VERIFY_FAILURE
      throw TLSSetting.failure(
        file, isWrong ? "the passphrase does not open the archive" : "the archive cannot be read: \(OpenSSLError.text())")
    }
    defer { shim_x509_stack_free(others) }
    guard let key, let certificate else {
      EVP_PKEY_free(key)
      X509_free(certificate)
      throw TLSSetting.failure(file, "the archive does not hold both a certificate and its private key")
    }
    var chain: [OpaquePointer] = []
    for index in 0..<shim_x509_stack_count(others) {
      guard let one = shim_x509_stack_at(others, index) else { continue }
      X509_up_ref(one)
      chain.append(one)
    }
    return Bundle(key: key, certificate: certificate, chain: chain)
  }

  static func withBIO<Result>(_ bytes: [UInt8], _ body: (OpaquePointer?) -> Result) -> Result {
    ERR_clear_error()
    return bytes.withUnsafeBytes { raw in
      let bio = shim_memory_bio(raw.baseAddress, Int32(clamping: raw.count))
      defer { BIO_free(bio) }
      return body(bio)
    }
  }

  /// The output of `body`; nil if it fails.
  static func written(by body: (OpaquePointer?) -> Bool) -> [UInt8]? {
    let bio = BIO_new(BIO_s_mem())
    defer { BIO_free(bio) }
    guard body(bio) else { return nil }
    var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(bio))
    return Int(BIO_read(bio, &bytes, Int32(bytes.count))) == bytes.count ? bytes : nil
  }
}

private struct PassphraseRequest {
  let passphrase: String?
  var wasAsked = false
}

private func answerPassphrase(
  _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _: Int32, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
  guard let buffer, let request = argument?.assumingMemoryBound(to: PassphraseRequest.self) else { return -1 }
  request.pointee.wasAsked = true
  guard let passphrase = request.pointee.passphrase, passphrase.utf8.count <= Int(size) else { return -1 }
  for (index, byte) in passphrase.utf8.enumerated() { buffer[index] = CChar(bitPattern: byte) }
  return Int32(passphrase.utf8.count)
}

private func refusePassphrase(_: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?) -> Int32 { -1 }

/// OpenSSL's legacy provider, loaded when a file first needs it. To load any provider explicitly disables the automatic loading of
/// the default one.
private let loadsLegacyAlgorithms = OSSL_PROVIDER_load(nil, "default") != nil && OSSL_PROVIDER_load(nil, "legacy") != nil
