import Wire

/// What a client session tells its owner, on the owner's thread and never from inside the protocol library:
/// the handler may submit, cancel and drain from each of these calls.
public protocol ClientSessionHandler: AnyObject {
  /// The server's first SETTINGS have come.
  func sessionReady()
  /// One or more streams have ended with a complete answer, of any status: drain them with the session's `nextAnswer` before returning.
  /// Batched, so that the receiver is looked up once.
  func answersReady(in session: ClientSession)
  /// The stream of `tag` has ended without a complete answer.
  func failed(_ tag: Int, _ failure: RequestFailure)
  /// `sendableStreams` was zero and no longer is.
  func streamsAvailable()
  func goAwayReceived(_ goAway: GoAway)
  /// No stream will be opened any more, by GOAWAY, `drain` or because the stream ids are used up; open ones go on.
  func sessionDraining()
  /// Every request has been answered or has failed before this call; nothing follows it.
  func sessionEnded(_ reason: TransportEnd)
}

extension ClientSessionHandler {
  public func sessionDraining() {}
}

/// Why a request has no answer, sorted by what it means for sending it again.
public enum RequestFailure: Error, Hashable, Sendable {
  /// The server has not acted on it: it is safe to send elsewhere.
  case notProcessed(NotProcessed)
  /// The server may have acted on it.
  case unknown(Unknown)

  public enum NotProcessed: Hashable, Sendable {
    /// RST_STREAM with REFUSED_STREAM (RFC 9113 §8.7).
    case refusedStream
    /// Its stream id is above the last one that the server's GOAWAY names (RFC 9113 §6.8).
    case goAway
    /// Not one byte of it was handed to the transport.
    case neverSent
  }

  public enum Unknown: Hashable, Sendable {
    case connectionLost
    case reset(ErrorCode)
    case timedOut
  }
}

/// The server's announcement that it takes no further streams (RFC 9113 §6.8).
public struct GoAway: Equatable, Sendable {
  public var lastStreamID: Int32
  public var code: ErrorCode
  /// APNs puts `{"reason": …}` or a plain sentence here; at most 1 KiB is kept.
  public var debugData: [UInt8]

  public init(lastStreamID: Int32, code: ErrorCode, debugData: [UInt8]) {
    self.lastStreamID = lastStreamID
    self.code = code
    self.debugData = debugData
  }
}
