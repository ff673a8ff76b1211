import Wire

/// The server side of one HTTP/2 connection without its I/O, for the provider simulators. Confined to the thread that drives
/// it. The handler may answer in any call or later.
public final class ServerSession: Machine {
  public weak var transport: (any Transport)?
  public weak var handler: (any ServerSessionHandler)?
  public let configuration: ServerConfiguration
  let engine: ServerEngine

  /// `open` → `finishing` → `ended`.
  private enum State { case open, finishing, ended }
  private var state = State.open
  private var isBusy = false
  /// The lowest last stream of our GOAWAYs.
  private var lastAccepted = Int32.max

  public init(configuration: ServerConfiguration = .init(), handler: (any ServerSessionHandler)? = nil) {
    self.configuration = configuration
    self.handler = handler
    engine = ServerEngine(configuration)
  }

  public var openStreams: Int { engine.streams.count }

  // MARK: Answering

  /// Answers a request. Does nothing if its stream has been closed.
  public func respond(_ stream: Int32, status: Int, headers: [HeaderField] = [], body: [UInt8] = []) {
    engine.respond(stream, [HeaderField(":status", String(status))] + headers, body)
    requestOutput()
  }

  public func reset(_ stream: Int32, _ code: ErrorCode) {
    engine.reset(stream, code)
    requestOutput()
  }

  /// Announces that streams above `lastStreamID` are not processed. The others continue, and then the session ends.
  public func goAway(lastStreamID: Int32, code: ErrorCode = .noError, debugData: [UInt8] = []) {
    lastAccepted = min(lastAccepted, lastStreamID)
    engine.goAway(lastStreamID, code, debugData)
    requestOutput()
  }

  /// Announces a new stream limit. Streams above it are refused if they are opened before the client has acknowledged it.
  public func setMaxConcurrentStreams(_ limit: Int) {
    engine.setMaxConcurrentStreams(limit)
    requestOutput()
  }

  public func abort() { transport?.close() }

  private func requestOutput() {
    if !isBusy { transport?.outputReady() }
  }

  // MARK: Machine

  public func transportOpened(at now: MonotonicTime) { engine.open() }

  public func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    guard state == .open else { return }
    isBusy = true
    engine.receive(bytes)
    deliverEvents()
    isBusy = false
  }

  public func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    guard state != .ended else { return }
    isBusy = true
    var room = 64 * 1024
    repeat {
      room -= engine.write(to: &buffer, limit: room)
      guard !engine.events.isEmpty else { break }
      deliverEvents()
    } while room > 0
    if engine.hasExceededLimit, !engine.wantsWrite { state = .finishing }
    isBusy = false
  }

  public var isFinished: Bool { state == .finishing || engine.isBroken || !(engine.wantsRead || engine.wantsWrite) }
  public var deadline: MonotonicTime { .distantFuture }
  public func deadlineReached(at now: MonotonicTime) {}

  public func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    guard state != .ended else { return }
    state = .ended
    handler?.sessionEnded(reason, of: self)
  }

  private func deliverEvents() {
    var next = 0
    while next < engine.events.count {
      let event = engine.events[next]
      next += 1
      switch event {
      case .requestReceived(let request):
        // A request received together with the GOAWAY may also be above its last stream.
        if request.stream <= lastAccepted { handler?.requestReceived(request, on: self) }
      case .streamClosed(let stream, let code): handler?.streamClosed(stream, code, on: self)
      case .violated(let what): handler?.protocolViolated(what, on: self)
      }
    }
    engine.events.removeAll(keepingCapacity: true)
  }
}
