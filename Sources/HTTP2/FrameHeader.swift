import Wire

/// The nine-byte header of a frame (RFC 9113 §4.1).
struct FrameHeader {
  static let size = 9
  /// The payload size that every peer accepts (RFC 9113 §4.2).
  static let payloadLimit = 16_384

  enum Kind: UInt8 {
    case data, headers, priority, resetStream, settings, pushPromise, ping, goAway, windowUpdate, continuation
  }

  struct Flags: OptionSet {
    let rawValue: UInt8
    static let endStream = Flags(rawValue: 0x1)
    /// Of SETTINGS and PING.
    static let acknowledgement = Flags(rawValue: 0x1)
    static let endHeaders = Flags(rawValue: 0x4)
    static let padded = Flags(rawValue: 0x8)
    static let priority = Flags(rawValue: 0x20)
  }

  var length: Int
  /// Nil for a frame of an unknown kind, which is ignored (RFC 9113 §5.5).
  var kind: Kind?
  var flags: Flags
  var streamID: Int32

  init(_ kind: Kind, _ flags: Flags = [], stream: Int32 = 0, length: Int) {
    (self.length, self.kind, self.flags, streamID) = (length, kind, flags, stream)
  }

  /// - Precondition: `bytes` has the whole header.
  init(_ bytes: RawSpan, at offset: Int) {
    let lengthAndKind = bytes.bigEndian(UInt32.self, at: offset)
    length = Int(lengthAndKind >> 8)
    kind = Kind(rawValue: UInt8(truncatingIfNeeded: lengthAndKind))
    flags = Flags(rawValue: bytes.byte(at: offset + 4))
    streamID = bytes.streamID(at: offset + 5)
  }

  @inline(__always)
  func append(to output: inout [UInt8]) {
    output.append(addingCapacity: Self.size) { output in
      output.append(bigEndian: UInt32(truncatingIfNeeded: length) << 8 | UInt32(kind?.rawValue ?? 0))
      output.append(flags.rawValue)
      output.append(bigEndian: streamID)
    }
  }

  /// The bounds of a payload without its padding (RFC 9113 §6.1).
  func content(of payload: RawSpan) throws(ConnectionFault) -> Range<Int> {
    guard flags.contains(.padded) else { return 0..<payload.byteCount }
    guard !payload.isEmpty, 1 + Int(payload.byte(at: 0)) <= payload.byteCount else {
      throw ConnectionFault(.protocolError, "padding that is longer than its frame")
    }
    return 1..<payload.byteCount - Int(payload.byte(at: 0))
  }

  static func setLength(_ length: Int, in output: inout [UInt8], at start: Int) {
    output[start] = UInt8(length >> 16)
    output[start + 1] = UInt8(length >> 8 & 0xFF)
    output[start + 2] = UInt8(length & 0xFF)
  }

  /// Splits the HEADERS frame at the end of `output` into a HEADERS frame and CONTINUATION frames (RFC 9113 §6.10).
  static func split(_ output: inout [UInt8], from start: Int) {
    var frame = FrameHeader(output.span.bytes, at: start)
    let block = Array(output[(start + size)...])
    output.removeSubrange(start...)
    frame.flags.remove(.endHeaders)
    var sent = 0
    while sent < block.count {
      frame.length = min(payloadLimit, block.count - sent)
      let part = block[sent..<sent + frame.length]
      sent += frame.length
      if sent == block.count { frame.flags.insert(.endHeaders) }
      frame.append(to: &output)
      output += part
      (frame.kind, frame.flags) = (.continuation, [])
    }
  }
}

extension RawSpan {
  /// A stream id or an increment of 31 bits; the reserved bit is ignored.
  @inline(__always)
  func streamID(at offset: Int) -> Int32 { Int32(bigEndian(UInt32.self, at: offset) & 0x7fff_ffff) }
}
