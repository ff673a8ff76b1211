/// Limits of one client session. Times in seconds, sizes in bytes.
public struct ClientConfiguration: Sendable {
  /// Maximum open streams, even if the server allows more.
  public var ownStreamLimit = 1000
  /// Time from submission to the end of the response. If only the headers have arrived by then, they are the response.
  public var requestTimeout = 30.0
  /// Silence of the server after which a PING is sent.
  public var pingInterval = 20.0
  /// Maximum wait for the answer to a PING and for the server's first SETTINGS. Then the session ends.
  public var pingTimeout = 10.0
  /// Bytes of a response's body to keep. A longer body isn't read to its end.
  public var maxResponseBody = 16 * 1024
  /// Announced and enforced: a response with a larger header list is reset (RFC 9113 §6.5.2 adds 32 bytes per field).
  public var maxHeaderListSize = 16 * 1024
  /// Lower-case names of response headers to keep, at most eight. `Response.header` uses the index in this list.
  public var keptResponseHeaders: [String] = []
  /// If false, headers of responses with status 200 aren't kept.
  public var keepsHeadersOfSuccess = true
  /// Receive window of the whole connection, large enough that responses never wait for a WINDOW_UPDATE. At least
  /// 65,535.
  public var connectionWindow = 1 << 20
  /// Speaks HTTP/1.1 over TLS if the server selects `http/1.1` or no protocol.
  public var allowsHTTP1 = false
  /// Odd. A session whose ids reach `lastStreamID` drains (RFC 9113 §5.1.1).
  public var firstStreamID: Int32 = 1
  public var lastStreamID = Int32.max

  public init() {}
}
