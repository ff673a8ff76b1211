import CNGHTTP2
import Wire

/// The server side of one HTTP/2 connection without its I/O, for the provider simulators. Confined to the thread that drives
/// it. The handler may answer in any call or later.
public final class ServerSession: Machine {
  struct Stream {
    var request: ServerRequest
    var response: [UInt8] = []
    var responseSent = 0
  }

  enum Event {
    case requestReceived(ServerRequest)
    case streamClosed(Int32, ErrorCode)
    case violated(String)
  }

  public weak var transport: (any Transport)?
  public weak var handler: (any ServerSessionHandler)?
  public let configuration: ServerConfiguration

  private let session: OpaquePointer
  var streams: [Int32: Stream] = [:]
  /// Of nghttp2's callbacks. The handler gets them once nghttp2 has returned.
  var events: [Event] = []
  var hasExceededLimit = false
  var highestStreamID: Int32 = 0

  /// `open` → `finishing` → `ended`.
  private enum State { case open, finishing, ended }
  private var state = State.open
  /// True after an error of nghttp2.
  private var isBroken = false
  private var isBusy = false
  /// The lowest last stream of our GOAWAYs.
  private var lastAccepted = Int32.max

  public init(configuration: ServerConfiguration = .init(), handler: (any ServerSessionHandler)? = nil) {
    self.configuration = configuration
    self.handler = handler
    var callbacks: OpaquePointer!
    var option: OpaquePointer!
    var created: OpaquePointer!
    guard nghttp2_session_callbacks_new(&callbacks) == 0, nghttp2_option_new(&option) == 0 else {
      fatalError("out of memory")
    }
    defer {
      nghttp2_session_callbacks_del(callbacks)
      nghttp2_option_del(option)
    }
    ServerCallbacks.install(in: callbacks)
    nghttp2_option_set_no_auto_window_update(option, configuration.updatesWindows ? 0 : 1)
    guard nghttp2_session_server_new2(&created, callbacks, nil, option) == 0 else { fatalError("out of memory") }
    session = created
    nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
  }

  deinit { nghttp2_session_del(session) }

  // MARK: Answering

  /// Answers a request. Does nothing if its stream has been closed.
  public func respond(_ stream: Int32, status: Int, headers: [HeaderField] = [], body: [UInt8] = []) {
    if streams[stream] != nil {
      streams[stream]!.response = body
      submitResponse(stream, [HeaderField(":status", String(status))] + headers, hasBody: !body.isEmpty)
    }
    requestOutput()
  }

  private func submitResponse(_ stream: Int32, _ headers: [HeaderField], hasBody: Bool) {
    var fields: [nghttp2_nv] = []
    var text: [UInt8] = []
    for header in headers {
      text += header.name
      text += header.value
    }
    text.withUnsafeMutableBufferPointer { text in
      var next = text.baseAddress
      for header in headers {
        fields.append(
          nghttp2_nv(
            name: next, value: next.map { $0 + header.name.count }, namelen: header.name.count,
            valuelen: header.value.count, flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)))
        next = next.map { $0 + header.name.count + header.value.count }
      }
      if hasBody {
        var provider = nghttp2_data_provider()
        provider.read_callback = ServerCallbacks.readBody
        nghttp2_submit_response(session, stream, fields, fields.count, &provider)
      } else {
        nghttp2_submit_response(session, stream, fields, fields.count, nil)
      }
    }
  }

  public func reset(_ stream: Int32, _ code: ErrorCode) {
    nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code.rawValue)
    requestOutput()
  }

  /// Announces that streams above `lastStreamID` are not processed. The others continue, and then the session ends.
  public func goAway(lastStreamID: Int32, code: ErrorCode = .noError, debugData: [UInt8] = []) {
    lastAccepted = min(lastAccepted, lastStreamID)
    submitGoAway(lastStreamID, code, debugData)
    requestOutput()
  }

  func submitGoAway(_ lastStreamID: Int32, _ code: ErrorCode, _ debugData: [UInt8]) {
    nghttp2_submit_goaway(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStreamID, code.rawValue, debugData, debugData.count)
  }

  /// Announces a new stream limit. Streams above it are refused if they are opened before the client has acknowledged it.
  public func setMaxConcurrentStreams(_ limit: Int) {
    submitSettings([(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limit)])
    requestOutput()
  }

  private func submitSettings(_ settings: [(nghttp2_settings_id, Int)]) {
    let entries = settings.map { nghttp2_settings_entry(settings_id: Int32($0.0.rawValue), value: UInt32($0.1)) }
    nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
  }

  var acknowledgedStreamLimit: Int {
    Int(nghttp2_session_get_local_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
  }

  public func abort() { transport?.close() }

  private func requestOutput() {
    if !isBusy { transport?.outputReady() }
  }

  // MARK: Machine

  public func transportOpened(at now: MonotonicTime) {
    submitSettings([
      (NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, configuration.headerTableSize),
      (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, configuration.maxConcurrentStreams),
      (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, configuration.initialWindowSize),
      (NGHTTP2_SETTINGS_MAX_FRAME_SIZE, configuration.maxFrameSize),
      (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, configuration.maxHeaderListSize),
    ])
  }

  public func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    guard state == .open, !isBroken else { return }
    isBusy = true
    let result = bytes.withUnsafeBytes { raw -> Int in
      guard let base = raw.baseAddress else { return 0 }
      return nghttp2_session_mem_recv(session, base.assumingMemoryBound(to: UInt8.self), raw.count)
    }
    if result < 0, !hasExceededLimit {
      events.append(.violated(String(cString: nghttp2_strerror(Int32(result)))))
      isBroken = true
    }
    deliverEvents()
    isBusy = false
  }

  public func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    guard state != .ended else { return }
    isBusy = true
    let end = buffer.bytes.count + 64 * 1024
    repeat {
      while buffer.bytes.count < end, !isBroken {
        var start: UnsafePointer<UInt8>?
        let count = nghttp2_session_mem_send(session, &start)
        if count < 0 { isBroken = true }
        guard count > 0 else { break }
        buffer.bytes.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
      }
      guard !events.isEmpty else { break }
      deliverEvents()
    } while buffer.bytes.count < end
    if hasExceededLimit, !wantsWrite { state = .finishing }
    isBusy = false
  }

  private var wantsWrite: Bool { !isBroken && nghttp2_session_want_write(session) != 0 }
  public var isFinished: Bool {
    state == .finishing || isBroken || !(nghttp2_session_want_read(session) != 0 || wantsWrite)
  }
  public var deadline: MonotonicTime { .distantFuture }
  public func deadlineReached(at now: MonotonicTime) {}

  public func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    guard state != .ended else { return }
    state = .ended
    handler?.sessionEnded(reason, of: self)
  }

  private func deliverEvents() {
    var next = 0
    while next < events.count {
      let event = events[next]
      next += 1
      switch event {
      case .requestReceived(let request):
        // A request received together with the GOAWAY may also be above its last stream.
        if request.stream <= lastAccepted { handler?.requestReceived(request, on: self) }
      case .streamClosed(let stream, let code): handler?.streamClosed(stream, code, on: self)
      case .violated(let what): handler?.protocolViolated(what, on: self)
      }
    }
    events.removeAll(keepingCapacity: true)
  }
}
