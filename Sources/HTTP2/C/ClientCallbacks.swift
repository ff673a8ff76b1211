import CNGHTTP2

/// nghttp2's callbacks for a client session. Each records an event in the engine and returns. None calls a handler, and none
/// receives or sends, which nghttp2 forbids inside callbacks.
enum ClientCallbacks {
  static func install(in callbacks: OpaquePointer) {
    nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onStreamClose)
    nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, beforeFrameSend)
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, onFrameNotSent)
    nghttp2_session_callbacks_set_error_callback2(callbacks, onError)
  }

  /// The engine outlives the call, so no retain is needed. Each push would cost ten.
  @inline(__always)
  private static func with<R>(_ context: UnsafeMutableRawPointer?, _ body: (ClientEngine) -> R) -> R {
    Unmanaged<ClientEngine>.fromOpaque(context!)._withUnsafeGuaranteedRef(body)
  }

  private static let onHeader: nghttp2_on_header_callback = { _, frame, name, nameCount, value, valueCount, _, context in
    with(context) {
      $0.headerReceived(
        frame!.pointee.hd.stream_id, UnsafeBufferPointer(start: name, count: nameCount),
        UnsafeBufferPointer(start: value, count: valueCount))
    }
  }

  private static let onData: nghttp2_on_data_chunk_recv_callback = { _, _, streamID, data, count, context in
    with(context) { $0.dataReceived(streamID, UnsafeBufferPointer(start: data, count: count)) }
    return 0
  }

  private static let onFrame: nghttp2_on_frame_recv_callback = { _, frame, context in
    with(context) { $0.frameReceived(frame!) }
    return 0
  }

  private static let onStreamClose: nghttp2_on_stream_close_callback = { _, streamID, code, context in
    with(context) { $0.streamClosed(streamID, ErrorCode(rawValue: code)) }
    return 0
  }

  private static let beforeFrameSend: nghttp2_before_frame_send_callback = { _, frame, context in
    let header = frame!.pointee.hd
    guard header.type == UInt8(NGHTTP2_HEADERS.rawValue) else { return 0 }
    return with(context) { $0.headersFramed(header.stream_id) } ? 0 : NGHTTP2_ERR_CANCEL.rawValue
  }

  private static let onFrameNotSent: nghttp2_on_frame_not_send_callback = { _, frame, _, context in
    let header = frame!.pointee.hd
    if header.type == UInt8(NGHTTP2_HEADERS.rawValue) {
      with(context) { $0.events.append(.notSent(streamID: header.stream_id)) }
    }
    return 0
  }

  private static let onError: nghttp2_error_callback2 = { _, _, text, count, context in
    with(context) { engine in
      guard engine.fault == nil, let text else { return }
      engine.fault = String(decoding: UnsafeRawBufferPointer(start: text, count: min(count, 200)), as: UTF8.self)
    }
    return 0
  }

  static let readBody: nghttp2_data_source_read_callback = { _, streamID, target, capacity, flags, source, context in
    with(context) { $0.readBody(slot: source!.pointee.fd, streamID, target!, capacity, flags!) }
  }
}

extension ClientEngine {
  /// Handles one response header. Returns an error, which ends the stream, for an oversized list or an invalid status.
  fileprivate func headerReceived(
    _ streamID: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
  ) -> Int32 {
    if streamID != headersOf {
      headersOf = streamID
      headerListSize = 0
    }
    headerListSize += name.count + value.count + 32
    guard headerListSize <= configuration.maxHeaderListSize else { return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue }
    let isPseudo = name.first == UInt8(ascii: ":")
    guard isPseudo || keptLengths &>> UInt64(min(name.count, 63)) & 1 != 0 else { return 0 }
    let slot = slot(of: streamID)
    guard slot >= 0 else { return 0 }
    guard !isPseudo else {
      return streams[slot].takeStatus(name, value) ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }
    if configuration.keepsHeadersOfSuccess || streams[slot].response.status != 200 {
      for index in keptNames.indices where keptNames[index].elementsEqual(name) {
        streams[slot].response.keep(value, at: index)
      }
    }
    return 0
  }

  fileprivate func dataReceived(_ streamID: Int32, _ data: UnsafeBufferPointer<UInt8>) {
    let slot = slot(of: streamID)
    guard slot >= 0 else { return }
    let room = configuration.maxResponseBody - streams[slot].response.body.count
    if room > 0 { streams[slot].response.body.append(contentsOf: data.prefix(room)) }
  }

  fileprivate func frameReceived(_ frame: UnsafePointer<nghttp2_frame>) {
    framesReceived &+= 1
    let header = frame.pointee.hd
    switch UInt32(header.type) {
    case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
      if UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0 {
        answerCompleted(header.stream_id)
      } else {
        answerContinues(header.stream_id)
      }
    case NGHTTP2_SETTINGS.rawValue where UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue == 0:
      settingsReceived()
    case NGHTTP2_PING.rawValue where UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue != 0:
      let opaque = frame.pointee.ping.opaque_data
      events.append(.pong(withUnsafeBytes(of: opaque) { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }))
    case NGHTTP2_GOAWAY.rawValue:
      let goAway = frame.pointee.goaway
      let debug = UnsafeBufferPointer(start: goAway.opaque_data, count: min(goAway.opaque_data_len, 1024))
      goAways.append(
        GoAway(
          lastStreamID: goAway.last_stream_id, code: ErrorCode(rawValue: goAway.error_code), debugData: Array(debug)))
      events.append(.goAwayReceived)
    default: break
    }
  }

  /// A response may end before the request (RFC 9113 §8.1). The rest of the request is then not sent.
  private func answerCompleted(_ streamID: Int32) {
    let slot = slot(of: streamID)
    guard slot >= 0, streams[slot].response.isFinal else { return }
    streams[slot].isAnswered = true
    if !streams[slot].body.isEmpty { reset(streamID, .cancel) }
  }

  /// Completes a response once its body has as many bytes as are kept. It need not end.
  private func answerContinues(_ streamID: Int32) {
    let slot = slot(of: streamID)
    guard slot >= 0, streams[slot].response.isFinal, !streams[slot].isAnswered else { return }
    streams[slot].isHeaded = true
    guard streams[slot].response.body.count >= configuration.maxResponseBody else { return }
    streams[slot].isAnswered = true
    reset(streamID, .cancel)
  }

  fileprivate func streamClosed(_ streamID: Int32, _ code: ErrorCode) {
    let slot = slot(of: streamID)
    guard slot >= 0 else { return }
    events.append(.streamClosed(slot: slot, streamID: streamID, code: code))
  }

  fileprivate func readBody(
    slot: Int32, _ streamID: Int32, _ target: UnsafeMutablePointer<UInt8>, _ capacity: Int,
    _ flags: UnsafeMutablePointer<UInt32>
  ) -> Int {
    guard streams[slot].streamID == streamID else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
    let (count, isLast) = streams[slot].readBody(into: target, capacity)
    streams.unsentBytes -= count
    if isLast { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return count
  }
}

extension StreamSlot {
  private static let status: InlineArray<7, UInt8> = [0x3A, 0x73, 0x74, 0x61, 0x74, 0x75, 0x73]

  /// Reads `:status`, a response's only pseudo-header (RFC 9113 §8.3.2). Returns false for any other, or an invalid status.
  fileprivate mutating func takeStatus(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Bool {
    guard name.count == Self.status.count, value.count == 3, name.indices.allSatisfy({ name[$0] == Self.status[$0] }) else {
      return false
    }
    return response.begin(statusDigits: value)
  }

  /// Copies the next part of the request's body, and releases the body with the last part.
  fileprivate mutating func readBody(into target: UnsafeMutablePointer<UInt8>, _ capacity: Int) -> (count: Int, isLast: Bool) {
    let count = min(capacity, body.count - bodySent)
    body.withUnsafeBufferPointer { body in
      if count > 0 { target.update(from: body.baseAddress! + bodySent, count: count) }
    }
    bodySent += count
    guard bodySent == body.count else { return (count, false) }
    body = []
    return (count, true)
  }
}
