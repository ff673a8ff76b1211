import HTTP2

/// Settings of the APNs simulator. The defaults are those observed at the real service.
public struct APNsConfiguration: Sendable {
  /// PEM file of the client certificates' authority. If it is set, clients need a certificate and provider tokens are ignored.
  public var clientAuthority: String?
  /// PEM of the public or private key that signs provider tokens. Without it, signatures are not checked.
  public var providerKey: [UInt8]?
  /// True to answer with `apns-unique-id` like the sandbox.
  public var isSandbox = false
  /// Accepted bundle ids; empty for all.
  public var topics: [String] = []
  /// Allowed streams after the first authorised request; before it, one. With a client certificate the limit holds from the start.
  public var maxConcurrentStreams = 1000
  public var script = Script()
  public var http2 = ServerConfiguration()

  public init() {
    http2.maxHeaderListSize = 8000
    http2.streamLimitGoAway = (.refusedStream, Array("Maximum active streams violated for this endpoint.".utf8))
  }
}
