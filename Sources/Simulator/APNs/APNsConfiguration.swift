import HTTP2

/// How the APNs simulator presents itself. Its defaults are what has been seen of the real service.
public struct APNsConfiguration: SimulatorConfiguration {
  public var host = "127.0.0.1"
  /// 0 takes any free port.
  public var port: UInt16 = 0
  /// PEM files of the server's certificate chain and key; without them there is no TLS.
  public var certificate: String?
  public var key: String?
  /// PEM file of the authority of client certificates. With it a client certificate is demanded and provider tokens are ignored.
  public var clientAuthority: String?
  /// PEM of a public key (or of the private one): the signatures of provider tokens are then checked. Without it only their form is.
  public var providerKey: [UInt8]?
  /// The sandbox answers with `apns-unique-id` too.
  public var isSandbox = false
  /// Bundle ids that may be sent to; empty for any.
  public var topics: [String] = []
  /// Streams allowed before and after the first authorised request; with a client certificate the latter from the start.
  public var initialStreams = 1
  public var maxConcurrentStreams = 1000
  public var script = Script()
  public var http2 = ServerConfiguration()

  public init() {
    http2.maxHeaderListSize = 8000
    http2.streamLimitGoAway = (.refusedStream, Array("Maximum active streams violated for this endpoint.".utf8))
  }
}
