import CNGHTTP2
import Wire

enum ServerEvent {
  case requestReceived(ServerRequest)
  case streamClosed(Int32, ErrorCode)
  case violated(String)
}

final class ServerEngine {
  struct Stream {
    var request: ServerRequest
    var response: [UInt8] = []
    var responseSent = 0
  }

  private let session: OpaquePointer
  let configuration: ServerConfiguration
  var streams: [Int32: Stream] = [:]
  var events: [ServerEvent] = []
  var isBroken = false
  var hasExceededLimit = false
  var highestStreamID: Int32 = 0

  init(_ configuration: ServerConfiguration) {
    self.configuration = configuration
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

  func open() {
    let settings: [(nghttp2_settings_id, Int)] = [
      (NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, configuration.headerTableSize),
      (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, configuration.maxConcurrentStreams),
      (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, configuration.initialWindowSize),
      (NGHTTP2_SETTINGS_MAX_FRAME_SIZE, configuration.maxFrameSize),
      (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, configuration.maxHeaderListSize),
    ]
    submitSettings(settings.map { nghttp2_settings_entry(settings_id: Int32($0.0.rawValue), value: UInt32($0.1)) })
  }

  private func submitSettings(_ entries: [nghttp2_settings_entry]) {
    nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
  }

  var wantsWrite: Bool { !isBroken && nghttp2_session_want_write(session) != 0 }
  var wantsRead: Bool { !isBroken && nghttp2_session_want_read(session) != 0 }
  var acknowledgedStreamLimit: Int {
    Int(nghttp2_session_get_local_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
  }

  func receive(_ bytes: RawSpan) {
    guard !isBroken else { return }
    let result = bytes.withUnsafeBytes { raw -> Int in
      guard let base = raw.baseAddress else { return 0 }
      return nghttp2_session_mem_recv(session, base.assumingMemoryBound(to: UInt8.self), raw.count)
    }
    if result < 0, !hasExceededLimit {
      events.append(.violated(String(cString: nghttp2_strerror(Int32(result)))))
      isBroken = true
    }
  }

  func write(to buffer: inout OutputBuffer, limit: Int) -> Int {
    var total = 0
    while total < limit, !isBroken {
      var start: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(session, &start)
      if count < 0 { isBroken = true }
      guard count > 0 else { break }
      buffer.bytes.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
      total += count
    }
    return total
  }

  func setMaxConcurrentStreams(_ limit: Int) {
    submitSettings([
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: UInt32(limit))
    ])
  }

  func respond(_ stream: Int32, _ headers: [HeaderField], _ body: [UInt8]) {
    guard streams[stream] != nil else { return }
    streams[stream]!.response = body
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
      if body.isEmpty {
        nghttp2_submit_response(session, stream, fields, fields.count, nil)
      } else {
        var provider = nghttp2_data_provider()
        provider.read_callback = ServerCallbacks.readBody
        nghttp2_submit_response(session, stream, fields, fields.count, &provider)
      }
    }
  }

  func reset(_ stream: Int32, _ code: ErrorCode) {
    nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code.rawValue)
  }

  func goAway(_ lastStreamID: Int32, _ code: ErrorCode, _ debugData: [UInt8]) {
    nghttp2_submit_goaway(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStreamID, code.rawValue, debugData, debugData.count)
  }
}
