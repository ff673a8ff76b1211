import Reactor
import Wire

/// Receives the contents of an application's feedback list.
protocol FeedbackReader: AnyObject {
  func feedbackCame(_ tuples: [UInt8])
  func feedbackEnded()
  func feedbackFailed()
}

/// One connection to the feedback service. It writes the application's list and closes. The entries are removed only if the
/// peer closes in good order after the last byte. If the peer closes earlier, the next connection gets all of them again.
final class FeedbackConnection: Machine, FeedbackReader {
  /// Removes the entries that were read (`isTaken`), or leaves them for the next connection.
  typealias Settle = (_ isTaken: Bool) -> Void

  private enum Phase {
    /// Reads and writes the list. → `closing`, `finished`.
    case writing
    /// The list is written and our side of the stream is closed. Waits for the peer to close. → `finished`.
    case closing
    case finished
  }

  /// Seconds to read and write a list.
  static let writingTime = 120.0
  /// Seconds that the peer has to close after the last byte. After that, the bytes that its system has acknowledged count as
  /// read.
  static let closingTime = 10.0

  weak var transport: (any Transport)?
  private let open: (_ app: [UInt8], any FeedbackReader) -> Settle
  private let identify: (any Transport) -> [UInt8]?
  private let opened: (FeedbackConnection) -> Bool
  private let ended: (FeedbackConnection) -> Void
  /// Ends the reading of the list; nil if none is being read.
  private var settleList: Settle?
  private var phase = Phase.writing
  private var output: [UInt8] = []
  private var written = 0
  private var isWhole = false
  private(set) var deadline = MonotonicTime.distantFuture

  /// - Parameters:
  ///   - open: begins to read the list of an application.
  ///   - identify: returns the application of an open transport's peer; nil if its certificate belongs to none.
  ///   - opened: called at the end of the handshake; returns true if there is room for the connection.
  init(
    open: @escaping (_ app: [UInt8], any FeedbackReader) -> Settle,
    identify: @escaping (any Transport) -> [UInt8]?, opened: @escaping (FeedbackConnection) -> Bool = { _ in true },
    ended: @escaping (FeedbackConnection) -> Void = { _ in }
  ) {
    self.open = open
    self.identify = identify
    self.opened = opened
    self.ended = ended
  }

  var isFinished: Bool { if case .finished = phase { true } else { false } }

  func transportOpened(at now: MonotonicTime) {
    deadline = now.advanced(bySeconds: Self.writingTime)
    guard opened(self), let app = transport.flatMap(identify) else { return finish() }
    settleList = open(app, self)
  }

  /// Ignores input: the protocol has none.
  func receive(_ bytes: RawSpan, at now: MonotonicTime) {}

  func feedbackCame(_ tuples: [UInt8]) {
    output += tuples
    transport?.outputReady()
  }

  func feedbackEnded() {
    isWhole = true
    transport?.outputReady()
  }

  func feedbackFailed() {
    settle(isTaken: false)
    finish()
  }

  private func finish() {
    phase = .finished
    deadline = .distantFuture
    transport?.outputReady()
  }

  private func settle(isTaken: Bool) {
    settleList?(isTaken)
    settleList = nil
  }

  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    guard case .writing = phase else { return }
    let portion = output[written..<min(written + Self.portion, output.count)]
    buffer.append(portion)
    written += portion.count
    guard written == output.count else { return }
    output = []
    written = 0
    guard isWhole else { return }
    phase = .closing
    deadline = now.advanced(bySeconds: Self.closingTime)
    (transport as? any AcceptedTransport)?.finishOutput()
  }

  private static let portion = 64 * 1024

  func deadlineReached(at now: MonotonicTime) {
    if case .closing = phase, let accepted = transport as? any AcceptedTransport {
      settle(isTaken: accepted.isOutputAcknowledged)
    }
    settle(isTaken: false)
    finish()
  }

  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    if case .closing = phase { settle(isTaken: reason == .closedByPeer) }
    settle(isTaken: false)
    transport = nil
    deadline = .distantFuture
    phase = .finished
    ended(self)
  }
}
