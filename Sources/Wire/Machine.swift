/// A protocol without its I/O: bytes in, events out (to the machine's own handler), bytes out, next deadline.
///
/// One link drives every machine over a socket; a test drives two of them against each other in memory.
/// A machine is confined to the thread that drives it.
public protocol Machine: AnyObject {
  /// Set by whoever drives the machine, before `transportOpened`. Hold it unowned or weak.
  var transport: (any Transport)? { get set }

  /// The transport is connected (TLS included); the machine may queue its first bytes.
  func transportOpened(at now: MonotonicTime)

  /// Bytes from the peer, split in any way. The span lives for the call only.
  func receive(_ bytes: RawSpan, at now: MonotonicTime)

  /// The transport ended, by the peer, by a fault, or because `close` was called. Nothing follows this call.
  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime)

  /// Appends bytes ready for the peer, at most about 64 KiB a call; called again while it appends something.
  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime)

  /// The machine has nothing more to say and is to be disconnected once its output is flushed.
  var isFinished: Bool { get }

  /// When `deadlineReached` is wanted; `distantFuture` for never. Read again after every call into the machine.
  var deadline: MonotonicTime { get }

  func deadlineReached(at now: MonotonicTime)
}

/// What a machine may ask of whoever drives it.
public protocol Transport: AnyObject {
  /// Output or a nearer deadline has come up outside a call from the transport: flush before the loop next waits.
  func outputReady()
  /// While true nothing more is read from the peer, so that its flow control holds it back.
  var isReadingPaused: Bool { get set }
  /// Drops the connection; `transportClosed(.closedLocally)` follows before the loop next waits.
  func close()
}

/// Why a transport ended. `description` names addresses, never credentials.
public enum TransportEnd: Error, Equatable, Sendable, CustomStringConvertible {
  /// The peer closed its side in good order.
  case closedByPeer
  /// `Transport.close` or a finished machine.
  case closedLocally
  /// Name resolution or connecting failed; nothing was ever sent.
  case connectFailed(String)
  /// The TLS handshake or certificate verification failed; nothing was ever sent.
  case handshakeFailed(String)
  /// Reset, broken pipe, TLS record error: what was in flight is unknown.
  case failed(String)

  public var description: String {
    switch self {
    case .closedByPeer: "closed by the peer"
    case .closedLocally: "closed here"
    case .connectFailed(let why): "connecting failed: \(why)"
    case .handshakeFailed(let why): "TLS handshake failed: \(why)"
    case .failed(let why): "connection failed: \(why)"
    }
  }
}
