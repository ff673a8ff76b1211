import AMQP
import PushCore
import Wire

/// The door's side of a sender's connection.
protocol BinaryPublisher: AnyObject {
  /// Unix time in milliseconds.
  var wallClock: Int64 { get }
  var limits: RequestLimits { get }
  /// False while all connections together have as many notifications to publish as allowed. `roomCame` follows later.
  func hasRoom(for connection: BinaryConnection) -> Bool
  /// Publishes until the broker has confirmed the notification or the time is over. Reports in a later turn whether it is
  /// confirmed.
  func publish(_ request: BinaryRequest, _ settled: @escaping (Bool) -> Void)
  /// A notification was refused, or the gateway ends a connection before its sender does.
  func noteFarewell(_ response: ErrorResponse?, of app: [UInt8]?)
  /// A sender has disconnected before it received its error response.
  /// - Parameters:
  ///   - response: the response that was not sent.
  ///   - lost: how many of the sender's notifications were given up.
  func noteUnheard(_ response: ErrorResponse?, lost: Int, of app: [UInt8]?)
  /// Reports the end of the handshake.
  /// - Returns: true if there is room for the connection.
  func opened(_ connection: BinaryConnection) -> Bool
  /// Bytes arrived or notifications were settled. `isIdle` is true if all received bytes are processed.
  func heard(_ connection: BinaryConnection, isIdle: Bool)
  func finished(_ connection: BinaryConnection)
}

/// The connection of one sender. It accepts notifications in order and sends nothing while all are good. For the first bad one
/// it sends the error response and closes: later notifications are ignored, earlier ones are confirmed before the response is
/// sent.
final class BinaryConnection: Machine {
  private enum Phase {
    /// Accepts notifications. → `settling`.
    case taking
    /// Accepts none any more and waits for the confirms of accepted ones. → `finished`.
    case settling(BinaryRefusal?)
    /// The error response, if any, is written.
    case finished
  }

  /// Seconds without data before a connection is closed. Long, because senders keep connections open for hours and lose
  /// notifications that they write to a connection that has just been closed. The kernel's probes find dead peers.
  static let idleTime = 3600.0
  /// Seconds without data before a connection is closed within a notification.
  static let stallTime = 60.0
  /// Unconfirmed notifications that one connection may have.
  static let window = 256

  weak var transport: (any Transport)?
  private unowned let publisher: any BinaryPublisher
  private let identify: (any Transport) -> [UInt8]?
  private var app: [UInt8]?
  private var phase = Phase.taking
  private var reader = BinaryFrameReader()
  private var ledger = SendLedger()
  /// Received bytes that wait for room.
  private var unread: [UInt8] = []
  private var offset = 0
  private var farewell: [UInt8] = []
  /// The transport has ended. No response can be sent, but the bytes received before count.
  private var isGone = false
  private var isReported = false
  private(set) var deadline = MonotonicTime.distantFuture

  /// - Parameter identify: returns the application of an open transport's peer; nil if its certificate belongs to none.
  init(_ publisher: any BinaryPublisher, identify: @escaping (any Transport) -> [UInt8]?) {
    self.publisher = publisher
    self.identify = identify
  }

  var isFinished: Bool { if case .finished = phase { true } else { false } }

  func transportOpened(at now: MonotonicTime) {
    guard publisher.opened(self) else {
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
    publisher.heard(self, isIdle: isIdle)
  }

  private var isIdle: Bool { ledger.open == 0 && unread.isEmpty }

  /// Ends the connection to make room for others. If it has sent notifications, an error response names the last accepted one.
  func makeRoom() {
    if isIdle, ledger.farewell == nil { transport?.close() } else { drain() }
  }

  func roomCame() { advance() }

  /// Processes received bytes as far as there is room.
  private func advance() {
    while case .taking = phase, offset < unread.count {
      guard ledger.open < Self.window, publisher.hasRoom(for: self) else {
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
      frame, app: app, now: publisher.wallClock / 1000, id: UUIDText.random(), limits: publisher.limits)
    let position = ledger.add(frame)
    publisher.publish(request) { [self] isTaken in settled(position, isTaken) }
  }

  private func settled(_ position: Int, _ isTaken: Bool) {
    ledger.settle(position, isTaken: isTaken)
    if !isTaken, !isGone { settle(nil) }
    advance()
    if isIdle { publisher.heard(self, isIdle: true) }
  }

  /// Stops accepting: after a refused notification (`refusal`), or because the gateway ends the connection (nil).
  private func settle(_ refusal: BinaryRefusal?) {
    if case .taking = phase { phase = .settling(refusal) }
  }

  /// Ends once accepted notifications are confirmed. A sender that has disconnected can't repeat anything, so its remaining
  /// bytes are processed too.
  func drain() {
    if !isGone { settle(nil) }
    advance()
  }

  private func finishIfSettled() {
    switch phase {
    case .taking:
      guard isGone, ledger.open == 0, !isReported else { return }
      if ledger.lost > 0 { publisher.noteUnheard(nil, lost: ledger.lost, of: app) }
      report()
    case .settling(let refusal):
      guard ledger.open == 0 else { return }
      phase = .finished
      // A lost notification came before the refused one, so the response must be about the lost one.
      let response = if let refusal, ledger.isClear { refusal.response } else { ledger.farewell }
      deadline = .distantFuture
      guard !isGone else {
        if refusal != nil || ledger.lost > 0 { publisher.noteUnheard(response, lost: ledger.lost, of: app) }
        return report()
      }
      publisher.noteFarewell(response, of: app)
      farewell = response?.bytes ?? []
      transport?.outputReady()
    case .finished: if isGone { report() }
    }
  }

  private func report() {
    guard !isReported else { return }
    isReported = true
    publisher.finished(self)
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
