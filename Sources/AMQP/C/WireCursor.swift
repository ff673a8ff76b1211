import Wire

/// Reads big-endian fields of a frame. A read past the end sets `isBroken` and returns zeros or empty ranges. So a reader
/// checks once at its end, and no input can trap here.
struct WireCursor {
  private(set) var position: Int
  let end: Int
  private(set) var isBroken = false

  init(_ range: Range<Int>) {
    position = range.lowerBound
    end = range.upperBound
  }

  var isAtEnd: Bool { position >= end }

  @inline(__always)
  private mutating func advance(_ count: Int) -> Int? {
    guard count <= end - position else {
      isBroken = true
      position = end
      return nil
    }
    defer { position += count }
    return position
  }

  @inline(__always)
  private mutating func load<T: FixedWidthInteger & BitwiseCopyable>(_ type: T.Type, in bytes: RawSpan) -> T {
    guard let start = advance(MemoryLayout<T>.size) else { return 0 }
    return bytes.bigEndian(T.self, at: start)
  }

  mutating func uint8(in bytes: RawSpan) -> UInt8 { load(UInt8.self, in: bytes) }
  mutating func uint16(in bytes: RawSpan) -> UInt16 { load(UInt16.self, in: bytes) }
  mutating func uint32(in bytes: RawSpan) -> UInt32 { load(UInt32.self, in: bytes) }
  mutating func uint64(in bytes: RawSpan) -> UInt64 { load(UInt64.self, in: bytes) }

  mutating func bit(in bytes: RawSpan) -> Bool { uint8(in: bytes) & 1 != 0 }

  mutating func skip(_ count: Int) { _ = advance(count) }

  /// The range of the content of a string with a one-byte length.
  mutating func shortString(in bytes: RawSpan) -> Range<Int> {
    let count = Int(uint8(in: bytes))
    return advance(count).map { $0..<$0 + count } ?? end..<end
  }

  /// The range of the content of a string, table or array with a 32-bit length.
  mutating func longString(in bytes: RawSpan) -> Range<Int> {
    let count = Int(uint32(in: bytes))
    return advance(count).map { $0..<$0 + count } ?? end..<end
  }
}

/// Helpers to read frames. Every range must come from a `WireCursor` over the same span.
extension RawSpan {
  func array(_ range: Range<Int>) -> [UInt8] {
    range.isEmpty ? [] : extracting(range).withUnsafeBytes { [UInt8]($0) }
  }

  /// The broker's text for people; control characters become spaces.
  func text(_ range: Range<Int>) -> String {
    String(decoding: array(range).map { $0 < 32 || $0 == 127 ? 32 : $0 }, as: UTF8.self)
  }
}

extension [UInt8] {
  /// The caller makes sure that there are at most 255 bytes.
  package mutating func appendShortString(_ bytes: [UInt8]) {
    append(UInt8(truncatingIfNeeded: bytes.count))
    append(contentsOf: bytes)
  }

  package mutating func appendLongString(_ bytes: [UInt8]) {
    appendBigEndian(UInt32(truncatingIfNeeded: bytes.count))
    append(contentsOf: bytes)
  }

  /// Appends a frame with the payload that `append` adds.
  @inline(__always)
  package mutating func appendFrame(_ type: UInt8, channel: UInt16, _ append: (inout [UInt8]) -> Void) {
    self.append(type)
    appendBigEndian(channel)
    let start = count
    appendBigEndian(UInt32(0))
    append(&self)
    let size = UInt32(truncatingIfNeeded: count - start - 4).bigEndian
    Swift.withUnsafeBytes(of: size) { replaceSubrange(start..<start + 4, with: $0) }
    self.append(Frame.end)
  }
}
