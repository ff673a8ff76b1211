import HTTP2

/// Settings of the web push simulator.
public struct WebPushConfiguration: Sendable {
  /// The VAPID key that all subscriptions are bound to, 65 bytes. Without it, the first push binds its subscription to its key.
  public var applicationServerKey: [UInt8]?
  /// True for HTTP/1.1 only. Otherwise the client selects HTTP/2 or HTTP/1.1.
  public var isHTTP1 = false
  /// Its keys are the ids of subscriptions: the last part of the path, or WNS's `token`.
  public var script = Script()
  public var http2 = ServerConfiguration()

  public init() {
    http2.maxHeaderListSize = 16_384
    http2.initialWindowSize = 1 << 20
  }
}
