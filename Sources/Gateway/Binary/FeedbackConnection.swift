import Reactor
import Wire

/// Gets what an application's list holds.
protocol FeedbackReader: AnyObject {
  func feedbackCame(_ tuples: [UInt8])
  /// There is no more of it.
  func feedbackEnded()
  /// It can't be read to its end.
  func feedbackFailed()
}

/// An application's list in the hands of one connection.
protocol FeedbackHolder: AnyObject {
  /// What was read is gone (`isTaken`), or stays for the next one.
  func settle(isTaken: Bool)
}

/// One connection to the feedback service: writes what the application's list holds, closes, and strikes it off only when the peer has closed in
/// good order after the last byte. A peer that closes earlier finds all of it again.
final class FeedbackConnection: Machine, FeedbackReader {
  private enum Phase {
    /// The list comes and is written. → `closing`, `finished`.
    case writing
    /// All is written, and our end of the stream is closed; the peer is to close its own. → `finished`.
    case closing
    case finished
  }

  /// Seconds for a list to be read and written.
  static let writingTime = 120.0
  /// Seconds that the peer has to close after the last byte; then what its system has acknowledged counts as read.
  static let closingTime = 10.0

  weak var transport: (any Transport)?
  private let open: (_ app: [UInt8], any FeedbackReader) -> any FeedbackHolder
  private let identify: (any Transport) -> [UInt8]?
  private let opened: (FeedbackConnection) -> Bool
  private let ended: (FeedbackConnection) -> Void
  private var list: (any FeedbackHolder)?
  private var phase = Phase.writing
  private var output: [UInt8] = []
  private var written = 0
  private var isWhole = false
  private(set) var deadline = MonotonicTime.distantFuture

  /// - Parameters:
  ///   - open: begins to read the list of an application.
  ///   - identify: the application of an open transport's peer; nil where its certificate belongs to none.
  ///   - opened: called at the end of the handshake: whether there is room for the connection.
  init(
    open: @escaping (_ app: [UInt8], any FeedbackReader) -> any FeedbackHolder,
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
    list = open(app, self)
  }

  /// The service is not spoken to.
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
    list?.settle(isTaken: isTaken)
    list = nil
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
