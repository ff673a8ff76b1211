import HTTP2

/// How the FCM simulator presents itself: the send endpoint and, on the same port, the OAuth token endpoint `/token`.
public struct FCMConfiguration: SimulatorConfiguration {
  public var host = "127.0.0.1"
  /// 0 takes any free port.
  public var port: UInt16 = 0
  /// PEM files of the server's certificate chain and key; without them there is no TLS.
  public var certificate: String?
  public var key: String?
  /// Client certificates are never asked for.
  public var clientAuthority: String? { nil }
  /// The only project that exists; nil for any.
  public var project: String?
  /// `client_email` of the only service account; nil for any.
  public var clientEmail: String?
  /// PEM of the service account's public key (or of the private one): the signatures of assertions are then checked.
  public var accountKey: [UInt8]?
  /// Seconds that an access token lives.
  public var tokenLifetime = 3599
  /// Keys are tokens, ids of installations, `/topics/<name>`, conditions, and `/token` for the token endpoint.
  public var script = Script()
  public var http2 = ServerConfiguration()

  public init() {
    http2.maxConcurrentStreams = 100
    http2.maxHeaderListSize = 16_384
    http2.initialWindowSize = 1 << 20
    http2.streamLimitGoAway = (.protocolError, Array("exceeded_max_concurrent_streams".utf8))
  }
}
