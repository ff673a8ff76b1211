import Wire

/// The client side of one HTTP/2 connection without its I/O (RFC 9113). The server's current SETTINGS, the configuration and
/// `limitStreams` limit its open streams. Every request has one deadline. A PING detects a silent server. Requests without a
/// response are either safe to send again or possibly processed. Confined to the thread that drives it.
///
/// If the configuration allows it and the server has nothing else, the connection is HTTP/1.1 (RFC 9112): one stream at a time,
/// no PING, and the session drains when the server closes it.
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
  /// Why the session ended; nil if only the transport knows.
  var fault: TransportEnd?
  var liveness: Liveness
  /// True while the current call writes the output at its end anyway.
  private var isBusy = false
  private var outputRequested = false
  private var availabilityReported = false
  private var latestBodySize = 0
  private var largestBodySize = 0
  /// Index of the engine's first undelivered event.
  private var nextEvent = 0
  /// Deadlines are ignored before this time.
  private var notBefore = MonotonicTime(nanoseconds: .min)
  private var goAwayCount = 0

  /// Further GOAWAYs are ignored: each causes a line in the log, and a look at all streams.
  private static let mostGoAways = 16

  public init(configuration: ClientConfiguration = .init(), handler: (any ClientSessionHandler)? = nil) {
    self.configuration = configuration
    self.handler = handler
    engine = ClientEngine(configuration)
    liveness = Liveness(interval: configuration.pingInterval, timeout: configuration.pingTimeout)
  }

  // MARK: Submitting

  /// Number of requests that may be submitted now. 0 before the server's first SETTINGS, while draining and after the end. Also
  /// 0 once the connection has failed: requests may be released for resending before the end is reported.
  public var availableStreams: Int {
    guard state == .open, isReady, !engine.isBroken else { return 0 }
    var limit = min(configuration.ownStreamLimit, engine.remoteStreamLimit)
    if let streamCap { limit = min(limit, streamCap) }
    return max(0, min(limit - engine.streams.count, engine.remainingStreamIDs))
  }

  /// Number of requests that fit into the server's flow-control window now. The estimate assumes that each body is as large as
  /// the latest one, and the last body as large as the largest one.
  ///
  /// More requests would only queue in memory, where urgent ones can't overtake them. The result is at least 1 while no request
  /// is active, so that a window that never opens causes a timeout.
  public var sendableStreams: Int {
    let available = availableStreams
    guard available > 0 else { return 0 }
    let room = engine.remoteWindow - engine.streams.unsentBytes - largestBodySize
    if room < 0 { return engine.streams.count == 0 ? 1 : 0 }
    return min(available, 1 + room / max(latestBodySize, 1))
  }

  public var activeStreams: Int { engine.streams.count }

  public var remoteStreamLimit: Int? { isReady ? engine.remoteStreamLimit : nil }

  /// Sends a request. `nextAnswer` or `failed` later returns `tag`, exactly once and never during this call.
  /// - Parameter values: the template's variable headers in order. Returned empty, for the next request.
  /// - Precondition: `availableStreams` > 0.
  public func submit(_ template: consuming HeaderTemplate, body: consuming [UInt8], tag: Int, _ values: inout HeaderValues) {
    precondition(availableStreams > 0, "submitted without a stream available")
    latestBodySize = body.count
    // The estimate decays with smaller bodies, so that one very large body doesn't count forever.
    largestBodySize = max(latestBodySize, largestBodySize - (largestBodySize - latestBodySize) / 128)
    engine.submit(consume template, body: consume body, tag: tag, &values)
    if engine.remainingStreamIDs == 0 { beginDraining() }
    if sendableStreams == 0 { availabilityReported = false }
    requestOutput()
  }

  /// Opens no further streams. The session ends after the open ones.
  public func drain() {
    let isConnecting = state == .connecting
    beginDraining()
    if isConnecting { return end(.closedLocally) }
    requestOutput()
    if !isBusy { settle() }
  }

  /// Limits the session to `limit` open streams, below its other limits; nil removes this limit.
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
    busy {
      if hasOnlyHTTP1 {
        engine.openHTTP1()
        becomeReady()
      } else {
        engine.open()
        liveness.opened(at: now)
      }
      settle()
    }
  }

  /// True if the server has only HTTP/1.1.
  public var isHTTP1: Bool { engine.isHTTP1 }

  /// Every server that knows HTTP/2 selects it in the TLS handshake (RFC 9113 §3.2).
  private var hasOnlyHTTP1: Bool {
    guard configuration.allowsHTTP1, let selected = transport?.applicationProtocol else { return false }
    return selected.isEmpty || selected == "http/1.1"
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
    engine.streams.stamp(now.advanced(bySeconds: configuration.requestTimeout))
    engine.write(to: &buffer, limit: 64 * 1024)
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
      deliverEvents()
      checkLiveness(at: now)
      settle()
    }
  }

  /// A late deadline means that this process was stopped, and responses may be unread in the socket. They get a moment to be
  /// read.
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
    engine.connectionEnded()
    deliverEvents()
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
        // The handler left this response.
        if nextEvent == before { _ = nextAnswer() }
      } else {
        nextEvent += 1
        deliver(event, to: handler)
      }
    }
    engine.events.removeAll(keepingCapacity: true)
    nextEvent = 0
  }

  /// The next response in order of arrival. Call this in `answersReady` until it returns nil; remaining responses are dropped.
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
      let slot = engine.streams.slot(of: streamID)
      guard slot >= 0 else { return }
      handler?.failed(engine.streams.remove(slot).tag, .notProcessed(.neverSent))
    case .settingsReceived:
      becomeReady()
    case .goAwayReceived:
      goAwayReceived(engine.goAways.removeFirst())
    case .pong(let number):
      liveness.answered(number)
    case .connectionClosing:
      beginDraining()
    }
  }

  private func becomeReady() {
    guard !isReady else { return }
    isReady = true
    liveness.ready()
    handler?.sessionReady()
  }

  private func reportUnanswered(_ stream: borrowing StreamSlot, _ code: ErrorCode, to handler: (any ClientSessionHandler)?) {
    if stream.streamID > engine.lastProcessedStreamID {
      handler?.failed(stream.tag, .notProcessed(.goAway))
    } else if code == .refusedStream {
      handler?.failed(stream.tag, .notProcessed(.refusedStream))
    } else {
      handler?.failed(stream.tag, .unknown(.reset(code)))
    }
  }

  private func goAwayReceived(_ goAway: GoAway) {
    goAwayCount += 1
    guard goAwayCount <= Self.mostGoAways else { return }
    beginDraining()
    handler?.goAwayReceived(goAway)
    let last = goAway.lastStreamID
    for slot in engine.streams.slots(where: { !$0.isHeaded && (!$0.isSent || $0.streamID > last) }) {
      handler?.failed(engine.streams.remove(slot).tag, .notProcessed(.goAway))
    }
  }

  private func failOverdue(at now: MonotonicTime) {
    while true {
      let slot = engine.streams.first
      guard slot >= 0, engine.streams[slot].deadline <= now else { return }
      let streamID = engine.streams[slot].streamID
      engine.reset(streamID, .cancel)
      if engine.streams[slot].isHeaded {
        // The status is final although the body hasn't ended.
        engine.events.append(engine.streams.complete(slot, .cancel))
        deliverEvents()
        continue
      }
      let stream = engine.streams.remove(slot)
      if stream.isSent {
        liveness.suspect()
        // The server's window stays closed, so later requests would not be sent either.
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

  /// Called after every step. Ends a session that has nothing left to do, and reports available streams.
  private func settle() {
    switch state {
    case .draining where engine.streams.count == 0:
      engine.terminate(.noError)
      state = .finishing
      transport?.outputReady()
    case .open, .draining:
      guard let reason = engine.fault else { break }
      // Its GOAWAY is still sent.
      fault = .failed("\(engine.isHTTP1 ? "HTTP/1.1" : "HTTP/2"): \(reason)")
      state = .finishing
      transport?.outputReady()
    case .connecting, .finishing, .ended: break
    }
    let isAvailable = sendableStreams > 0
    if isAvailable, !availabilityReported {
      availabilityReported = true
      handler?.streamsAvailable()
      if state == .draining { settle() }
    }
    availabilityReported = sendableStreams > 0
  }
}
