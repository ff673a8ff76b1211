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
}

extension RawSpan {
  public func equals(_ range: Range<Int>, _ array: [UInt8]) -> Bool {
    guard range.count == array.count else { return false }
    return unsafe extracting(range).withUnsafeBytes { mine in
      unsafe array.withUnsafeBytes { other in
        var index = 0
        while index < mine.count {
          if unsafe mine[index] != other[index] { return false }
          index += 1
        }
        return true
      }
    }
  }

  @inlinable @inline(__always)
  public func append(_ range: Range<Int>, to array: inout [UInt8]) {
    unsafe extracting(range).withUnsafeBytes { unsafe array.append(contentsOf: $0) }
  }
}
