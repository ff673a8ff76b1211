import Wire

/// Receives a client session's events on its thread, never while frames are read. The handler may submit and drain in each call.
public protocol ClientSessionHandler: AnyObject {
  func sessionReady()
  /// One or more responses are complete, with any status. Take them with `nextAnswer` before returning. Batched for speed.
  func answersReady(in session: ClientSession)
  func failed(_ tag: Int, _ failure: RequestFailure)
  /// `sendableStreams` was zero and is now positive.
  func streamsAvailable()
  func goAwayReceived(_ goAway: GoAway)
  /// No further stream will be opened, because of GOAWAY, `drain` or exhausted stream ids. Open streams continue.
  func sessionDraining()
  /// The session ended. Every request was answered or failed before.
  func sessionEnded(_ reason: TransportEnd)
}

extension ClientSessionHandler {
  public func sessionDraining() {}
}

/// Why a request has no response, and whether it may be sent again.
public enum RequestFailure: Error, Hashable, Sendable {
  /// The server has not processed the request. It is safe to send it elsewhere.
  case notProcessed(NotProcessed)
  case unknown(Unknown)

  public enum NotProcessed: Hashable, Sendable {
    /// RST_STREAM with REFUSED_STREAM (RFC 9113 §8.7).
    case refusedStream
    /// The stream id is above the last one in the server's GOAWAY (RFC 9113 §6.8).
    case goAway
    /// No byte of it was passed to the transport.
    case neverSent
  }

  public enum Unknown: Hashable, Sendable {
    case connectionLost
    case reset(ErrorCode)
    case timedOut
  }
}

/// The GOAWAY of a server, which accepts no further streams (RFC 9113 §6.8).
public struct GoAway: Equatable, Sendable {
  public var lastStreamID: Int32
  public var code: ErrorCode
  /// APNs sends `{"reason": …}` or a plain sentence. At most 1 KiB is kept.
  public var debugData: [UInt8]
}
