import Wire

/// Divides the bytes of a peer into frames (RFC 9113 §4), and joins the frames of a header block. Keeps an incomplete frame and
/// an incomplete block until the rest arrives.
struct FrameReader {
  /// A header block whose END_HEADERS has not arrived yet.
  private struct Block {
    let frame: FrameHeader
    var bytes: [UInt8] = []
    var continuations = 0
  }

  /// A server needs few frames for 16 KiB of headers. More of them only keep the client busy.
  private static let mostContinuations = 8

  private var incomplete: [UInt8] = []
  private var block: Block?

  /// Calls `received` for each complete frame until it throws. HEADERS have the whole header block as payload, without padding.
  mutating func read(
    _ bytes: RawSpan, _ received: (FrameHeader, RawSpan) throws(ConnectionFault) -> Void
  ) throws(ConnectionFault) {
    var offset = 0
    if !incomplete.isEmpty {
      while case let missing = try missingBytes(), missing > 0 {
        guard offset < bytes.byteCount else { return }
        let end = min(offset + missing, bytes.byteCount)
        bytes.append(offset..<end, to: &incomplete)
        offset = end
      }
      var frame: [UInt8] = []
      swap(&frame, &incomplete)
      let payload = frame.span.bytes.extracting(FrameHeader.size..<frame.count)
      try read(FrameHeader(frame.span.bytes, at: 0), payload, received)
    }
    while bytes.byteCount - offset >= FrameHeader.size {
      let header = try Self.header(bytes, at: offset)
      let start = offset + FrameHeader.size
      guard bytes.byteCount - start >= header.length else { break }
      offset = start + header.length
      try read(header, bytes.extracting(start..<offset), received)
    }
    if offset < bytes.byteCount { bytes.append(offset..<bytes.byteCount, to: &incomplete) }
  }

  @inline(__always)
  private mutating func read(
    _ frame: FrameHeader, _ payload: RawSpan, _ received: (FrameHeader, RawSpan) throws(ConnectionFault) -> Void
  ) throws(ConnectionFault) {
    if block != nil || frame.kind == .continuation { return try readContinuation(frame, payload, received) }
    guard frame.kind == .headers else { return try received(frame, payload) }
    var content = try frame.content(of: payload)
    if frame.flags.contains(.priority) {
      guard content.count >= 5 else { throw ConnectionFault(.frameSizeError, "HEADERS that are too short for a priority") }
      content = content.lowerBound + 5..<content.upperBound
    }
    guard !frame.flags.contains(.endHeaders) else { return try received(frame, payload.extracting(content)) }
    block = Block(frame: frame)
    payload.append(content, to: &block!.bytes)
  }

  /// Reads a frame that continues a header block (RFC 9113 §6.10).
  private mutating func readContinuation(
    _ frame: FrameHeader, _ payload: RawSpan, _ received: (FrameHeader, RawSpan) throws(ConnectionFault) -> Void
  ) throws(ConnectionFault) {
    guard var block = block.take(), frame.kind == .continuation, frame.streamID == block.frame.streamID else {
      throw ConnectionFault(.protocolError, "a header block is interrupted, or a CONTINUATION continues none")
    }
    block.continuations += 1
    guard block.continuations <= Self.mostContinuations else {
      throw ConnectionFault(.enhanceYourCalm, "a header block of more than \(Self.mostContinuations + 1) frames")
    }
    payload.append(0..<payload.byteCount, to: &block.bytes)
    if frame.flags.contains(.endHeaders) { return try received(block.frame, block.bytes.span.bytes) }
    self.block = block
  }

  /// The number of bytes that the header of the incomplete frame needs, or its payload.
  private func missingBytes() throws(ConnectionFault) -> Int {
    guard incomplete.count >= FrameHeader.size else { return FrameHeader.size - incomplete.count }
    return FrameHeader.size + (try Self.header(incomplete.span.bytes, at: 0).length) - incomplete.count
  }

  private static func header(_ bytes: RawSpan, at offset: Int) throws(ConnectionFault) -> FrameHeader {
    let header = FrameHeader(bytes, at: offset)
    guard header.length <= FrameHeader.payloadLimit else {
      throw ConnectionFault(.frameSizeError, "a frame of \(header.length) bytes is longer than \(FrameHeader.payloadLimit)")
    }
    return header
  }
}

/// An error of the peer that ends the connection (RFC 9113 §5.4.1).
struct ConnectionFault: Error {
  let code: ErrorCode
  let reason: String

  init(_ code: ErrorCode, _ reason: String) { (self.code, self.reason) = (code, reason) }
}
