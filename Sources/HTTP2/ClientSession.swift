import Wire

/// The client's end of one HTTP/2 connection, without its I/O (RFC 9113).
///
/// It opens no more streams than the server's live SETTINGS, the configuration and `limitStreams` allow, gives every
/// request one deadline, finds a silent server out by PING, and sorts every request without an answer into what is safe to
/// send again and what may have been processed. Confined to the thread that drives it.
public final class ClientSession: Machine {
  public weak var transport: (any Transport)?
  public weak var handler: (any ClientSessionHandler)?
  public let configuration: ClientConfiguration

  /// `connecting` → `open` → `draining` → `finishing` → `ended`; any state can become `ended`.
  enum State { case connecting, open, draining, finishing, ended }

  private(set) var state = State.connecting
  private(set) var isReady = false
  let engine: ClientEngine
  private var streamCap: Int?
  /// Above this one the server's GOAWAY has promised not to act.
  private var lastProcessedStreamID = Int32.max
  /// Why the session ended, where the transport doesn't know better.
  var fault: TransportEnd?
  var liveness: Liveness
  /// Work is under way that ends by looking at the output anyway.
  private var isBusy = false
  private var outputRequested = false
  private var availabilityReported = false
  private var latestBodySize = 0
  private var largestBodySize = 0
  /// The first of the engine's events that is not delivered yet.
  private var nextEvent = 0
  /// No deadline is acted upon before this time.
  private var notBefore = MonotonicTime(nanoseconds: .min)

  public init(configuration: ClientConfiguration = .init(), handler: (any ClientSessionHandler)? = nil) {
    self.configuration = configuration
    self.handler = handler
    engine = ClientEngine(configuration)
    liveness = Liveness(interval: configuration.pingInterval, timeout: configuration.pingTimeout)
  }

  // MARK: Submitting

  /// Requests that may be submitted now; 0 before the transport is open, while draining and after the end, and from the moment in
  /// which nghttp2 gives the session up: what it ended with may free a request for being sent again before the end is reported.
  public var availableStreams: Int {
    guard state == .open, !engine.isBroken else { return 0 }
    var limit = min(configuration.ownStreamLimit, isReady ? engine.remoteStreamLimit : configuration.streamsBeforeSettings)
    if let streamCap { limit = min(limit, streamCap) }
    return max(0, min(limit - engine.streams.count, engine.remainingStreamIDs))
  }

  /// How many requests fit into the server's flow-control window now, assuming that each body is as large as the latest one and the last
  /// as large as the largest seen. More would only queue in memory, where no more urgent one can overtake them, and nghttp2 starves a body
  /// that is cut off by the window's end, since it prefers streams that have sent less. At least 1 while none is active, so that a window
  /// that never opens shows as a time-out.
  public var sendableStreams: Int {
    let available = availableStreams
    guard available > 0 else { return 0 }
    let room = engine.remoteWindow - engine.streams.unsentBytes - largestBodySize
    if room < 0 { return engine.streams.count == 0 ? 1 : 0 }
    return min(available, 1 + room / max(latestBodySize, 1))
  }

  /// Requests submitted and neither answered nor failed.
  public var activeStreams: Int { engine.streams.count }

  /// No new stream will be opened any more.
  public var isDraining: Bool { state != .connecting && state != .open }

  /// The server's SETTINGS_MAX_CONCURRENT_STREAMS, once it has sent its first SETTINGS.
  public var remoteStreamLimit: Int? { isReady ? engine.remoteStreamLimit : nil }

  /// Sends a request; `tag` comes back in exactly one of `nextAnswer` and `failed`, never from inside this call.
  /// - Parameter values: the template's variable headers, in its order; comes back empty, to be filled for the next request.
  /// - Precondition: `availableStreams` > 0.
  public func submit(_ template: consuming HeaderTemplate, body: consuming [UInt8], tag: Int, _ values: inout HeaderValues) {
    precondition(availableStreams > 0, "submitted without a stream available")
    latestBodySize = body.count
    // Shrinks with each smaller one: a single very large body is not to be reckoned with for ever.
    largestBodySize = max(latestBodySize, largestBodySize - (largestBodySize - latestBodySize) / 128)
    guard engine.submit(consume template, body: consume body, tag: tag, &values) else {
      // A session that is not broken, with a stream id left, refuses for nothing else.
      fatalError("out of memory")
    }
    if engine.remainingStreamIDs == 0 { beginDraining() }
    if sendableStreams == 0 { availabilityReported = false }
    requestOutput()
  }

  /// Opens no further stream; once the open ones have ended, so does the session.
  public func drain() {
    beginDraining()
    requestOutput()
    if !isBusy { settle() }
  }

  /// Holds the session to `limit` streams at once, below what else would be allowed; nil lifts that.
  public func limitStreams(to limit: Int?) {
    streamCap = limit
    if !isBusy { settle() }
  }

  private func requestOutput() {
    guard !isBusy, !outputRequested else { return }
    outputRequested = true
    transport?.outputReady()
  }

  // MARK: Machine

  public func transportOpened(at now: MonotonicTime) {
    state = state == .connecting ? .open : state
    engine.open()
    liveness.opened(at: now)
    busy { settle() }
  }

  public func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    busy {
      engine.streams.stamp(now.advanced(bySeconds: configuration.requestTimeout))
      let before = engine.framesReceived
      engine.receive(bytes)
      if engine.framesReceived != before { liveness.heard(at: now) }
      deliverEvents()
      settle()
    }
  }

  public func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    outputRequested = false
    isBusy = true
    defer { isBusy = false }
    engine.streams.stamp(now.advanced(bySeconds: configuration.requestTimeout))
    var room = 64 * 1024
    repeat {
      room -= engine.write(to: &buffer, limit: room)
      guard !engine.events.isEmpty || engine.isBroken else { break }
      deliverEvents()
      settle()
    } while room > 0 && !engine.isBroken
  }

  public var deadline: MonotonicTime {
    guard state != .ended, state != .connecting else { return .distantFuture }
    return max(due, notBefore)
  }

  private var due: MonotonicTime {
    let first = engine.streams.first
    return first < 0 ? liveness.deadline : min(liveness.deadline, engine.streams[first].deadline)
  }

  public func deadlineReached(at now: MonotonicTime) {
    guard state != .ended, state != .connecting, !isToWaitForInput(now) else { return }
    busy {
      engine.streams.stamp(now.advanced(bySeconds: configuration.requestTimeout))
      failOverdue(at: now)
      checkLiveness(at: now)
      settle()
    }
  }

  /// A deadline that is noticed late has been slept through by this process (a stopped process, a suspended machine), not by
  /// the server, whose answers may lie in the socket unread: they get a moment to be read first.
  private func isToWaitForInput(_ now: MonotonicTime) -> Bool {
    let due = due
    guard now.seconds(since: due) > 1, notBefore < due else { return false }
    notBefore = now.advanced(bySeconds: 0.2)
    return true
  }

  public var isFinished: Bool { state == .finishing && !engine.wantsWrite }

  public func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    guard state != .ended else { return }
    state = .ended
    isBusy = true
    while engine.streams.first >= 0 {
      let slot = engine.streams.remove(engine.streams.first)
      handler?.failed(slot.tag, slot.isSent ? .unknown(.connectionLost) : .notProcessed(.neverSent))
    }
    handler?.sessionEnded(fault ?? reason)
  }

  // MARK: Events

  private func busy(_ work: () -> Void) {
    isBusy = true
    work()
    isBusy = false
  }

  private func deliverEvents() {
    guard !engine.events.isEmpty else { return }
    let handler = handler
    while nextEvent < engine.events.count {
      let event = engine.events[nextEvent]
      if case .streamClosed(let slot, let streamID, _) = event, engine.streams.isAnswered(slot, streamID) {
        let before = nextEvent
        handler?.answersReady(in: self)
        // Left by the handler.
        if nextEvent == before { _ = nextAnswer() }
      } else {
        nextEvent += 1
        deliver(event, to: handler)
      }
    }
    engine.events.removeAll(keepingCapacity: true)
    nextEvent = 0
  }

  /// The next of the answers that have come, in their order. To be called from within `answersReady` until there is none: what the
  /// handler leaves is dropped.
  public func nextAnswer() -> (tag: Int, response: Response)? {
    guard nextEvent < engine.events.count, case .streamClosed(let slot, let streamID, _) = engine.events[nextEvent],
      engine.streams.isAnswered(slot, streamID)
    else { return nil }
    nextEvent += 1
    return engine.streams.takeAnswer(slot)
  }

  private func deliver(_ event: ClientEvent, to handler: (any ClientSessionHandler)?) {
    switch event {
    case .streamClosed(let slot, let streamID, let code):
      guard engine.streams[slot].streamID == streamID else { return }
      reportUnanswered(engine.streams.remove(slot), code, to: handler)
    case .notSent(let streamID):
      guard let slot = engine.streams.firstIndex(where: { $0.streamID == streamID }) else { return }
      let stream = engine.streams.remove(slot)
      handler?.failed(stream.tag, .notProcessed(lastProcessedStreamID == .max ? .neverSent : .goAway))
    case .settingsReceived:
      guard !isReady else { return }
      isReady = true
      liveness.ready()
      handler?.sessionReady()
    case .goAwayReceived:
      goAwayReceived(engine.goAways.removeFirst())
    case .pong(let number):
      liveness.answered(number)
    }
  }

  private func reportUnanswered(_ stream: borrowing StreamSlot, _ code: ErrorCode, to handler: (any ClientSessionHandler)?) {
    if stream.streamID > lastProcessedStreamID {
      handler?.failed(stream.tag, .notProcessed(.goAway))
    } else if code == .refusedStream {
      handler?.failed(stream.tag, .notProcessed(.refusedStream))
    } else {
      handler?.failed(stream.tag, .unknown(.reset(code)))
    }
  }

  private func goAwayReceived(_ goAway: GoAway) {
    lastProcessedStreamID = min(lastProcessedStreamID, goAway.lastStreamID)
    beginDraining()
    handler?.goAwayReceived(goAway)
    // Those that were never framed are in no stream table of nghttp2's yet; it would only find out when sending.
    while let slot = engine.streams.firstIndex(where: { !$0.isSent }) {
      engine.reset(engine.streams[slot].streamID, .cancel)
      let stream = engine.streams.remove(slot)
      handler?.failed(stream.tag, .notProcessed(.goAway))
    }
  }

  private func failOverdue(at now: MonotonicTime) {
    while true {
      let slot = engine.streams.first
      guard slot >= 0, engine.streams[slot].deadline <= now else { return }
      let streamID = engine.streams[slot].streamID
      engine.reset(streamID, .cancel)
      if engine.streams[slot].isHeaded {
        // Its status says what has become of the request, although its body hasn't ended.
        engine.streams[slot].isAnswered = true
        engine.events.append(.streamClosed(slot: slot, streamID: streamID, code: .cancel))
        deliverEvents()
        continue
      }
      let stream = engine.streams.remove(slot)
      if stream.isSent {
        liveness.suspect()
        // The server's window stays shut: what is sent here next would not leave either.
        if !stream.body.isEmpty { beginDraining() }
        handler?.failed(stream.tag, .unknown(.timedOut))
      } else {
        handler?.failed(stream.tag, .notProcessed(.neverSent))
      }
    }
  }

  private func checkLiveness(at now: MonotonicTime) {
    switch liveness.check(at: now) {
    case .alive: break
    case .ping(let number): engine.ping(number)
    case .dead(let why): end(.failed(why))
    }
  }

  // MARK: Ending

  private func beginDraining() {
    guard state == .open || state == .connecting else { return }
    state = .draining
    handler?.sessionDraining()
  }

  private func end(_ reason: TransportEnd) {
    guard state != .ended else { return }
    if fault == nil { fault = reason }
    state = .finishing
    transport?.close()
  }

  /// After every step: ends a session that has nothing left to do, and says when streams have become available.
  private func settle() {
    switch state {
    case .draining where engine.streams.count == 0:
      engine.terminate(.noError)
      state = .finishing
      transport?.outputReady()
    case .open where !engine.wantsRead, .draining where !engine.wantsRead:
      // nghttp2 has ended the connection over what the server sent; its GOAWAY still goes out.
      fault = .failed("HTTP/2: \(engine.fault ?? "the server broke the protocol")")
      state = .finishing
      transport?.outputReady()
    default: break
    }
    let isAvailable = sendableStreams > 0
    if isAvailable, !availabilityReported {
      availabilityReported = true
      handler?.streamsAvailable()
    }
    availabilityReported = sendableStreams > 0
  }
}
