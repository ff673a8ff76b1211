import AMQP
import Wire

/// The broker's side of one connection: framing, handshake, heartbeats, closes. `ServerChannel` handles the channels.
///
/// While the broker is frozen, or an alarm blocks a publishing connection, input is kept and not processed.
final class ServerConnection: Machine {
  weak var transport: (any Transport)?
  let number: Int
  unowned let broker: VirtualBroker
  private(set) var phase = Phase.awaitingHeader
  private(set) var name = ""
  private(set) var user = ""
  var channels: [UInt16: ServerChannel] = [:]
  /// True if the client asked for notices of cancelled consumers.
  private(set) var wantsCancels = false
  private(set) var wantsBlocked = false
  /// True if an alarm stopped the connection during a publication.
  private(set) var isBlocked = false

  private(set) var frameMax = 4096
  private var input = FrameBuffer()
  private var output: [UInt8] = []
  private var outputHead = 0
  private var isOutputAnnounced = false

  private var heartbeat = 0.0
  private var lastSent = MonotonicTime(nanoseconds: 0)
  private var lastReceived = MonotonicTime(nanoseconds: 0)
  private var closeDeadline = MonotonicTime.distantFuture

  enum Phase {
    /// → `awaitingStartOK`, `finished`.
    case awaitingHeader
    /// → `awaitingTuneOK`, `finished`.
    case awaitingStartOK
    /// → `awaitingOpen`.
    case awaitingTuneOK
    /// → `open`, `closing`.
    case awaitingOpen
    /// → `closing`, `finished`.
    case open
    /// `connection.close` is sent. → `finished`.
    case closing
    /// Reads nothing more and writes the rest of `output`. Final.
    case finished
  }

  init(number: Int, broker: VirtualBroker) {
    self.number = number
    self.broker = broker
  }

  var client: Client { Client(number: number, name: name) }

  /// Seconds that a client may take to answer a close.
  private static let closeTimeout = 10.0

  // MARK: - Out

  func send(_ method: ServerMethod, channel: UInt16 = 0) {
    guard phase != .finished else { return }
    method.append(to: &output, channel: channel)
    announceOutput()
  }

  func sendContent(of message: Message, channel: UInt16) {
    guard phase != .finished else { return }
    output.appendContent(message.encodedProperties, body: message.body, channel: channel, frameMax: frameMax)
    announceOutput()
  }

  func announceOutput() {
    guard !isOutputAnnounced else { return }
    isOutputAnnounced = true
    transport?.outputReady()
  }

  /// Closes in good order. The channels end at once.
  func close(_ refusal: Refusal, at now: MonotonicTime) {
    guard phase != .closing, phase != .finished else { return }
    endChannels(at: now)
    send(.close(refusal))
    phase = .closing
    closeDeadline = now.advanced(bySeconds: Self.closeTimeout)
    resumeReading()
  }

  func drop(at now: MonotonicTime) {
    endChannels(at: now)
    phase = .finished
    output = []
    outputHead = 0
    transport?.close()
  }

  private func finish(at now: MonotonicTime) {
    endChannels(at: now)
    phase = .finished
    announceOutput()
  }

  private func endChannels(at now: MonotonicTime) {
    for channel in channels.values.sorted(by: { $0.number < $1.number }) { channel.end(at: now) }
    channels = [:]
    broker.connectionEnded(self, at: now)
  }

  // MARK: - Machine

  func transportOpened(at now: MonotonicTime) {
    lastSent = now
    lastReceived = now
    pauseOrResume()
  }

  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    broker.perform(at: now) { [self] now in
      if phase != .finished { endChannels(at: now) }
      phase = .finished
      input.removeAll()
      output = []
      outputHead = 0
      broker.forget(self)
    }
  }

  var isFinished: Bool { phase == .finished && !broker.isFrozen }

  var deadline: MonotonicTime {
    guard !broker.isFrozen, phase != .finished else { return .distantFuture }
    guard heartbeat > 0 else { return closeDeadline }
    return min(closeDeadline, min(lastSent.advanced(bySeconds: heartbeat / 2), silenceDeadline))
  }

  /// A blocked client can't send, so its silence doesn't count.
  private var silenceDeadline: MonotonicTime {
    isBlocked || heartbeat == 0 ? .distantFuture : lastReceived.advanced(bySeconds: 2 * heartbeat)
  }

  func deadlineReached(at now: MonotonicTime) {
    guard !broker.isFrozen, phase != .finished else { return }
    if now >= closeDeadline || now >= silenceDeadline { return broker.perform(at: now) { [self] in drop(at: $0) } }
    if heartbeat > 0, now >= lastSent.advanced(bySeconds: heartbeat / 2) {
      lastSent = now
      output += [Frame.heartbeat, 0, 0, 0, 0, 0, 0, Frame.end]
      announceOutput()
    }
  }

  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    isOutputAnnounced = false
    guard !broker.isFrozen else { return }
    if phase == .open {
      for channel in channels.values.sorted(by: { $0.number < $1.number }) { channel.flushConfirms() }
      isOutputAnnounced = false
    }
    let taken = output[outputHead...].prefix(64 * 1024)
    guard !taken.isEmpty else { return }
    lastSent = now
    buffer.append(taken)
    outputHead += taken.count
    if outputHead == output.count {
      output.removeAll(keepingCapacity: output.capacity <= 256 * 1024)
      outputHead = 0
    }
  }

  // MARK: - In

  func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    lastReceived = now
    input.append(bytes)
    guard !broker.isFrozen else { return }
    broker.perform(at: now) { [self] in readFrames(at: $0) }
  }

  /// Continues to read after a freeze or an alarm.
  func resumed(at now: MonotonicTime) {
    lastReceived = now
    pauseOrResume()
    readFrames(at: now)
    transport?.outputReady()
  }

  func pauseOrResume() { transport?.isReadingPaused = isBlocked || broker.isFrozen }

  private func resumeReading() {
    isBlocked = false
    pauseOrResume()
  }

  private func readFrames(at now: MonotonicTime) {
    if phase == .awaitingHeader {
      guard let header = input.takeProtocolHeader() else { return }
      headerReceived(header, at: now)
    }
    while phase != .finished, !isBlocked, let frame = nextFrame(at: now) { frameReceived(frame, at: now) }
    if phase == .finished { input.removeAll() }
  }

  /// A client that sends bad frames gets the reason and nothing more.
  private func nextFrame(at now: MonotonicTime) -> FrameBuffer.Received? {
    do throws(Refusal) {
      return try input.next(frameMax: frameMax)
    } catch {
      close(error, at: now)
      finish(at: now)
      return nil
    }
  }

  private func headerReceived(_ header: ArraySlice<UInt8>, at now: MonotonicTime) {
    guard header.elementsEqual(Frame.protocolHeader) else {
      output += Frame.protocolHeader
      return finish(at: now)
    }
    phase = .awaitingStartOK
    send(.start)
  }

  private func frameReceived(_ frame: FrameBuffer.Received, at now: MonotonicTime) {
    do throws(Refusal) {
      switch frame.type {
      case Frame.heartbeat: break
      case Frame.method:
        guard let method = ClientMethod(frame.payload) else { throw .syntaxError("a malformed method") }
        if frame.channel == 0 { try methodReceived(method, at: now) } else { try channelMethod(method, frame.channel, at: now) }
      case Frame.contentHeader, Frame.contentBody:
        guard phase == .open else { break }
        guard let channel = channels[frame.channel] else { throw .channelError("expected 'channel.open'") }
        try channel.contentReceived(frame, at: now)
        if broker.alarm != nil { block() }
      default: throw .frameError("a frame of type \(frame.type)")
      }
    } catch {
      close(error, at: now)
    }
  }

  private func channelMethod(_ method: ClientMethod, _ number: UInt16, at now: MonotonicTime) throws(Refusal) {
    guard phase == .open else { return }
    if case .channelOpen = method {
      guard channels[number] == nil else { throw .channelError("second 'channel.open' seen") }
      channels[number] = ServerChannel(
        number: number, publisher: broker.nextPublisher(), connection: self, openedAt: now)
      return send(.channelOpenOK, channel: number)
    }
    guard let channel = channels[number] else { throw .channelError("expected 'channel.open'") }
    try channel.methodReceived(method, at: now)
  }

  /// Both sides, or the client, have closed the channel.
  func channelEnded(_ channel: ServerChannel, at now: MonotonicTime) {
    channels[channel.number] = nil
    channel.end(at: now)
  }

  func closeChannels(_ refusal: Refusal, at now: MonotonicTime) {
    for channel in channels.values.sorted(by: { $0.number < $1.number }) { channel.close(refusal, at: now) }
  }

  /// Stops reading after a publication during an alarm, even in the middle of its body.
  private func block() {
    guard !isBlocked, phase == .open else { return }
    isBlocked = true
    pauseOrResume()
    if wantsBlocked, let alarm = broker.alarm { send(.blocked(reason: alarm)) }
  }

  func alarmCleared(at now: MonotonicTime) {
    guard isBlocked else { return }
    if wantsBlocked { send(.unblocked) }
    isBlocked = false
    lastReceived = now
    resumed(at: now)
  }

  // MARK: - Channel 0

  private func methodReceived(_ method: ClientMethod, at now: MonotonicTime) throws(Refusal) {
    switch (phase, method) {
    case (.awaitingStartOK, .startOK(let properties, let mechanism, let response)):
      try logIn(properties, mechanism, response)
    case (.awaitingTuneOK, .tuneOK(_, let frameMax, let heartbeat)):
      self.frameMax = frameMax == 0 ? Int(broker.settings.frameMax) : max(4096, Int(min(frameMax, broker.settings.frameMax)))
      self.heartbeat = Double(heartbeat)
      phase = .awaitingOpen
    case (.awaitingOpen, .open(let virtualHost)):
      let name = String(decoding: virtualHost, as: UTF8.self)
      guard broker.settings.virtualHosts.contains(name) else { throw .notAllowed("vhost \(name) not found") }
      phase = .open
      send(.openOK)
    case (.awaitingStartOK, .close), (.awaitingTuneOK, .close), (.awaitingOpen, .close), (.open, .close):
      endChannels(at: now)
      send(.closeOK)
      finish(at: now)
    case (.closing, .close):
      send(.closeOK)
      finish(at: now)
    case (.closing, .closeOK): finish(at: now)
    case (.closing, _): break
    default: throw .commandInvalid("unexpected method in connection state")
    }
  }

  private func logIn(_ properties: FieldTable, _ mechanism: [UInt8], _ response: [UInt8]) throws(Refusal) {
    name = properties.string("connection_name").map { String(decoding: $0, as: UTF8.self) } ?? ""
    if case .table(let capabilities)? = properties["capabilities"] {
      wantsCancels = capabilities["consumer_cancel_notify"] == .bool(true)
      wantsBlocked = capabilities["connection.blocked"] == .bool(true)
    }
    let parts = response.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    guard mechanism == Array("PLAIN".utf8), parts.count == 3, broker.settings.users[parts[1]] == parts[2] else {
      throw .loginRefused(
        "Login was refused using authentication mechanism PLAIN. For details see the broker logfile.")
    }
    user = parts[1]
    phase = .awaitingTuneOK
    frameMax = Int(broker.settings.frameMax)
    send(
      .tune(
        channelMax: broker.settings.channelMax, frameMax: broker.settings.frameMax, heartbeat: broker.settings.heartbeat))
  }
}
