/// What one client session may use and for how long it waits. Times are in seconds, sizes in bytes.
public struct ClientConfiguration: Sendable {
  /// Streams open at once, whatever the server would allow.
  public var ownStreamLimit = 1000
  /// Streams that may be opened before the server's first SETTINGS has been seen; 0 waits for it.
  public var streamsBeforeSettings = 0
  /// From submission to the last byte of the answer. Then the answer is what has come of it, where its headers have.
  public var requestTimeout = 30.0
  /// Silence of the server after which it is asked with a PING.
  public var pingInterval = 20.0
  /// How long the answer to a PING, and the server's first SETTINGS, may take before the session ends.
  public var pingTimeout = 10.0
  /// Bytes kept of an answer's body; one with more is not waited for to end.
  public var maxResponseBody = 16 * 1024
  /// Announced, and held to: an answer with a larger header list is reset (RFC 9113 §6.5.2 counts 32 per field).
  public var maxHeaderListSize = 16 * 1024
  /// Lower-case names of answer headers to keep, at most eight; `Response.header` takes an index into this list.
  public var keptResponseHeaders: [String] = []
  /// False: those of an answer with status 200 are not kept.
  public var keepsHeadersOfSuccess = true
  /// Receive window of the whole connection, so that answers never wait for a WINDOW_UPDATE.
  public var connectionWindow = 1 << 20
  /// Odd; a session whose ids reach `lastStreamID` drains (RFC 9113 §5.1.1).
  public var firstStreamID: Int32 = 1
  public var lastStreamID = Int32.max

  public init() {}
}
