import Wire

/// An event of a client session. Queued while the engine reads, and processed afterwards.
enum ClientEvent {
  case settingsReceived
  /// The frame is the first one in `ClientEngine.goAways`.
  case goAwayReceived
  /// The stream's response is complete, or the server ended the stream with this code.
  case streamClosed(slot: Int32, streamID: Int32, code: ErrorCode)
  case pong(UInt64)
  /// HTTP/1.1 only: the request was not sent.
  case notSent(streamID: Int32)
  /// HTTP/1.1 only: no request follows on the connection.
  case connectionClosing
}

/// Writes the frames of a client connection, and keeps what its frames change: streams, windows, settings (RFC 9113).
/// `ClientEngine+Receiving` reads the server's frames. All decisions are in `ClientSession`.
final class ClientEngine {
  let configuration: ClientConfiguration
  var streams = StreamTable()
  var events: [ClientEvent] = []
  var goAways: [GoAway] = []
  var framesReceived = 0
  private(set) var nextStreamID: Int32
  /// All streams up to this one were opened, or never will be.
  private(set) var lastSentStreamID: Int32 = 0
  /// The last stream that the server may process, by its GOAWAY.
  var lastProcessedStreamID = Int32.max
  /// Why the connection failed. Nothing more is read, and only GOAWAY is written.
  private(set) var fault: String?
  private var isTerminated = false

  var reader = FrameReader()
  var decompressor: HeaderDecompressor
  /// The server's settings; their defaults until its first SETTINGS.
  var server = ServerSettings()
  /// Bytes of bodies that the server currently accepts on all streams together (RFC 9113 §5.2).
  var remoteWindow = FlowControl.initialWindow
  /// Bytes of DATA received since the last update of our window for the connection was written.
  var unacknowledged = 0

  private var compressor = HeaderCompressor()
  /// Frames without a stream's data. They are written before all others.
  private var control: [UInt8] = []
  private var queuedAnswers = 0
  /// Streams whose bodies wait for the server's windows, in order of their requests.
  private var blocked: [Int32] = []
  private var http1: HTTP1Exchange?

  /// Answers to PING and SETTINGS that may be queued. More of them are a flood (RFC 9113 §10.5).
  private static let mostAnswers = 1000

  init(_ configuration: ClientConfiguration) {
    precondition(configuration.keptResponseHeaders.count <= Response.keptHeaderLimit, "at most eight headers are kept")
    precondition(configuration.firstStreamID % 2 == 1, "a client's stream ids are odd")
    precondition(configuration.connectionWindow >= FlowControl.initialWindow, "a connection's window only widens")
    self.configuration = configuration
    decompressor = HeaderDecompressor(keeping: configuration.keptResponseHeaders)
    nextStreamID = configuration.firstStreamID
  }

  /// Queues the connection preface (RFC 9113 §3.4).
  func open() {
    control += "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8
    let settings: [(ServerSettings.Identifier, Int)] = [
      (.enablePush, 0), (.maxHeaderListSize, configuration.maxHeaderListSize),
    ]
    FrameHeader(.settings, length: 6 * settings.count).append(to: &control)
    for (identifier, value) in settings {
      control.appendBigEndian(identifier.rawValue)
      control.appendBigEndian(UInt32(value))
    }
    let widening = configuration.connectionWindow - FlowControl.initialWindow
    if widening > 0 { updateWindow(0, by: widening) }
  }

  func openHTTP1() { http1 = HTTP1Exchange(configuration) }

  var isHTTP1: Bool { http1 != nil }

  var isBroken: Bool { fault != nil }

  /// True if bytes are left that must be written before the connection is closed.
  var wantsWrite: Bool { !control.isEmpty }

  /// The server's current SETTINGS_MAX_CONCURRENT_STREAMS; `Int.max` if it sets none.
  var remoteStreamLimit: Int { http1?.requestLimit ?? server.maxConcurrentStreams }

  var remainingStreamIDs: Int {
    nextStreamID < 0 || nextStreamID > configuration.lastStreamID
      ? 0 : (Int(configuration.lastStreamID) - Int(nextStreamID)) / 2 + 1
  }

  func receive(_ bytes: RawSpan) {
    guard !isBroken, !isTerminated else { return }
    if let http1 {
      fault = http1.receive(bytes, &streams, &events)
      return
    }
    do throws(ConnectionFault) { try receiveFrames(bytes) } catch {
      fault = error.reason
      terminate(error.code)
    }
  }

  func connectionEnded() {
    http1?.connectionEnded()
    // Only push services of browsers speak HTTP/1.1. Their status says everything.
    let isHTTP1 = http1 != nil
    for slot in streams.slots(where: { $0.isHeaded && !$0.isAnswered && (isHTTP1 || $0.isAccepted) }) {
      events.append(streams.complete(slot, .noError))
    }
  }

  // MARK: Requests

  /// Queues a request.
  /// - Precondition: `remainingStreamIDs` > 0.
  func submit(_ template: consuming HeaderTemplate, body: consuming [UInt8], tag: Int, _ values: inout HeaderValues) {
    streams.add(nextStreamID, tag: tag, body: consume body, template: consume template, &values)
    nextStreamID &+= 2
  }

  /// Appends frames until about `limit` bytes are added.
  func write(to buffer: inout OutputBuffer, limit: Int) {
    if let http1 { return http1.write(&streams, to: &buffer.bytes, limit: limit) }
    let end = buffer.bytes.count + limit
    widenWindow()
    if !control.isEmpty {
      buffer.bytes += control
      control.removeAll(keepingCapacity: control.capacity <= 1024)
      queuedAnswers = 0
    }
    guard !isTerminated else { return }
    if !blocked.isEmpty { writeBlocked(to: &buffer.bytes, until: end) }
    // The server may have lowered its limit since the requests were submitted.
    while buffer.bytes.count < end, streams.firstUnsent >= 0, streams.sentCount < server.maxConcurrentStreams {
      writeFirstUnsent(to: &buffer.bytes)
    }
  }

  private func writeFirstUnsent(to output: inout [UInt8]) {
    let slot = streams.firstUnsent
    streams.markFirstSent()
    lastSentStreamID = streams[slot].streamID
    writeHeaders(of: slot, to: &output)
    if !streams[slot].body.isEmpty, !writeBody(of: slot, to: &output) { blocked.append(lastSentStreamID) }
  }

  private func writeHeaders(of slot: Int32, to output: inout [UInt8]) {
    guard let template = streams[slot].template else { return }
    let start = output.count
    let flags: FrameHeader.Flags = streams[slot].body.isEmpty ? [.endHeaders, .endStream] : .endHeaders
    FrameHeader(.headers, flags, stream: streams[slot].streamID, length: 0).append(to: &output)
    streams.withValues(of: slot) { compressor.append(template, &$0, to: &output) }
    let length = output.count - start - FrameHeader.size
    FrameHeader.setLength(length, in: &output, at: start)
    if length > FrameHeader.payloadLimit { FrameHeader.split(&output, from: start) }
  }

  /// Appends DATA frames as far as the windows allow. Returns whether the body is complete.
  private func writeBody(of slot: Int32, to output: inout [UInt8]) -> Bool {
    while true {
      let left = streams[slot].body.count - streams[slot].bodySent
      let window = min(remoteWindow, server.initialWindow + streams[slot].windowCredit)
      let length = min(left, window, FrameHeader.payloadLimit)
      guard length > 0 else { return false }
      FrameHeader(.data, length == left ? .endStream : [], stream: streams[slot].streamID, length: length).append(to: &output)
      streams.takeBody(slot, atMost: length, to: &output)
      remoteWindow -= length
      streams[slot].windowCredit -= length
      if length == left { return true }
    }
  }

  private func writeBlocked(to output: inout [UInt8], until end: Int) {
    blocked.removeAll { streamID in
      let slot = streams.slot(of: streamID)
      guard slot >= 0 else { return true }
      return output.count < end && remoteWindow > 0 && writeBody(of: slot, to: &output)
    }
  }

  // MARK: Control frames

  /// Ends a stream if the server knows of it. With HTTP/1.1, gives up the connection.
  func reset(_ streamID: Int32, _ code: ErrorCode) {
    if let http1 { return http1.close(&events) }
    guard !isTerminated, streamID <= lastSentStreamID else { return }
    FrameHeader(.resetStream, stream: streamID, length: 4).append(to: &control)
    control.appendBigEndian(code.rawValue)
  }

  func ping(_ number: UInt64) {
    guard !isTerminated else { return }
    FrameHeader(.ping, length: 8).append(to: &control)
    control.appendBigEndian(number)
  }

  /// Queues a final GOAWAY. Nothing is read after it.
  func terminate(_ code: ErrorCode) {
    guard !isTerminated, !isHTTP1 else { return }
    isTerminated = true
    FrameHeader(.goAway, length: 8).append(to: &control)
    control.appendBigEndian(UInt32(0))
    control.appendBigEndian(code.rawValue)
  }

  /// Queues the answer to a PING or SETTINGS.
  func acknowledge(_ kind: FrameHeader.Kind, _ payload: RawSpan) throws(ConnectionFault) {
    queuedAnswers += 1
    guard queuedAnswers <= Self.mostAnswers else {
      throw ConnectionFault(.enhanceYourCalm, "the server sends more PING or SETTINGS than it reads answers")
    }
    FrameHeader(kind, .acknowledgement, length: payload.byteCount).append(to: &control)
    payload.append(0..<payload.byteCount, to: &control)
  }

  /// Lets the server send more on all streams together. Called when the update can be written: a server that doesn't read
  /// updates must not make them pile up.
  private func widenWindow() {
    guard !isTerminated, unacknowledged >= configuration.connectionWindow / 2 else { return }
    updateWindow(0, by: unacknowledged)
    unacknowledged = 0
  }

  /// Lets the server send more on a stream, or on all streams together.
  func updateWindow(_ streamID: Int32, by bytes: Int) {
    FrameHeader(.windowUpdate, stream: streamID, length: 4).append(to: &control)
    control.appendBigEndian(UInt32(bytes))
  }

  func limitCompression(_ bytes: Int) { compressor.setTableLimit(bytes) }
}
