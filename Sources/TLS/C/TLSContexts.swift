import COpenSSL

/// What TLS clients of one destination share. TLS 1.2 or newer; the server's certificate is always verified, for its
/// issuer, its dates and its name: there is no way to turn that off.
public final class TLSClientContext: @unchecked Sendable {
  // An SSL_CTX is safe to share between threads once it is configured.
  let context: OpaquePointer
  let hasApplicationProtocols: Bool

  /// - Parameters:
  ///   - trust: the authorities that a server's certificate must come from.
  ///   - identity: presented when the server asks for a client certificate.
  ///   - alpn: protocols by preference; where there are any, a server that takes none fails the handshake.
  public init(trust: TrustStore, identity: Identity? = nil, alpn: [String] = []) throws(CredentialError) {
    hasApplicationProtocols = !alpn.isEmpty
    context = try TLSSetting.context(TLS_client_method())
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    // AES-128 first: half the rounds, and strong enough for everything sent here.
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256")
    SSL_CTX_set1_cert_store(context, trust.store)
    if let identity { try identity.install(in: context) }
    if hasApplicationProtocols {
      let list = try TLSSetting.protocolList(alpn)
      // Alone in OpenSSL, this call answers 0 for success.
      guard SSL_CTX_set_alpn_protos(context, list, UInt32(list.count)) == 0 else { throw TLSSetting.failure(nil, "ALPN") }
    }
  }

  deinit { SSL_CTX_free(context) }

  package func session(on descriptor: Int32, host: String) throws(CredentialError) -> TLSSession {
    try TLSSession(
      context, keeping: self, descriptor: descriptor, isClient: true, host: host,
      isApplicationProtocolRequired: hasApplicationProtocols)
  }
}

/// What the TLS connections of one listener share. For simulators and the gateway; a worker listens with none.
public final class TLSServerContext: @unchecked Sendable {
  let context: OpaquePointer
  fileprivate let protocols: [UInt8]

  /// - Parameters:
  ///   - clientCA: PEM file; where given, clients are asked for a certificate of one of these authorities.
  ///   - requiresClientCertificate: refuse clients without one; only with `clientCA`.
  ///   - alpn: protocols by preference; a client that offers none of them is refused, one that offers nothing is not.
  ///   - isObsolete: speaks TLS 1.1 only, so that a test can see it refused.
  package init(
    identity: Identity, clientCA: String? = nil, requiresClientCertificate: Bool = false, alpn: [String] = [],
    isObsolete: Bool = false
  ) throws(CredentialError) {
    protocols = try TLSSetting.protocolList(alpn)
    context = try TLSSetting.context(TLS_server_method())
    // No tickets: a client here never resumes, and they are bytes on every connection.
    SSL_CTX_set_num_tickets(context, 0)
    try identity.install(in: context)
    if let clientCA {
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (requiresClientCertificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
      guard SSL_CTX_load_verify_file(context, clientCA) == 1 else {
        throw TLSSetting.failure(clientCA, "is not a readable PEM file of certificate authorities")
      }
      SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(clientCA))
    }
    if isObsolete {
      SSL_CTX_set_cipher_list(context, "DEFAULT:@SECLEVEL=0")
      _ = shim_ctx_set_min_version(context, TLS1_1_VERSION)
      _ = shim_ctx_set_max_version(context, TLS1_1_VERSION)
    }
    if !protocols.isEmpty {
      SSL_CTX_set_alpn_select_cb(context, selectProtocol, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  /// For clients of before TLS 1.3, of which there may be thousands that say nothing for hours: ends with TLS 1.2, so that a client whose
  /// certificate is refused learns it in the handshake, and finds nothing to read that isn't meant for it.
  ///
  /// - Parameters:
  ///   - clients: PEM of the authorities that a client's certificate must come from; nil where clients need none.
  ///   - file: where `clients` came from, for errors.
  public init(forOldClients identity: Identity, clients: [UInt8]?, file: String? = nil) throws(CredentialError) {
    protocols = []
    context = try TLSSetting.context(TLS_server_method())
    guard shim_ctx_end_with_tls12(context) == 1 else { throw TLSSetting.failure(nil, "TLS cannot be set up") }
    shim_ctx_release_buffers(context)
    try identity.install(in: context)
    guard let clients else { return }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    let trust = try TrustStore(pem: clients, file: file)
    withExtendedLifetime(trust) { SSL_CTX_set1_cert_store(context, trust.store) }
    for authority in try KeyFiles.certificates(clients, file: file) {
      SSL_CTX_add_client_CA(context, authority)
      X509_free(authority)
    }
  }

  deinit { SSL_CTX_free(context) }

  package func session(on descriptor: Int32) throws(CredentialError) -> TLSSession {
    try TLSSession(
      context, keeping: self, descriptor: descriptor, isClient: false, host: "", isApplicationProtocolRequired: false)
  }
}

private func selectProtocol(
  _: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
  _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
  guard let argument, let chosen, let length, let offered else { return SSL_TLSEXT_ERR_ALERT_FATAL }
  let context = Unmanaged<TLSServerContext>.fromOpaque(argument).takeUnretainedValue()
  // What is chosen must outlive the call: it points into the client's list, which does.
  let list = UnsafeBufferPointer(start: offered, count: Int(offeredLength))
  var own = context.protocols[...]
  while let size = own.first, own.count > Int(size) {
    let name = own.dropFirst().prefix(Int(size))
    var at = 0
    while at < list.count, at + Int(list[at]) < list.count {
      let entry = list[(at + 1)..<(at + 1 + Int(list[at]))]
      if entry.elementsEqual(name) {
        chosen.pointee = offered + at + 1
        length.pointee = list[at]
        return SSL_TLSEXT_ERR_OK
      }
      at += 1 + Int(list[at])
    }
    own = own.dropFirst(1 + Int(size))
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// What both kinds of context have in common.
enum TLSSetting {
  static func context(_ method: OpaquePointer?) throws(CredentialError) -> OpaquePointer {
    OpenSSLError.clear()
    guard let context = SSL_CTX_new(method), shim_ctx_set_min_version(context, TLS1_2_VERSION) == 1 else {
      throw failure(nil, "TLS cannot be set up")
    }
    shim_ctx_set_modes(context)
    // Reading ahead, one call to the kernel brings in several small records.
    SSL_CTX_set_default_read_buffer_len(context, 32 * 1024)
    return context
  }

  static func failure(_ file: String?, _ reason: String) -> CredentialError {
    OpenSSLError.clear()
    return CredentialError(file: file, reason: reason)
  }

  /// The wire form of RFC 7301 §3.1: each name with its length before it.
  static func protocolList(_ names: [String]) throws(CredentialError) -> [UInt8] {
    var list: [UInt8] = []
    for name in names {
      guard (1...255).contains(name.utf8.count) else { throw failure(nil, "an ALPN name has 1 to 255 bytes") }
      list.append(UInt8(name.utf8.count))
      list.append(contentsOf: name.utf8)
    }
    return list
  }
}
