/// A protocol without I/O: bytes in, events to the machine's handler, bytes out, next deadline. A link drives a machine over a
/// socket; tests connect two machines in memory. A machine is confined to the thread of its driver.
public protocol Machine: AnyObject {
  /// Set by the driver before `transportOpened`. Hold it unowned or weak.
  var transport: (any Transport)? { get set }

  /// The transport is connected (TLS included); the machine may queue its first bytes.
  func transportOpened(at now: MonotonicTime)

  /// Bytes from the peer, split in any way. The span is valid for this call only.
  func receive(_ bytes: RawSpan, at now: MonotonicTime)

  /// The transport ended: by the peer, by an error, or by `close`. No call follows.
  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime)

  /// Appends bytes for the peer, about 64 KiB a call at most. Called again while it appends any.
  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime)

  /// True if the driver must disconnect after the output is flushed.
  var isFinished: Bool { get }

  /// When to call `deadlineReached`; `distantFuture` for never. Read again after every call into the machine.
  var deadline: MonotonicTime { get }

  func deadlineReached(at now: MonotonicTime)
}

/// The driver of a machine.
public protocol Transport: AnyObject {
  /// Announces output or an earlier deadline outside of the transport's calls. The driver flushes before the loop next waits.
  func outputReady()
  /// While true, nothing is read from the peer, so its flow control stops it.
  var isReadingPaused: Bool { get set }
  /// The protocol that the TLS handshake selected (ALPN), empty if it selected none; nil without TLS.
  var applicationProtocol: String? { get }
  /// Drops the connection. `transportClosed(.closedLocally)` follows before the loop next waits.
  func close()
}

extension Transport {
  public var applicationProtocol: String? { nil }
}

/// Why a transport ended. `description` contains addresses, never credentials.
public enum TransportEnd: Error, Equatable, Sendable, CustomStringConvertible {
  /// The peer closed its side in an orderly way.
  case closedByPeer
  /// `Transport.close` was called, or the machine finished.
  case closedLocally
  /// Name resolution or connecting failed; nothing was sent.
  case connectFailed(String)
  /// The TLS handshake or certificate verification failed; nothing was sent.
  case handshakeFailed(String)
  /// Reset, broken pipe or TLS record error; sent data may or may not have arrived.
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
