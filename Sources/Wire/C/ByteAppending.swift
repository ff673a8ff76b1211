extension OutputSpan<UInt8> {
  /// Appends borrowed bytes in one copy.
  @inlinable @inline(__always)
  public mutating func append(copying bytes: borrowing Span<UInt8>) {
    unsafe withUnsafeMutableBufferPointer { target, count in
      precondition(bytes.count <= target.count - count, "not enough room")
      unsafe bytes.withUnsafeBufferPointer { source in
        guard let from = source.baseAddress, let to = target.baseAddress else { return }
        unsafe (to + count).update(from: from, count: source.count)
        count += source.count
      }
    }
  }
}

extension [UInt8] {
  /// Like `append(contentsOf:)`, but without retaining the source, which would cost more than the copy.
  @inlinable @inline(__always)
  public mutating func append(copying bytes: borrowing Span<UInt8>) {
    append(addingCapacity: bytes.count) { $0.append(copying: bytes) }
  }

  public mutating func append(_ text: StaticString) { text.withUTF8Buffer { unsafe append(copying: $0.span) } }
}

extension Span<UInt8> {
  @inlinable @inline(__always)
  public func equals(_ other: borrowing Span<UInt8>) -> Bool { unsafe bytes.equals(other.bytes) }
}

extension RawSpan {
  @inlinable @inline(__always)
  public func equals(_ array: [UInt8]) -> Bool { unsafe equals(array.span.bytes) }

  @inlinable @inline(__always)
  public func equals(_ other: RawSpan) -> Bool {
    guard byteCount == other.byteCount else { return false }
    var offset = 0
    while offset &+ 8 <= byteCount {
      guard bigEndian(UInt64.self, at: offset) == other.bigEndian(UInt64.self, at: offset) else { return false }
      offset &+= 8
    }
    for offset in offset..<byteCount where byte(at: offset) != other.byte(at: offset) { return false }
    return true
  }

  @inlinable @inline(__always)
  public func append(_ range: Range<Int>, to array: inout [UInt8]) {
    unsafe extracting(range).withUnsafeBytes { unsafe array.append(contentsOf: $0) }
  }
}
