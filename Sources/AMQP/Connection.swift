import Wire

/// One AMQP 0-9-1 connection without its socket: handshake, framing, heartbeats, closes. What happens on its channels is
/// the business of its two roles, `Consumer` and `Publisher`.
///
/// It may be opened again on a new transport once the old one has ended. Confined to the thread that drives it.
public class Connection: Machine {
  public weak var transport: (any Transport)?
  let settings: ConnectionSettings
  let codec = MethodCodec()

  private(set) var phase = Phase.idle
  /// The first reason is the true one; what follows from it isn't reported.
  private var cause: ConnectionEnd?
  /// What the broker says of itself; nil before it has.
  public private(set) var server: BrokerServer?
  /// The largest frame in either direction, overhead included.
  private(set) var frameMax: Int
  /// Of a content header that comes in.
  private var headerMax = 0
  /// The highest number that a channel may have.
  private(set) var channelMax: UInt16 = 1
  /// Time of the latest call into the machine.
  private(set) var latest = MonotonicTime(nanoseconds: 0)

  /// Frames ready to be written; the first `outputHead` bytes are gone already.
  var output: [UInt8] = []
  private var outputHead = 0
  /// Bytes that are to be written still.
  var unwritten: Int { output.count - outputHead }
  private var isOutputAnnounced = false
  /// The beginning of a frame whose rest hasn't come yet.
  private var partial: [UInt8] = []

  /// Seconds; 0 when off.
  private(set) var heartbeat: Double = 0
  private var lastReceived = MonotonicTime(nanoseconds: 0)
  private var lastSent = MonotonicTime(nanoseconds: 0)
  private var phaseDeadline = MonotonicTime.distantFuture
  private var heartbeatDeadline = MonotonicTime.distantFuture
  private var silenceDeadline = MonotonicTime.distantFuture

  enum Phase {
    /// No transport yet, or no longer. Then `awaitingStart`.
    case idle
    /// Our protocol header is out. Then `awaitingTune` or `finished`.
    case awaitingStart
    /// Credentials are out. Then `awaitingOpen` or `finished`.
    case awaitingTune
    /// The virtual host is asked for. Then `open` or `finished`.
    case awaitingOpen
    /// Channels may be used. Then `closing` or `finished`.
    case open
    /// Our `connection.close` is out. Then `finished`.
    case closing
    /// Nothing is read any more; what is in `output` still goes. Then `idle`, once the transport has ended.
    case finished
  }

  init(settings: ConnectionSettings) {
    self.settings = settings
    frameMax = Int(settings.frameMax)
  }

  /// Orderly: what is queued goes out, then the broker is told. The end follows as an event.
  public func close() {
    switch phase {
    case .idle, .closing, .finished: return
    case .awaitingStart, .awaitingTune, .awaitingOpen:
      cause = cause ?? .closedHere
      phase = .finished
      transport?.close()
    case .open:
      send(.close(code: 200, text: Array("goodbye".utf8)), channel: 0)
      cause = cause ?? .closedHere
      phase = .closing
      phaseDeadline = latest.advanced(bySeconds: settings.closeTimeout)
    }
  }

  // MARK: - For the role

  /// How many channels it uses.
  var mostChannels: UInt16 { 2 }
  /// The handshake is done; channels may be opened.
  func connectionOpened() {}
  func methodReceived(_ method: InboundMethod, channel: UInt16, payload: RawSpan) {}
  /// The payload of a content header frame.
  func contentHeaderReceived(_ payload: RawSpan, channel: UInt16) {}
  func contentBodyReceived(_ payload: RawSpan, channel: UInt16) {}
  /// `channel.close` came and was answered; the channel is gone until it is opened again.
  func channelClosed(_ channel: UInt16, _ end: ConnectionEnd) {}
  func blocked(reason: String) {}
  func unblocked() {}
  /// Called before output is taken.
  func willWrite(at now: MonotonicTime) {}
  var roleDeadline: MonotonicTime { .distantFuture }
  func roleDeadlineReached(at now: MonotonicTime) {}
  func connectionEnded(_ end: ConnectionEnd) {}

  var isOpen: Bool { phase == .open }

  func send(_ method: OutboundMethod, channel: UInt16) {
    codec.append(method, channel: channel, to: &output)
    announceOutput()
  }

  /// To be called whenever something was appended to `output` or is to be written by `willWrite`.
  func announceOutput() {
    guard !isOutputAnnounced else { return }
    isOutputAnnounced = true
    transport?.outputReady()
  }

  /// The role is ready to work: the handshake's deadline no longer applies.
  func becameReady() { if cause == nil { phaseDeadline = .distantFuture } }

  /// The role asks something more before the close: the broker has the time of a close to answer.
  func startClosing() {
    cause = cause ?? .closedHere
    phaseDeadline = latest.advanced(bySeconds: settings.closeTimeout)
  }

  /// Drops the connection without another word.
  func fail(_ end: ConnectionEnd) {
    guard phase != .finished, phase != .idle else { return }
    cause = cause ?? end
    phase = .finished
    output.removeAll(keepingCapacity: false)
    outputHead = 0
    transport?.close()
  }

  func protocolError(_ what: String) { fail(.protocolError(what)) }

  /// Closes in good order because the role can't go on.
  func closeConnection(because end: ConnectionEnd) {
    guard phase == .open else { return }
    cause = cause ?? end
    close()
  }

  // MARK: - Machine

  public func transportOpened(at now: MonotonicTime) {
    latest = now
    lastReceived = now
    lastSent = now
    phase = .awaitingStart
    cause = nil
    heartbeat = 0
    frameMax = Int(settings.frameMax)
    headerMax = frameMax
    heartbeatDeadline = .distantFuture
    silenceDeadline = .distantFuture
    phaseDeadline = now.advanced(bySeconds: settings.handshakeTimeout)
    partial.removeAll(keepingCapacity: true)
    output.removeAll(keepingCapacity: true)
    outputHead = 0
    isOutputAnnounced = false
    output.append(contentsOf: Frame.protocolHeader)
    announceOutput()
  }

  public func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    latest = now
    phase = .idle
    phaseDeadline = .distantFuture
    heartbeatDeadline = .distantFuture
    silenceDeadline = .distantFuture
    partial = []
    output = []
    outputHead = 0
    isOutputAnnounced = false
    connectionEnded(cause ?? .transport(reason))
  }

  public var isFinished: Bool { phase == .finished }

  public var deadline: MonotonicTime {
    // Only an open connection acts on its role's.
    min(min(phaseDeadline, phase == .open ? roleDeadline : .distantFuture), min(heartbeatDeadline, silenceDeadline))
  }

  public func deadlineReached(at now: MonotonicTime) {
    latest = now
    if now >= phaseDeadline {
      phaseDeadline = .distantFuture
      fail(phase == .closing ? .closedHere : .handshakeTimedOut)
    }
    if now >= silenceDeadline {
      // What isn't read can't be heard: the broker is not silent.
      if transport?.isReadingPaused == true { lastReceived = now }
      silenceDeadline = lastReceived.advanced(bySeconds: 2 * heartbeat)
      if now >= silenceDeadline { fail(.heartbeatMissed) }
    }
    if now >= heartbeatDeadline {
      if now >= lastSent.advanced(bySeconds: heartbeat / 2) { sendHeartbeat(at: now) }
      heartbeatDeadline = lastSent.advanced(bySeconds: heartbeat / 2)
    }
    if now >= roleDeadline, phase == .open { roleDeadlineReached(at: now) }
  }

  private func sendHeartbeat(at now: MonotonicTime) {
    guard phase != .finished else { return }
    lastSent = now
    output.append(contentsOf: Frame.heartbeatBytes)
    announceOutput()
  }

  public func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    latest = now
    isOutputAnnounced = false
    if phase == .open { willWrite(at: now) }
    let count = output.count - outputHead
    guard count > 0 else { return }
    lastSent = now
    let limit = 64 * 1024
    if count <= limit, buffer.bytes.isEmpty, outputHead == 0 {
      swap(&buffer.bytes, &output)
    } else {
      let taken = min(count, limit)
      buffer.bytes.append(contentsOf: output[outputHead..<outputHead + taken])
      outputHead += taken
      if outputHead == output.count {
        output.removeAll(keepingCapacity: output.capacity <= 4 * limit)
        outputHead = 0
      } else if outputHead > 16 * limit, outputHead > output.count / 2 {
        output.removeSubrange(..<outputHead)
        outputHead = 0
      }
    }
  }

  // MARK: - Frames in

  public func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    latest = now
    lastReceived = now
    // What the broker said meanwhile is no longer so: others have what it had delivered.
    if heartbeat > 0, phase == .open, now >= lastSent.advanced(bySeconds: 2 * heartbeat) { return fail(.stoodStill) }
    var offset = 0
    if !partial.isEmpty {
      guard let next = completePartial(with: bytes) else { return }
      offset = next
    }
    while phase != .finished {
      let rest = bytes.byteCount - offset
      guard rest >= Frame.headerSize else { break }
      guard let size = payloadSize(bytes, at: offset) else { return }
      guard rest >= size + Frame.overhead else { break }
      readFrame(bytes.extracting(offset..<offset + size + Frame.overhead))
      offset += size + Frame.overhead
    }
    if phase != .finished, offset < bytes.byteCount {
      bytes.append(offset..<bytes.byteCount, to: &partial)
    }
  }

  /// Adds just what the frame begun earlier still needs; the number of bytes used, or nil when there is nothing left to do.
  private func completePartial(with bytes: RawSpan) -> Int? {
    var offset = 0
    if partial.count < Frame.headerSize {
      offset = min(Frame.headerSize - partial.count, bytes.byteCount)
      bytes.append(0..<offset, to: &partial)
      guard partial.count >= Frame.headerSize else { return nil }
    }
    guard let size = payloadSize(partial.span.bytes, at: 0) else { return nil }
    let missing = min(size + Frame.overhead - partial.count, bytes.byteCount - offset)
    bytes.append(offset..<offset + missing, to: &partial)
    guard partial.count == size + Frame.overhead else { return nil }
    var frame: [UInt8] = []
    swap(&frame, &partial)
    readFrame(frame.span.bytes)
    frame.removeAll(keepingCapacity: true)
    swap(&frame, &partial)
    return offset + missing
  }

  private func payloadSize(_ bytes: RawSpan, at offset: Int) -> Int? {
    if phase == .awaitingStart, bytes.byte(at: offset) == Frame.protocolHeader[0] {
      protocolError("the peer speaks another version of AMQP, or another protocol")
      return nil
    }
    let size = Int(bytes.bigEndian(UInt32.self, at: offset + 3))
    let limit = bytes.byte(at: offset) == Frame.contentHeader ? headerMax : frameMax
    guard size <= limit - Frame.overhead else {
      protocolError("a frame of \(size) bytes exceeds the limit agreed on")
      return nil
    }
    return size
  }

  private func readFrame(_ frame: RawSpan) {
    guard frame.byte(at: frame.byteCount - 1) == Frame.end else { return protocolError("a frame without its end octet") }
    let channel = frame.bigEndian(UInt16.self, at: 1)
    let payload = frame.extracting(Frame.headerSize..<frame.byteCount - 1)
    switch frame.byte(at: 0) {
    case Frame.method:
      guard let method = codec.decode(payload) else {
        return protocolError("a malformed or unexpected method\(Self.methodName(payload))")
      }
      if channel == 0 { connectionMethodReceived(method, payload) } else { channelMethodReceived(method, channel, payload) }
    case Frame.contentHeader:
      guard phase == .open, channel != 0 else {
        return phase == .closing ? () : protocolError("a content header outside a channel")
      }
      contentHeaderReceived(payload, channel: channel)
    case Frame.contentBody:
      guard phase == .open, channel != 0 else {
        return phase == .closing ? () : protocolError("a content body outside a channel")
      }
      contentBodyReceived(payload, channel: channel)
    case Frame.heartbeat:
      guard channel == 0 else { return protocolError("a heartbeat on a channel") }
    case let type: protocolError("a frame of unknown type \(type)")
    }
  }

  private static func methodName(_ payload: RawSpan) -> String {
    guard payload.byteCount >= 4 else { return "" }
    return " \(payload.bigEndian(UInt16.self, at: 0)).\(payload.bigEndian(UInt16.self, at: 2))"
  }

  private func channelMethodReceived(_ method: InboundMethod, _ channel: UInt16, _ payload: RawSpan) {
    guard phase == .open else { return phase == .closing ? () : protocolError("a channel's method before the channel") }
    switch method {
    case .channelClose(let code, let text):
      send(.channelCloseOK, channel: channel)
      channelClosed(channel, .channel(code: code, text: payload.text(text)))
    case .channelFlow(let active): send(.channelFlowOK(active: active), channel: channel)
    default: methodReceived(method, channel: channel, payload: payload)
    }
  }

  // MARK: - Channel 0

  private func connectionMethodReceived(_ method: InboundMethod, _ payload: RawSpan) {
    switch (phase, method) {
    case (_, .close(let code, let text)):
      let isHandshake = phase != .open && phase != .closing
      cause = cause ?? .connection(code: code, text: payload.text(text), duringHandshake: isHandshake)
      send(.closeOK, channel: 0)
      phase = .finished
    case (.closing, .closeOK): phase = .finished
    case (.closing, _): break
    case (.awaitingStart, .start(let properties, let mechanisms)):
      server = FieldTable(validating: payload, range: properties).map(BrokerServer.init)
      started(offering: payload.text(mechanisms))
    case (.awaitingTune, .tune(let channelMax, let frameMax, let heartbeat)):
      tuned(channelMax: channelMax, frameMax: frameMax, heartbeat: heartbeat)
    case (.awaitingOpen, .openOK):
      phase = .open
      connectionOpened()
    case (.open, .blocked(let reason)): blocked(reason: payload.text(reason))
    case (.open, .unblocked): unblocked()
    default: protocolError("a connection method out of turn\(Self.methodName(payload))")
    }
  }

  private func started(offering mechanisms: String) {
    guard mechanisms.split(separator: " ").contains("PLAIN") else {
      return fail(.authenticationRefused("the broker doesn't offer PLAIN"))
    }
    let response = [0] + Array(settings.broker.user.utf8) + [0] + Array(settings.broker.password.utf8)
    send(
      .startOK(clientProperties: settings.clientProperties, mechanism: Array("PLAIN".utf8), response: response), channel: 0)
    phase = .awaitingTune
  }

  private func tuned(channelMax: UInt16, frameMax offered: UInt32, heartbeat offeredHeartbeat: UInt16) {
    let agreed = offered == 0 ? settings.frameMax : min(offered, settings.frameMax)
    guard agreed >= 4096 else { return protocolError("a frame limit of \(offered) bytes, below the protocol's minimum") }
    let seconds =
      offeredHeartbeat == 0 || settings.heartbeat == 0
      ? max(offeredHeartbeat, settings.heartbeat) : min(offeredHeartbeat, settings.heartbeat)
    frameMax = Int(agreed)
    let offeredToOthers = min(offered == 0 ? .max : offered, Frame.largestOffered)
    headerMax = Int(max(agreed, offeredToOthers)) + Frame.addedByBroker
    heartbeat = Double(seconds)
    self.channelMax = channelMax == 0 ? mostChannels : min(channelMax, mostChannels)
    send(.tuneOK(channelMax: self.channelMax, frameMax: agreed, heartbeat: seconds), channel: 0)
    send(.open(virtualHost: Array(settings.broker.virtualHost.utf8)), channel: 0)
    phase = .awaitingOpen
    guard seconds > 0 else { return }
    heartbeatDeadline = latest.advanced(bySeconds: heartbeat / 2)
    silenceDeadline = latest.advanced(bySeconds: 2 * heartbeat)
  }
}
