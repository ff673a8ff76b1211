import COpenSSL

/// Describes in plain words why a handshake failed; one phrase per cause.
enum TLSFailure {
  /// From the verification result of the peer's certificate; nil if it is valid.
  static func ofVerification(_ result: Int, host: String, peer: String) -> String? {
    switch Int32(truncatingIfNeeded: result) {
    case X509_V_OK: nil
    case X509_V_ERR_CERT_HAS_EXPIRED: "\(peer) certificate has expired"
    case X509_V_ERR_CERT_NOT_YET_VALID: "\(peer) certificate is not valid yet"
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: "\(peer) certificate is self-signed and not trusted"
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_SIGNATURE_FAILURE:
      "\(peer) certificate was issued by no trusted authority"
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: "\(peer) certificate is not for \(host)"
    case X509_V_ERR_CERT_REVOKED: "\(peer) certificate has been revoked"
    case X509_V_ERR_INVALID_PURPOSE: "\(peer) certificate is not meant for this purpose"
    default: "\(peer) certificate was refused: \(String(cString: X509_verify_cert_error_string(result)))"
    }
  }

  /// From OpenSSL's reason code: a local finding, or 1000 + the alert from the peer (RFC 8446 §6).
  static func ofReason(_ reason: Int32, _ text: String, isClient: Bool) -> String {
    let credential = isClient ? "the server refused the client certificate" : "the client refused the certificate"
    return switch reason {
    case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_VERSION_TOO_LOW, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION,
      SSL_R_NO_PROTOCOLS_AVAILABLE:
      "the peer does not speak TLS 1.2 or newer"
    case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_HTTPS_PROXY_REQUEST:
      "the peer does not speak TLS"
    case alert(120), SSL_R_NO_APPLICATION_PROTOCOL: "no common application protocol (ALPN)"
    case alert(42), alert(43), alert(46), alert(49): credential
    case alert(44): "\(credential): revoked"
    case alert(45): "\(credential): expired"
    case alert(48): "\(credential): issued by no authority it trusts"
    case alert(116), SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      isClient ? "the server demands a client certificate" : "the client sent no certificate"
    case SSL_R_UNEXPECTED_EOF_WHILE_READING: "the peer closed the connection during the handshake"
    default: text
    }
  }

  /// Certificate alerts end a handshake, even if TLS 1.3 delivers them after the client's part of it (RFC 8446 §4.4.2.4).
  static func isCertificateAlert(_ reason: Int32) -> Bool {
    [alert(42), alert(43), alert(44), alert(45), alert(46), alert(48), alert(49), alert(116)].contains(reason)
  }

  private static func alert(_ number: Int32) -> Int32 { SSL_AD_REASON_OFFSET + number }
}
