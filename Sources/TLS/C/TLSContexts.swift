import COpenSSL

/// The shared TLS settings of all connections to one destination. TLS 1.2 or newer. The server certificate is always verified:
/// its issuer, dates and name. Verification can't be turned off. Never changed after `init`; may be shared between threads.
public final class TLSClientContext: @unchecked Sendable {
  let context: OpaquePointer
  private let isApplicationProtocolRequired: Bool

  /// - Parameters:
  ///   - trust: the authorities that may issue the server certificate.
  ///   - identity: presented if the server asks for a client certificate.
  ///   - alpn: protocols by preference.
  ///   - requiresALPN: if `alpn` is not empty, the handshake fails with a server that selects none.
  public init(
    trust: TrustStore, identity: Identity? = nil, alpn: [String] = [], requiresALPN: Bool = true
  ) throws(CredentialError) {
    isApplicationProtocolRequired = requiresALPN && !alpn.isEmpty
    context = try TLSSetting.context(TLS_client_method())
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    // AES-128 first: it needs fewer rounds than AES-256 and is strong enough.
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256")
    SSL_CTX_set1_cert_store(context, trust.store)
    if let identity { try identity.install(in: context) }
    if !alpn.isEmpty {
      let list = try TLSSetting.protocolList(alpn)
      // Unlike other OpenSSL calls, this one returns 0 on success.
      guard SSL_CTX_set_alpn_protos(context, list, UInt32(list.count)) == 0 else { throw TLSSetting.failure(nil, "ALPN") }
    }
  }

  deinit { SSL_CTX_free(context) }

  package func session(on descriptor: Int32, host: String) throws(CredentialError) -> TLSSession {
    try TLSSession(
      context, keeping: self, descriptor: descriptor, isClient: true, host: host,
      isApplicationProtocolRequired: isApplicationProtocolRequired)
  }
}

/// The shared TLS settings of one listener's connections, for simulators and the gateway. A worker doesn't listen with TLS. Never
/// changed after `init`; may be shared between threads.
public final class TLSServerContext: @unchecked Sendable {
  let context: OpaquePointer
  fileprivate let protocols: [UInt8]

  /// - Parameters:
  ///   - clientCA: PEM file. If given, refuses clients without a certificate of one of these authorities.
  ///   - alpn: protocols by preference. A client that offers only others is refused; a client that offers none is not.
  ///   - isObsolete: allows only TLS 1.1, so that tests can check its refusal.
  package init(
    identity: Identity, clientCA: String? = nil, alpn: [String] = [], isObsolete: Bool = false
  ) throws(CredentialError) {
    protocols = try TLSSetting.protocolList(alpn)
    context = try TLSSetting.context(TLS_server_method())
    // No tickets: clients never resume here, and tickets cost bytes on every connection.
    SSL_CTX_set_num_tickets(context, 0)
    try identity.install(in: context)
    if let clientCA {
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
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

  /// For clients without TLS 1.3, possibly thousands of mostly idle ones. The highest version is TLS 1.2: a client with a
  /// refused certificate then learns it in the handshake, and has no unexpected data to read.
  /// - Parameters:
  ///   - clients: PEM of the authorities that may issue client certificates; nil if clients need none.
  ///   - file: the source file of `clients`, for errors.
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
  // The chosen name must outlive the call. It points into the client's list, which does.
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

enum TLSSetting {
  static func context(_ method: OpaquePointer?) throws(CredentialError) -> OpaquePointer {
    OpenSSLError.clear()
    guard let context = SSL_CTX_new(method), shim_ctx_set_min_version(context, TLS1_2_VERSION) == 1 else {
      throw failure(nil, "TLS cannot be set up")
    }
    shim_ctx_set_modes(context)
    // With read-ahead, one system call can return several small records.
    SSL_CTX_set_default_read_buffer_len(context, 32 * 1024)
    return context
  }

  static func failure(_ file: String?, _ reason: String) -> CredentialError {
    OpenSSLError.clear()
    return CredentialError(file: file, reason: reason)
  }

  /// The wire form of RFC 7301 §3.1: each name after its length.
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
