import COpenSSL
import Glibc
import Wire

/// One TLS connection on a non-blocking descriptor.
package final class TLSSession {
  package enum Handshake {
    case done
    case wantsInput
    case wantsOutput
    case failed(String)
  }

  package enum ReadCondition: Equatable {
    case drained
    case more
    /// The peer closed in order.
    case ended
    case failed(TransportEnd)
  }

  package enum WriteStep {
    case count(Int)
    /// The kernel's buffer is full, or TLS must read first.
    case blocked
    case failed(TransportEnd)
  }

  private let ssl: OpaquePointer
  private let context: AnyObject
  private let isClient: Bool
  private let host: String
  private let isApplicationProtocolRequired: Bool
  private var isEstablished = false
  private var isBroken = false
  private var hasReceived = false
  /// True after our close notification. The peer may then close without one.
  private var hasSaidGoodbye = false
  /// True if reading can continue only after a write.
  package private(set) var readWantsOutput = false

  /// - Parameters:
  ///   - context: kept alive with the session, because callbacks refer to it.
  ///   - host: the name that the peer's certificate must have, and the SNI if it is not an address; empty for a server.
  init(
    _ sslContext: OpaquePointer, keeping context: AnyObject, descriptor: Int32, isClient: Bool, host: String,
    isApplicationProtocolRequired: Bool
  ) throws(CredentialError) {
    OpenSSLError.clear()
    guard let ssl = SSL_new(sslContext) else { throw CredentialError(file: nil, reason: "TLS: \(OpenSSLError.text())") }
    self.ssl = ssl
    self.context = context
    self.isClient = isClient
    self.host = host
    self.isApplicationProtocolRequired = isApplicationProtocolRequired
    guard SSL_set_fd(ssl, descriptor) == 1 else { throw CredentialError(file: nil, reason: "TLS: \(OpenSSLError.text())") }
    if isClient {
      SSL_set_connect_state(ssl)
      try expect(host)
    } else {
      SSL_set_accept_state(ssl)
    }
  }

  deinit { SSL_free(ssl) }

  /// Requires this host in the certificate's subject alternative names. An address matches only an address.
  private func expect(_ host: String) throws(CredentialError) {
    let parameters = SSL_get0_param(ssl)
    let isAccepted: Bool
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 {
      isAccepted = true
    } else {
      OpenSSLError.clear()
      // NEVER_CHECK_SUBJECT: otherwise OpenSSL uses the common name if there is no alternative name (RFC 9110 §4.3.4).
      X509_VERIFY_PARAM_set_hostflags(
        parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
      isAccepted = X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1 && shim_set_server_name(ssl, host) == 1
    }
    guard isAccepted else { throw CredentialError(file: nil, reason: "TLS: \(host) cannot be a server's name") }
  }

  /// Continues the handshake as far as the socket allows.
  package func handshake() -> Handshake {
    OpenSSLError.clear()
    let result = SSL_do_handshake(ssl)
    if result == 1 {
      if isApplicationProtocolRequired && applicationProtocol == nil {
        isBroken = true
        return .failed("no common application protocol (ALPN)")
      }
      isEstablished = true
      return .done
    }
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .wantsInput
    case SSL_ERROR_WANT_WRITE: return .wantsOutput
    case SSL_ERROR_SYSCALL:
      isBroken = true
      return .failed(errno == 0 ? "the peer closed the connection during the handshake" : Self.systemReason())
    default:
      isBroken = true
      let peer = isClient ? "the server's" : "the client's"
      if let why = TLSFailure.ofVerification(SSL_get_verify_result(ssl), host: host, peer: peer) { return .failed(why) }
      guard let error = OpenSSLError.take() else { return .failed("no reason given") }
      return .failed(TLSFailure.ofReason(error.reason, error.text, isClient: isClient))
    }
  }

  package var applicationProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &length)
    guard let name, length > 0 else { return nil }
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  /// The UID in the subject of the peer's verified certificate. For an Apple push certificate this is the app's bundle id.
  package var peerUserID: String? {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
    defer { X509_free(certificate) }
    return Identity.subject(certificate, NID_userId)
  }

  package var hasPending: Bool { SSL_has_pending(ssl) == 1 }

  /// Fills the buffer with all available records.
  package func read(into buffer: UnsafeMutableRawBufferPointer) -> (count: Int, condition: ReadCondition) {
    var filled = 0
    readWantsOutput = false
    while filled < buffer.count {
      ERR_clear_error()
      var count = 0
      let result = SSL_read_ex(ssl, buffer.baseAddress! + filled, buffer.count - filled, &count)
      if result == 1 {
        filled += count
        hasReceived = true
        if SSL_has_pending(ssl) == 0 { return (filled, .drained) }
        continue
      }
      switch SSL_get_error(ssl, result) {
      case SSL_ERROR_WANT_READ: return (filled, .drained)
      case SSL_ERROR_WANT_WRITE:
        readWantsOutput = true
        return (filled, .drained)
      case SSL_ERROR_ZERO_RETURN: return (filled, .ended)
      case let error:
        let reason = failure(error)
        return (filled, hasSaidGoodbye && reason == Self.closedWithoutNotification ? .ended : .failed(reason))
      }
    }
    return (filled, .more)
  }

  /// Writes one record, at most 16 KiB (RFC 8446 §5.1).
  package func write(_ bytes: UnsafeRawBufferPointer) -> WriteStep {
    ERR_clear_error()
    var count = 0
    let result = SSL_write_ex(ssl, bytes.baseAddress, min(bytes.count, 16384), &count)
    if result == 1 { return .count(count) }
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_READ: return .blocked
    case let error: return .failed(failure(error))
    }
  }

  private func failure(_ error: Int32) -> TransportEnd {
    isBroken = true
    if error == SSL_ERROR_SYSCALL { return .failed(errno == 0 ? "the peer closed without notice" : Self.systemReason()) }
    guard let queued = OpenSSLError.take() else { return .failed("TLS: no reason given") }
    if queued.reason == SSL_R_UNEXPECTED_EOF_WHILE_READING {
      return Self.closedWithoutNotification
    }
    let why = TLSFailure.ofReason(queued.reason, queued.text, isClient: isClient)
    return isClient && !hasReceived && TLSFailure.isCertificateAlert(queued.reason)
      ? .handshakeFailed(why) : .failed("TLS: \(why)")
  }

  private static let closedWithoutNotification = TransportEnd.failed("the peer closed without a TLS close notification")

  private static func systemReason() -> String { String(cString: strerror(errno)) }

  /// Sends a close notification if the kernel accepts it at once. Never waits for the answer.
  package func sendCloseNotification() {
    guard isEstablished, !isBroken else { return }
    ERR_clear_error()
    hasSaidGoodbye = true
    SSL_shutdown(ssl)
    ERR_clear_error()
  }
}
