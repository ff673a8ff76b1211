import HTTP2

/// Settings of the FCM simulator: the send endpoint and, on the same port, the OAuth token endpoint `/token`.
public struct FCMConfiguration: Sendable {
  /// The only existing project; nil for any.
  public var project: String?
  /// `client_email` of the only service account; nil for any.
  public var clientEmail: String?
  /// PEM of the service account's public or private key. If it is set, the signatures of assertions are checked.
  public var accountKey: [UInt8]?
  /// Lifetime of an access token in seconds.
  public var tokenLifetime = 3599
  /// Its keys are tokens, installation ids, `/topics/<name>`, conditions, and `/token` for the token endpoint.
  public var script = Script()
  public var http2 = ServerConfiguration()

  public init() {
    http2.maxConcurrentStreams = 100
    http2.maxHeaderListSize = 16_384
    http2.initialWindowSize = 1 << 20
    http2.streamLimitGoAway = (.protocolError, Array("exceeded_max_concurrent_streams".utf8))
  }
}
