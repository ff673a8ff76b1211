import CNGHTTP2

/// nghttp2's callbacks for a server session. They only record events.
enum ServerCallbacks {
  static func install(in callbacks: OpaquePointer) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, onBeginFrame)
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, onBeginHeaders)
    nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onStreamClose)
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, onInvalidFrame)
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, onInvalidHeader)
  }

  @inline(__always)
  private static func session(_ context: UnsafeMutableRawPointer?) -> ServerSession {
    Unmanaged<ServerSession>.fromOpaque(context!).takeUnretainedValue()
  }

  /// nghttp2 answers too many streams with a bare PROTOCOL_ERROR. A provider sends its own code and text.
  private static let onBeginFrame: nghttp2_on_begin_frame_callback = { _, header, context in
    let session = session(context)
    guard header!.pointee.type == UInt8(NGHTTP2_HEADERS.rawValue), header!.pointee.stream_id > session.highestStreamID,
      session.streams.count >= session.acknowledgedStreamLimit
    else { return 0 }
    session.hasExceededLimit = true
    let (code, debugData) = session.configuration.streamLimitGoAway
    session.events.append(.violated("more than \(session.acknowledgedStreamLimit) streams at once"))
    session.submitGoAway(session.highestStreamID, code, debugData)
    return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
  }

  private static let onBeginHeaders: nghttp2_on_begin_headers_callback = { _, frame, context in
    let session = session(context)
    let stream = frame!.pointee.hd.stream_id
    guard frame!.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
    session.highestStreamID = max(session.highestStreamID, stream)
    session.streams[stream] = .init(request: ServerRequest(stream: stream, headers: []))
    return 0
  }

  private static let onHeader: nghttp2_on_header_callback = { _, frame, name, nameCount, value, valueCount, _, context in
    session(context).streams[frame!.pointee.hd.stream_id]?.request.headers.append(
      HeaderField(
        name: Array(UnsafeBufferPointer(start: name, count: nameCount)),
        value: Array(UnsafeBufferPointer(start: value, count: valueCount))))
    return 0
  }

  private static let onData: nghttp2_on_data_chunk_recv_callback = { _, _, stream, data, count, context in
    let session = session(context)
    guard var entry = session.streams.removeValue(forKey: stream) else { return 0 }
    entry.request.bodySize += count
    let room = session.configuration.maxRequestBody - entry.request.body.count
    if room > 0 { entry.request.body.append(contentsOf: UnsafeBufferPointer(start: data, count: min(count, room))) }
    session.streams[stream] = entry
    return 0
  }

  private static let onFrame: nghttp2_on_frame_recv_callback = { _, frame, context in
    let header = frame!.pointee.hd
    let isMessage = header.type == UInt8(NGHTTP2_HEADERS.rawValue) || header.type == UInt8(NGHTTP2_DATA.rawValue)
    guard isMessage, UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0 else { return 0 }
    let session = session(context)
    if let stream = session.streams[header.stream_id] { session.events.append(.requestReceived(stream.request)) }
    return 0
  }

  private static let onStreamClose: nghttp2_on_stream_close_callback = { _, stream, code, context in
    let session = session(context)
    session.streams[stream] = nil
    session.events.append(.streamClosed(stream, ErrorCode(rawValue: code)))
    return 0
  }

  private static let onInvalidFrame: nghttp2_on_invalid_frame_recv_callback = { _, frame, code, context in
    // A stream opened before a lowered limit was acknowledged is refused. It is no protocol violation.
    guard code != NGHTTP2_ERR_REFUSED_STREAM.rawValue else { return 0 }
    let type = frame!.pointee.hd.type
    session(context).events.append(
      .violated("frame of type \(type) on stream \(frame!.pointee.hd.stream_id): \(String(cString: nghttp2_strerror(code)))"))
    return 0
  }

  private static let onInvalidHeader: nghttp2_on_invalid_header_callback = { _, frame, name, nameCount, _, _, _, context in
    let name = String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self)
    session(context).events.append(.violated("header \(name) is not valid in HTTP/2"))
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
  }

  static let readBody: nghttp2_data_source_read_callback = { _, stream, target, capacity, flags, _, context in
    let session = session(context)
    guard let entry = session.streams[stream] else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
    let count = min(capacity, entry.response.count - entry.responseSent)
    entry.response.withUnsafeBufferPointer { body in
      if count > 0 { target!.update(from: body.baseAddress! + entry.responseSent, count: count) }
    }
    session.streams[stream]!.responseSent += count
    if entry.responseSent + count == entry.response.count { flags!.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return count
  }
}
