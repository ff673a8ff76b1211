import AMQP
import PushCore
import Wire

/// What a sender's connection asks of the door that it came by.
protocol BinaryDesk: AnyObject {
  /// Unix time in milliseconds.
  var wallClock: Int64 { get }
  var limits: RequestLimits { get }
  /// False while the connections together have as much to publish as they may; who waits is told by `roomCame`.
  func hasRoom(for connection: BinaryConnection) -> Bool
  /// Publishes until the broker has confirmed it or there is no hope left; the answer, whether it is confirmed, comes in a later turn.
  func publish(_ request: BinaryRequest, _ settled: @escaping (Bool) -> Void)
  /// A notification was refused, or a connection ends before its sender wants it.
  func noteFarewell(_ response: ErrorResponse?, of app: [UInt8]?)
  /// A sender has gone, and no error response reaches it.
  /// - Parameters:
  ///   - response: what it would have got.
  ///   - lost: how many of its notifications were given up.
  func noteUnheard(_ response: ErrorResponse?, lost: Int, of app: [UInt8]?)
  /// The handshake is over.
  /// - Returns: there is room for the connection.
  func opened(_ connection: BinaryConnection) -> Bool
  /// Bytes came, or were settled. Idle: of what came nothing is left to do.
  func heard(_ connection: BinaryConnection, isIdle: Bool)
  /// Nothing of the connection is left to do.
  func finished(_ connection: BinaryConnection)
}

/// One old sender's connection: takes its notifications in order, says nothing as long as all is well, and for the first that is wrong the error
/// response, then closes. What follows that one is not looked at; what came before it is published and confirmed before the word goes out.
final class BinaryConnection: Machine {
  private enum Phase {
    /// Notifications are taken. → `settling`.
    case taking
    /// None are taken any more; what was taken is still to be confirmed. → `finished`.
    case settling(BinaryRefusal?)
    /// The last word is said, if there is one.
    case finished
  }

  /// Seconds of silence after which a connection is closed. Senders keep theirs open for hours, and what is written into one that has just been
  /// closed is lost without a word, so that it is long; a peer that is gone is found out by the kernel's probes.
  static let idleTime = 3600.0
  /// The same within a notification.
  static let stallTime = 60.0
  /// Notifications of a connection that may wait for their confirms.
  static let window = 256

  weak var transport: (any Transport)?
  private unowned let desk: any BinaryDesk
  private let identify: (any Transport) -> [UInt8]?
  private var app: [UInt8]?
  private var phase = Phase.taking
  private var reader = BinaryFrameReader()
  private var ledger = SendLedger()
  /// Bytes that came and wait for room.
  private var unread: [UInt8] = []
  private var offset = 0
  private var farewell: [UInt8] = []
  /// The transport has ended: nothing can be said any more, but what came before that counts.
  private var isGone = false
  private var isReported = false
  private(set) var deadline = MonotonicTime.distantFuture

  /// - Parameter identify: the application of an open transport's peer; nil where its certificate belongs to none.
  init(_ desk: any BinaryDesk, identify: @escaping (any Transport) -> [UInt8]?) {
    self.desk = desk
    self.identify = identify
  }

  var isFinished: Bool { if case .finished = phase { true } else { false } }

  func transportOpened(at now: MonotonicTime) {
    guard desk.opened(self) else {
      transport?.close()
      return
    }
    app = transport.flatMap(identify)
    deadline = now.advanced(bySeconds: Self.idleTime)
  }

  func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    guard case .taking = phase else { return }
    bytes.append(0..<bytes.byteCount, to: &unread)
    advance()
    deadline = now.advanced(bySeconds: reader.isInFrame ? Self.stallTime : Self.idleTime)
    desk.heard(self, isIdle: isIdle)
  }

  private var isIdle: Bool { ledger.open == 0 && unread.isEmpty }

  /// Ends, because others need the room; where it has sent notifications, its error response names the last that was taken.
  func makeRoom() {
    if isIdle, ledger.farewell == nil { transport?.close() } else { drain() }
  }

  /// Others have made room.
  func roomCame() { advance() }

  /// Takes what there is, as far as there is room for it.
  private func advance() {
    while case .taking = phase, offset < unread.count {
      guard ledger.open < Self.window, desk.hasRoom(for: self) else {
        transport?.isReadingPaused = true
        return
      }
      do throws(BinaryRefusal) {
        guard let frame = try reader.next(unread, &offset) else { break }
        try take(frame)
      } catch {
        settle(error)
      }
    }
    unread = []
    offset = 0
    transport?.isReadingPaused = false
    finishIfSettled()
  }

  private func take(_ frame: BinaryFrame) throws(BinaryRefusal) {
    guard let app else {
      throw BinaryRefusal(status: .missingTopic, identifier: frame.identifier, isSilent: frame.isSimple)
    }
    let request = try BinaryRequest(
      frame, app: app, now: desk.wallClock / 1000, id: UUIDText.random(), limits: desk.limits)
    let position = ledger.add(frame)
    desk.publish(request) { [self] isTaken in settled(position, isTaken) }
  }

  private func settled(_ position: Int, _ isTaken: Bool) {
    ledger.settle(position, isTaken: isTaken)
    if !isTaken, !isGone { settle(nil) }
    advance()
    if isIdle { desk.heard(self, isIdle: true) }
  }

  /// Takes nothing more, because of what is wrong with a notification, or of what is wrong here.
  private func settle(_ refusal: BinaryRefusal?) {
    if case .taking = phase { phase = .settling(refusal) }
  }

  /// Ends once what was taken is confirmed. Who has gone can't be told to send anything again: what it has left here is taken as well.
  func drain() {
    if !isGone { settle(nil) }
    advance()
  }

  private func finishIfSettled() {
    switch phase {
    case .taking:
      guard isGone, ledger.open == 0, !isReported else { return }
      if ledger.lost > 0 { desk.noteUnheard(nil, lost: ledger.lost, of: app) }
      report()
    case .settling(let refusal):
      guard ledger.open == 0 else { return }
      phase = .finished
      // One that was lost stands before the one that is wrong.
      let response = if let refusal, ledger.isClear { refusal.response } else { ledger.farewell }
      deadline = .distantFuture
      guard !isGone else {
        if refusal != nil || ledger.lost > 0 { desk.noteUnheard(response, lost: ledger.lost, of: app) }
        return report()
      }
      desk.noteFarewell(response, of: app)
      farewell = response?.bytes ?? []
      transport?.outputReady()
    case .finished: if isGone { report() }
    }
  }

  private func report() {
    guard !isReported else { return }
    isReported = true
    desk.finished(self)
  }

  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    buffer.append(farewell)
    farewell = []
  }

  func deadlineReached(at now: MonotonicTime) {
    guard ledger.open == 0, unread.isEmpty else {
      deadline = now.advanced(bySeconds: Self.stallTime)
      return
    }
    drain()
  }

  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    isGone = true
    transport = nil
    deadline = .distantFuture
    advance()
  }
}
