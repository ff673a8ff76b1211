import Wire

/// The part of an AMQP 0-9-1 connection that all roles share: handshake, framing, heartbeats and closes. A `ConnectionRole`
/// handles the channels. It can be opened again on a new transport after the old one has ended.
final class Connection {
  weak var transport: (any Transport)?
  let settings: ConnectionSettings

  private(set) var phase = Phase.idle
  /// The first reason for the end. Later reasons follow from it and aren't reported.
  private var cause: ConnectionEnd?
  /// The broker's announcement about itself; nil before it comes.
  private(set) var server: BrokerServer?
  /// The largest frame in either direction in bytes, including overhead.
  private(set) var frameMax: Int
  /// The largest incoming content header frame in bytes.
  private var headerMax = 0
  private(set) var channelMax: UInt16 = 1
  private(set) var latest = MonotonicTime(nanoseconds: 0)

  /// Frames to write. The first `outputHead` bytes are already written.
  var output: [UInt8] = []
  private var outputHead = 0
  var unwritten: Int { output.count - outputHead }
  private var isOutputAnnounced = false
  private var partial: [UInt8] = []

  /// Seconds; 0 if off.
  private(set) var heartbeat: Double = 0
  private var lastReceived = MonotonicTime(nanoseconds: 0)
  private var lastSent = MonotonicTime(nanoseconds: 0)
  private var phaseDeadline = MonotonicTime.distantFuture
  private var heartbeatDeadline = MonotonicTime.distantFuture
  private var silenceDeadline = MonotonicTime.distantFuture
  /// `becameReady` was called, so a phase that takes too long isn't the handshake.
  private var hasBeenReady = false

  enum Phase {
    /// No transport, or one that is connecting. Next: `awaitingStart` or `finished`.
    case idle
    /// Our protocol header is sent. Next: `awaitingTune` or `finished`.
    case awaitingStart
    /// The credentials are sent. Next: `awaitingOpen` or `finished`.
    case awaitingTune
    /// `connection.open` is sent. Next: `open` or `finished`.
    case awaitingOpen
    /// Channels may be used. Next: `closing` or `finished`.
    case open
    /// Our `connection.close` is sent. Next: `finished`.
    case closing
    /// Input is ignored; `output` is still written. Next: `idle`, once the transport has ended.
    case finished
  }

  init(settings: ConnectionSettings) {
    self.settings = settings
    frameMax = Int(settings.frameMax)
  }

  /// Closes in order: queued output goes out first, then the close. The end follows as an event, if there is a transport.
  func close(because end: ConnectionEnd = .closedHere) {
    switch phase {
    case .idle where transport == nil: return
    case .closing, .finished: return
    case .idle, .awaitingStart, .awaitingTune, .awaitingOpen:
      cause = cause ?? end
      phase = .finished
      transport?.close()
    case .open:
      send(.close(code: 200, text: Array("goodbye".utf8)), channel: 0)
      startClosing(because: end)
      phase = .closing
    }
  }

  // MARK: - Helpers for roles

  var isOpen: Bool { phase == .open }

  func send(_ method: OutboundMethod, channel: UInt16) {
    method.append(to: &output, channel: channel)
    announceOutput()
  }

  /// Call this after appending to `output`, or if `willWrite` has something to append.
  func announceOutput() {
    guard !isOutputAnnounced else { return }
    isOutputAnnounced = true
    transport?.outputReady()
  }

  /// The role is ready to work, so the handshake's deadline no longer applies.
  func becameReady() {
    hasBeenReady = true
    if cause == nil { phaseDeadline = .distantFuture }
  }

  /// Begins an orderly close that needs further answers first. The broker has the time of a close for them.
  func startClosing(because end: ConnectionEnd) {
    cause = cause ?? end
    limitAnswer()
  }

  /// The broker has the time of a close for its next answer. The time begins with the next turn, because `latest` may be long
  /// ago.
  func limitAnswer() { phaseDeadline = Self.nextTurn }

  private static let nextTurn = MonotonicTime(nanoseconds: 0)

  /// Drops the connection without a close handshake.
  func fail(_ end: ConnectionEnd) {
    guard phase != .finished, phase != .idle else { return }
    cause = cause ?? end
    phase = .finished
    output.removeAll(keepingCapacity: false)
    outputHead = 0
    transport?.close()
  }

  func protocolError(_ what: String) { fail(.protocolError(what)) }

  // MARK: - Machine

  func transportOpened(at now: MonotonicTime) {
    latest = now
    lastReceived = now
    lastSent = now
    reset(to: .awaitingStart)
    hasBeenReady = false
    heartbeat = 0
    frameMax = Int(settings.frameMax)
    headerMax = frameMax
    phaseDeadline = now.advanced(bySeconds: ConnectionSettings.handshakeTimeout)
    output.append(contentsOf: Frame.protocolHeader)
    announceOutput()
  }

  /// - Returns: why the connection ended.
  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) -> ConnectionEnd {
    latest = now
    reset(to: .idle)
    defer { cause = nil }
    return cause ?? .transport(reason)
  }

  private func reset(to phase: Phase) {
    self.phase = phase
    phaseDeadline = .distantFuture
    heartbeatDeadline = .distantFuture
    silenceDeadline = .distantFuture
    partial = []
    output = []
    outputHead = 0
    isOutputAnnounced = false
  }

  var isFinished: Bool { phase == .finished }

  /// - Parameter role: the role's deadline. It counts only while the connection is open.
  func deadline(with role: MonotonicTime) -> MonotonicTime {
    min(min(phaseDeadline, isOpen ? role : .distantFuture), min(heartbeatDeadline, silenceDeadline))
  }

  func deadlineReached(at now: MonotonicTime) {
    latest = now
    if phaseDeadline == Self.nextTurn {
      phaseDeadline = now.advanced(bySeconds: ConnectionSettings.closeTimeout)
    } else if now >= phaseDeadline {
      phaseDeadline = .distantFuture
      fail(phase == .closing ? .closedHere : hasBeenReady ? .heartbeatMissed : .handshakeTimedOut)
    }
    if now >= silenceDeadline {
      // While reading is paused, no input arrives. The broker doesn't count as silent then.
      if transport?.isReadingPaused == true { lastReceived = now }
      silenceDeadline = lastReceived.advanced(bySeconds: 2 * heartbeat)
      if now >= silenceDeadline { fail(.heartbeatMissed) }
    }
    if now >= heartbeatDeadline {
      if now >= lastSent.advanced(bySeconds: heartbeat / 2) { sendHeartbeat(at: now) }
      heartbeatDeadline = lastSent.advanced(bySeconds: heartbeat / 2)
    }
  }

  private func sendHeartbeat(at now: MonotonicTime) {
    guard phase != .finished else { return }
    lastSent = now
    output.append(contentsOf: Frame.heartbeatBytes)
    announceOutput()
  }

  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime, for role: some ConnectionRole) {
    latest = now
    isOutputAnnounced = false
    if isOpen { role.willWrite(at: now) }
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

  func receive(_ bytes: RawSpan, at now: MonotonicTime, for role: some ConnectionRole) {
    latest = now
    lastReceived = now
    // The broker has given the connection up by now. Its buffered frames are outdated: other consumers have the deliveries.
    if heartbeat > 0, phase == .open, now >= lastSent.advanced(bySeconds: 2 * heartbeat) { return fail(.stoodStill) }
    var offset = 0
    if !partial.isEmpty {
      guard let next = completePartial(with: bytes, for: role) else { return }
      offset = next
    }
    while phase != .finished {
      let rest = bytes.byteCount - offset
      guard rest >= Frame.headerSize else { break }
      guard let size = payloadSize(bytes, at: offset) else { return }
      guard rest >= size + Frame.overhead else { break }
      readFrame(bytes.extracting(offset..<offset + size + Frame.overhead), for: role)
      offset += size + Frame.overhead
    }
    if phase != .finished, offset < bytes.byteCount {
      bytes.append(offset..<bytes.byteCount, to: &partial)
    }
  }

  /// Appends only the missing bytes of the partial frame. Returns the number of bytes used, or nil if no whole frame results.
  private func completePartial(with bytes: RawSpan, for role: some ConnectionRole) -> Int? {
    var frame: [UInt8] = []
    swap(&frame, &partial)
    defer { swap(&frame, &partial) }
    var offset = 0
    if frame.count < Frame.headerSize {
      offset = min(Frame.headerSize - frame.count, bytes.byteCount)
      bytes.append(0..<offset, to: &frame)
      guard frame.count >= Frame.headerSize else { return nil }
    }
    guard let size = payloadSize(frame.span.bytes, at: 0) else { return nil }
    let missing = min(size + Frame.overhead - frame.count, bytes.byteCount - offset)
    bytes.append(offset..<offset + missing, to: &frame)
    guard frame.count == size + Frame.overhead else { return nil }
    readFrame(frame.span.bytes, for: role)
    frame.removeAll(keepingCapacity: true)
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

  private func readFrame(_ frame: RawSpan, for role: some ConnectionRole) {
    guard frame.byte(at: frame.byteCount - 1) == Frame.end else { return protocolError("a frame without its end octet") }
    let channel = frame.bigEndian(UInt16.self, at: 1)
    let payload = frame.extracting(Frame.headerSize..<frame.byteCount - 1)
    switch frame.byte(at: 0) {
    case Frame.method:
      guard let method = InboundMethod(payload) else {
        return protocolError("a malformed or unexpected method\(Self.methodName(payload))")
      }
      if channel == 0 {
        connectionMethodReceived(method, payload, for: role)
      } else {
        channelMethodReceived(method, channel, payload, for: role)
      }
    case Frame.contentHeader:
      guard phase == .open, channel != 0 else {
        return phase == .closing ? () : protocolError("a content header outside a channel")
      }
      role.contentHeaderReceived(payload, channel: channel)
    case Frame.contentBody:
      guard phase == .open, channel != 0 else {
        return phase == .closing ? () : protocolError("a content body outside a channel")
      }
      role.contentBodyReceived(payload, channel: channel)
    case Frame.heartbeat:
      guard channel == 0 else { return protocolError("a heartbeat on a channel") }
    case let type: protocolError("a frame of unknown type \(type)")
    }
  }

  private static func methodName(_ payload: RawSpan) -> String {
    guard payload.byteCount >= 4 else { return "" }
    return " \(payload.bigEndian(UInt16.self, at: 0)).\(payload.bigEndian(UInt16.self, at: 2))"
  }

  private func channelMethodReceived(
    _ method: InboundMethod, _ channel: UInt16, _ payload: RawSpan, for role: some ConnectionRole
  ) {
    guard phase == .open else { return phase == .closing ? () : protocolError("a channel's method before the channel") }
    switch method {
    case .channelClose(let code, let text):
      send(.channelCloseOK, channel: channel)
      role.channelClosed(channel, .channel(code: code, text: payload.text(text)))
    case .channelFlow(let active): send(.channelFlowOK(active: active), channel: channel)
    default: role.methodReceived(method, channel: channel, payload: payload)
    }
  }

  // MARK: - Channel 0

  private func connectionMethodReceived(_ method: InboundMethod, _ payload: RawSpan, for role: some ConnectionRole) {
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
      tuned(channelMax: channelMax, frameMax: frameMax, heartbeat: heartbeat, mostChannels: role.mostChannels)
    case (.awaitingOpen, .openOK):
      phase = .open
      role.connectionOpened()
    case (.open, .blocked(let reason)): role.blocked(reason: payload.text(reason))
    case (.open, .unblocked): role.unblocked()
    default: protocolError("a connection method out of turn\(Self.methodName(payload))")
    }
  }

  private func started(offering mechanisms: String) {
    let mechanism = settings.broker.isExternal ? "EXTERNAL" : "PLAIN"
    guard mechanisms.split(separator: " ").contains(Substring(mechanism)) else {
      return fail(.authenticationRefused("the broker doesn't offer \(mechanism)"))
    }
    send(
      .startOK(
        clientProperties: settings.clientProperties, mechanism: Array(mechanism.utf8), response: settings.broker.response),
      channel: 0)
    phase = .awaitingTune
  }

  private func tuned(
    channelMax: UInt16, frameMax offered: UInt32, heartbeat offeredHeartbeat: UInt16, mostChannels: UInt16
  ) {
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
