import Wire

/// Reads the server's frames. A stream that is closed already gets no error: frames of the server may be on their way.
extension ClientEngine {
  func receiveFrames(_ bytes: RawSpan) throws(ConnectionFault) {
    try reader.read(bytes) { (frame, payload) throws(ConnectionFault) in
      framesReceived &+= 1
      if framesReceived == 1, frame.kind != .settings || frame.flags.contains(.acknowledgement) {
        throw ConnectionFault(.protocolError, "the server did not begin with SETTINGS")
      }
      try receive(frame, payload)
    }
  }

  private func receive(_ frame: FrameHeader, _ payload: RawSpan) throws(ConnectionFault) {
    switch frame.kind {
    case .headers: try headersReceived(frame, payload)
    case .data: try dataReceived(frame, payload)
    case .resetStream: try resetReceived(frame, payload)
    case .windowUpdate: try windowUpdateReceived(frame, payload)
    case .settings: try settingsReceived(frame, payload)
    case .ping: try pingReceived(frame, payload)
    case .goAway: try goAwayReceived(frame, payload)
    case .pushPromise: throw ConnectionFault(.protocolError, "a PUSH_PROMISE, which the client does not allow")
    case .priority, .continuation, nil: break
    }
  }

  // MARK: Responses

  private func headersReceived(_ frame: FrameHeader, _ block: RawSpan) throws(ConnectionFault) {
    try requireOpened(frame)
    let slot = streams.slot(of: frame.streamID)
    let keepsAll = configuration.keepsHeadersOfSuccess
    var room = configuration.maxHeaderListSize
    var isWellFormed = true
    try decompressor.read(block, into: &streams) { streams, name, value, size in
      room -= size
      guard slot >= 0, isWellFormed, room >= 0 else { return }
      switch name {
      case .status: isWellFormed = streams[slot].response.begin(statusDigits: value)
      case .kept(let index):
        if keepsAll || streams[slot].response.status != 200 { streams[slot].response.keep(value, at: Int(index)) }
      case .otherPseudo: isWellFormed = false
      case .other: break
      }
    }
    guard slot >= 0 else { return }
    if !isWellFormed || room < 0 { return giveUp(slot, frame.streamID, .internalError) }
    responseContinued(slot, frame.streamID, endsStream: frame.flags.contains(.endStream))
  }

  private func dataReceived(_ frame: FrameHeader, _ payload: RawSpan) throws(ConnectionFault) {
    try requireOpened(frame)
    let content = try frame.content(of: payload)
    unacknowledged += payload.byteCount
    guard unacknowledged <= configuration.connectionWindow else {
      throw ConnectionFault(.flowControlError, "more DATA than the connection's window allows")
    }
    let slot = streams.slot(of: frame.streamID)
    guard slot >= 0 else { return }
    guard streams[slot].response.isFinal else { return giveUp(slot, frame.streamID, .protocolError) }
    let room = configuration.maxResponseBody - streams[slot].response.body.count
    payload.append(content.prefix(max(room, 0)), to: &streams[slot].response.body)
    responseContinued(slot, frame.streamID, endsStream: frame.flags.contains(.endStream))
    guard !streams[slot].isAnswered else { return }
    streams[slot].unacknowledged += payload.byteCount
    if streams[slot].unacknowledged >= FlowControl.initialWindow / 2 {
      updateWindow(frame.streamID, by: streams[slot].unacknowledged)
      streams[slot].unacknowledged = 0
    }
  }

  /// Completes a response at its end, or once its body has as many bytes as are kept. A response may end before the request
  /// (RFC 9113 §8.1). The rest of the request is then not sent.
  private func responseContinued(_ slot: Int32, _ streamID: Int32, endsStream: Bool) {
    guard streams[slot].response.isFinal else {
      if endsStream { giveUp(slot, streamID, .protocolError) }
      return
    }
    streams[slot].isHeaded = true
    guard endsStream || streams[slot].response.body.count >= configuration.maxResponseBody else { return }
    streams[slot].isAnswered = true
    if !endsStream || !streams[slot].body.isEmpty { reset(streamID, .cancel) }
    close(slot, streamID, .noError)
  }

  /// Ends a stream without a response.
  private func giveUp(_ slot: Int32, _ streamID: Int32, _ code: ErrorCode) {
    reset(streamID, code)
    close(slot, streamID, code)
  }

  private func close(_ slot: Int32, _ streamID: Int32, _ code: ErrorCode) {
    streams.close(slot)
    events.append(.streamClosed(slot: slot, streamID: streamID, code: code))
  }

  private func resetReceived(_ frame: FrameHeader, _ payload: RawSpan) throws(ConnectionFault) {
    try requireOpened(frame)
    try frame.require(payload.byteCount == 4)
    let slot = streams.slot(of: frame.streamID)
    guard slot >= 0 else { return }
    if streams[slot].isAccepted { streams[slot].isAnswered = true }
    close(slot, frame.streamID, ErrorCode(rawValue: payload.bigEndian(UInt32.self, at: 0)))
  }

  // MARK: The connection

  private func settingsReceived(_ frame: FrameHeader, _ payload: RawSpan) throws(ConnectionFault) {
    try frame.requireConnection()
    guard !frame.flags.contains(.acknowledgement) else { return try frame.require(payload.isEmpty) }
    try server.read(payload)
    guard !streams.hasCredit(above: FlowControl.largestWindow - server.initialWindow) else {
      throw ConnectionFault(.flowControlError, "SETTINGS that raise a window above 2^31-1")
    }
    limitCompression(server.headerTableSize)
    try acknowledge(.settings, RawSpan())
    events.append(.settingsReceived)
  }

  private func pingReceived(_ frame: FrameHeader, _ payload: RawSpan) throws(ConnectionFault) {
    try frame.requireConnection()
    try frame.require(payload.byteCount == 8)
    guard frame.flags.contains(.acknowledgement) else { return try acknowledge(.ping, payload) }
    events.append(.pong(payload.bigEndian(UInt64.self, at: 0)))
  }

  private func goAwayReceived(_ frame: FrameHeader, _ payload: RawSpan) throws(ConnectionFault) {
    try frame.requireConnection()
    try frame.require(payload.byteCount >= 8)
    let lastStreamID = payload.streamID(at: 0)
    guard lastStreamID <= lastProcessedStreamID else {
      throw ConnectionFault(.protocolError, "a GOAWAY with a higher stream than the one before")
    }
    lastProcessedStreamID = lastStreamID
    var debugData: [UInt8] = []
    payload.append(8..<min(payload.byteCount, 8 + 1024), to: &debugData)
    let code = ErrorCode(rawValue: payload.bigEndian(UInt32.self, at: 4))
    goAways.append(GoAway(lastStreamID: lastStreamID, code: code, debugData: debugData))
    events.append(.goAwayReceived)
  }

  private func windowUpdateReceived(_ frame: FrameHeader, _ payload: RawSpan) throws(ConnectionFault) {
    try frame.require(payload.byteCount == 4)
    let increment = Int(payload.streamID(at: 0))
    guard increment > 0 else { throw ConnectionFault(.protocolError, "a WINDOW_UPDATE of 0") }
    guard frame.streamID > 0 else {
      remoteWindow += increment
      guard remoteWindow <= FlowControl.largestWindow else { throw ConnectionFault(.flowControlError, "a window above 2^31-1") }
      return
    }
    try requireOpened(frame)
    let slot = streams.slot(of: frame.streamID)
    guard slot >= 0 else { return }
    streams[slot].windowCredit += increment
    if server.initialWindow + streams[slot].windowCredit > FlowControl.largestWindow {
      giveUp(slot, frame.streamID, .flowControlError)
    }
  }

  /// Throws if the client has not opened the frame's stream (RFC 9113 §5.1).
  private func requireOpened(_ frame: FrameHeader) throws(ConnectionFault) {
    guard frame.streamID % 2 == 1, frame.streamID <= lastSentStreamID else {
      throw ConnectionFault(.protocolError, "a frame on stream \(frame.streamID), which the client did not open")
    }
  }
}

extension FrameHeader {
  fileprivate func require(_ hasValidSize: Bool) throws(ConnectionFault) {
    guard hasValidSize else { throw ConnectionFault(.frameSizeError, "\(name) of \(length) bytes") }
  }

  fileprivate func requireConnection() throws(ConnectionFault) {
    guard streamID == 0 else { throw ConnectionFault(.protocolError, "\(name) on a stream") }
  }

  private var name: String { "a frame of type \(kind?.rawValue ?? 0)" }
}
