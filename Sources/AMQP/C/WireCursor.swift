/// Reads big-endian fields out of a frame. Running past the end breaks the cursor and yields zeros and empty ranges, so
/// a reader checks once, at its end; nothing from outside can trap here.
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
    return T(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: start, as: T.self))
  }

  mutating func uint8(in bytes: RawSpan) -> UInt8 { load(UInt8.self, in: bytes) }
  mutating func uint16(in bytes: RawSpan) -> UInt16 { load(UInt16.self, in: bytes) }
  mutating func uint32(in bytes: RawSpan) -> UInt32 { load(UInt32.self, in: bytes) }
  mutating func uint64(in bytes: RawSpan) -> UInt64 { load(UInt64.self, in: bytes) }

  mutating func skip(_ count: Int) { _ = advance(count) }

  /// Where the content of a string of up to 255 bytes lies.
  mutating func shortString(in bytes: RawSpan) -> Range<Int> {
    let count = Int(uint8(in: bytes))
    return advance(count).map { $0..<$0 + count } ?? end..<end
  }

  /// Where the content of a string, table or array with a 32-bit length lies.
  mutating func longString(in bytes: RawSpan) -> Range<Int> {
    let count = Int(uint32(in: bytes))
    return advance(count).map { $0..<$0 + count } ?? end..<end
  }
}

/// What frames are read by: ranges always come from a `WireCursor` over the same span.
extension RawSpan {
  @inline(__always)
  func byte(at offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }

  @inline(__always)
  func bigEndian<T: FixedWidthInteger & BitwiseCopyable>(_ type: T.Type, at offset: Int) -> T {
    T(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: T.self))
  }

  func array(_ range: Range<Int>) -> [UInt8] {
    range.isEmpty ? [] : extracting(range).withUnsafeBytes { [UInt8]($0) }
  }

  package func append(_ range: Range<Int>, to array: inout [UInt8]) {
    extracting(range).withUnsafeBytes { array.append(contentsOf: $0) }
  }

  func equals(_ range: Range<Int>, _ array: [UInt8]) -> Bool {
    guard range.count == array.count else { return false }
    return extracting(range).withUnsafeBytes { mine in
      array.withUnsafeBytes { other in
        var index = 0
        while index < mine.count {
          if mine[index] != other[index] { return false }
          index += 1
        }
        return true
      }
    }
  }

  func equals(_ range: Range<Int>, _ text: String) -> Bool {
    guard range.count == text.utf8.count else { return false }
    var offset = range.lowerBound
    for byte in text.utf8 {
      guard self.byte(at: offset) == byte else { return false }
      offset += 1
    }
    return true
  }

  /// Words of the broker for people; control characters become spaces.
  func text(_ range: Range<Int>) -> String {
    String(decoding: array(range).map { $0 < 32 || $0 == 127 ? 32 : $0 }, as: UTF8.self)
  }
}

/// Big-endian fields at the end of a frame being built.
extension [UInt8] {
  @inline(__always)
  mutating func appendBigEndian<T: FixedWidthInteger>(_ value: T) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }

  /// The caller has checked that there are at most 255 bytes.
  mutating func appendShortString(_ bytes: [UInt8]) {
    append(UInt8(truncatingIfNeeded: bytes.count))
    append(contentsOf: bytes)
  }

  mutating func appendLongString(_ bytes: [UInt8]) {
    appendBigEndian(UInt32(truncatingIfNeeded: bytes.count))
    append(contentsOf: bytes)
  }

  /// Overwrites four bytes written earlier as a place holder.
  mutating func setBigEndian(_ value: UInt32, at index: Int) {
    self[index] = UInt8(truncatingIfNeeded: value >> 24)
    self[index + 1] = UInt8(truncatingIfNeeded: value >> 16)
    self[index + 2] = UInt8(truncatingIfNeeded: value >> 8)
    self[index + 3] = UInt8(truncatingIfNeeded: value)
  }
}
