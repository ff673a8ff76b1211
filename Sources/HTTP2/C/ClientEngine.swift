import CNGHTTP2
import Wire

/// An event of a client session. Queued while nghttp2 runs, and processed afterwards.
enum ClientEvent {
  case settingsReceived
  /// The frame is the first one in `ClientEngine.goAways`.
  case goAwayReceived
  case streamClosed(slot: Int32, streamID: Int32, code: ErrorCode)
  case notSent(streamID: Int32)
  case pong(UInt64)
  /// HTTP/1.1 only: no request follows on the connection.
  case connectionClosing
}

/// Wraps nghttp2's client session: frames in, events out, frames out. All decisions are in `ClientSession`. With HTTP/1.1,
/// nghttp2's session stays as it was made.
final class ClientEngine {
  private let session: OpaquePointer
  private let outline = RequestOutline()
  let configuration: ClientConfiguration
  let keptNames: [[UInt8]]
  /// Bit n is set if a kept name has n bytes. This check alone skips nearly all headers of a response.
  let keptLengths: UInt64
  /// The stream whose header list is being received, and the list's size so far, counted as for SETTINGS_MAX_HEADER_LIST_SIZE.
  var headersOf: Int32 = 0
  var headerListSize = 0
  var streams = StreamTable()
  var events: [ClientEvent] = []
  var goAways: [GoAway] = []
  var framesReceived = 0
  /// nghttp2's description of the peer's protocol error.
  var fault: String?
  private(set) var nextStreamID: Int32
  private var compressor = HeaderCompressor()
  /// The slot whose HEADERS frame nghttp2 returns next; -1 for none.
  private var framedSlot: Int32 = -1
  private(set) var isBroken = false
  private var http1: HTTP1Exchange?
  /// -1 matches no stream.
  private var cachedStreamID: Int32 = -1
  private var cachedSlot: Int32 = -1

  init(_ configuration: ClientConfiguration) {
    precondition(configuration.keptResponseHeaders.count <= Response.keptHeaderLimit, "at most eight headers are kept")
    precondition(configuration.firstStreamID % 2 == 1, "a client's stream ids are odd")
    self.configuration = configuration
    keptNames = configuration.keptResponseHeaders.map { Array($0.utf8) }
    keptLengths = keptNames.reduce(0) { $0 | 1 << UInt64(min($1.count, 63)) }
    nextStreamID = configuration.firstStreamID

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
    ClientCallbacks.install(in: callbacks)
    nghttp2_option_set_max_reserved_remote_streams(option, 0)
    // Saves a tenth of the time per push: unread names and values aren't checked. Our own code checks what it reads.
    nghttp2_option_set_no_http_messaging(option, 1)
    nghttp2_option_set_peer_max_concurrent_streams(option, UInt32(max(configuration.streamsBeforeSettings, 0)))
    guard nghttp2_session_client_new2(&created, callbacks, nil, option) == 0 else { fatalError("out of memory") }
    session = created
    nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
    nghttp2_session_set_next_stream_id(session, configuration.firstStreamID)
  }

  deinit { nghttp2_session_del(session) }

  func open() {
    let settings = [
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), value: UInt32(configuration.maxHeaderListSize)),
    ]
    nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
    nghttp2_session_set_local_window_size(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(clamping: configuration.connectionWindow))
  }

  func openHTTP1() { http1 = HTTP1Exchange(configuration) }

  var isHTTP1: Bool { http1 != nil }

  var wantsWrite: Bool { !isBroken && nghttp2_session_want_write(session) != 0 }
  var wantsRead: Bool { !isBroken && nghttp2_session_want_read(session) != 0 }

  /// The server's current SETTINGS_MAX_CONCURRENT_STREAMS; `Int.max` if it sets none.
  var remoteStreamLimit: Int {
    if let http1 { return http1.requestLimit }
    let value = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    return value == .max ? .max : Int(value)
  }

  /// Bytes of bodies that the server currently accepts on all streams together (RFC 9113 §5.2).
  var remoteWindow: Int { Int(nghttp2_session_get_remote_window_size(session)) }

  var remainingStreamIDs: Int {
    nextStreamID < 0 || nextStreamID > configuration.lastStreamID
      ? 0 : (Int(configuration.lastStreamID) - Int(nextStreamID)) / 2 + 1
  }

  func receive(_ bytes: RawSpan) {
    guard !isBroken else { return }
    if isHTTP1 {
      fault = http1?.receive(bytes, &streams, &events)
      isBroken = fault != nil
      return
    }
    let result = bytes.withUnsafeBytes { raw -> Int in
      guard let base = raw.baseAddress else { return 0 }
      return nghttp2_session_mem_recv(session, base.assumingMemoryBound(to: UInt8.self), raw.count)
    }
    if result < 0 { failed(Int32(result)) }
  }

  /// Appends frames until about `limit` bytes are added.
  func write(to buffer: inout OutputBuffer, limit: Int) -> Int {
    if let count = http1?.write(&streams, to: &buffer.bytes, limit: limit) { return count }
    var total = 0
    while total < limit, !isBroken {
      var start: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(session, &start)
      if count < 0 { failed(Int32(count)) }
      guard count > 0, let start else { break }
      let before = buffer.bytes.count
      if framedSlot >= 0 {
        appendHeaders(start, of: framedSlot, to: &buffer.bytes)
        framedSlot = -1
      } else {
        buffer.bytes.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
      }
      total += buffer.bytes.count - before
    }
    return total
  }

  /// Appends our header block instead of nghttp2's, which only has the request's outline.
  private func appendHeaders(_ frame: UnsafePointer<UInt8>, of slot: Int32, to output: inout [UInt8]) {
    guard let template = streams[slot].template else { return }
    let start = output.count
    output.append(contentsOf: UnsafeBufferPointer(start: frame, count: FrameHeader.size))
    streams.withValues(of: slot) { compressor.append(template, &$0, to: &output) }
    let length = output.count - start - FrameHeader.size
    if length <= FrameHeader.payloadLimit {
      FrameHeader.setLength(length, in: &output, at: start)
    } else {
      FrameHeader.split(&output, from: start)
    }
  }

  /// Called before nghttp2 returns the request's HEADERS frame. Returns false if the request was given up.
  func headersFramed(_ streamID: Int32) -> Bool {
    let slot = slot(of: streamID)
    guard slot >= 0 else { return false }
    streams[slot].isSent = true
    framedSlot = slot
    return true
  }

  func settingsReceived() {
    compressor.setTableLimit(Int(nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_HEADER_TABLE_SIZE)))
    events.append(.settingsReceived)
  }

  /// Queues a request. Returns false, without side effects, if nghttp2 can't accept it (broken, out of memory, out of ids).
  func submit(_ template: consuming HeaderTemplate, body: consuming [UInt8], tag: Int, _ values: inout HeaderValues) -> Bool {
    guard !isBroken else { return false }
    let isEmpty = body.isEmpty
    let slot = streams.add(tag: tag, body: consume body, template: consume template, &values)
    let streamID: Int32
    if isHTTP1 {
      streamID = nextStreamID
    } else if isEmpty {
      streamID = nghttp2_submit_request(session, nil, outline.fields, outline.count, nil, SlotReference.encode(slot))
    } else {
      var provider = nghttp2_data_provider()
      provider.source.fd = slot
      provider.read_callback = ClientCallbacks.readBody
      streamID = nghttp2_submit_request(session, nil, outline.fields, outline.count, &provider, SlotReference.encode(slot))
    }
    guard streamID > 0 else {
      _ = streams.remove(slot)
      return false
    }
    streams[slot].streamID = streamID
    nextStreamID = streamID &+ 2
    return true
  }

  /// With HTTP/1.1, gives up the connection.
  func reset(_ streamID: Int32, _ code: ErrorCode) {
    guard !isBroken else { return }
    if isHTTP1 {
      http1?.close(&events)
      return
    }
    nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), streamID, code.rawValue)
  }

  func ping(_ number: UInt64) {
    guard !isBroken else { return }
    withUnsafeBytes(of: number.bigEndian) { bytes in
      _ = nghttp2_submit_ping(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
    }
  }

  /// Queues a final GOAWAY. Nothing is read after it.
  func terminate(_ code: ErrorCode) {
    guard !isBroken, !isHTTP1 else { return }
    nghttp2_session_terminate_session(session, code.rawValue)
  }

  func connectionEnded() { http1?.connectionEnded(&streams, &events) }

  private func failed(_ code: Int32) {
    isBroken = true
    if fault == nil { fault = String(cString: nghttp2_strerror(code)) }
  }

  /// The slot of an open stream; -1 if the stream is unknown or given up.
  @inline(__always)
  func slot(of streamID: Int32) -> Int32 {
    if streamID == cachedStreamID, streams[cachedSlot].streamID == streamID { return cachedSlot }
    let slot = SlotReference.decode(nghttp2_session_get_stream_user_data(session, streamID))
    guard slot >= 0, streams[slot].streamID == streamID else { return -1 }
    cachedStreamID = streamID
    cachedSlot = slot
    return slot
  }
}

/// Encodes a slot index as nghttp2's stream data pointer. The value is index + 1, so that nil means none.
enum SlotReference {
  @inline(__always) static func encode(_ slot: Int32) -> UnsafeMutableRawPointer? {
    UnsafeMutableRawPointer(bitPattern: Int(slot) + 1)
  }
  @inline(__always) static func decode(_ pointer: UnsafeMutableRawPointer?) -> Int32 {
    Int32(truncatingIfNeeded: Int(bitPattern: pointer)) - 1
  }
}
