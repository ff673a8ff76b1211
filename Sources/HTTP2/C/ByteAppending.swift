extension OutputSpan<UInt8> {
  /// Appends what is only borrowed, in one copy.
  @inline(__always)
  mutating func append(copying bytes: borrowing Span<UInt8>) {
    withUnsafeMutableBufferPointer { target, count in
      precondition(bytes.count <= target.count - count, "more than there is room for")
      bytes.withUnsafeBufferPointer { source in
        guard let from = source.baseAddress, let to = target.baseAddress else { return }
        (to + count).update(from: from, count: source.count)
        count += source.count
      }
    }
  }
}

extension [UInt8] {
  /// As `append(contentsOf:)`, which would take a reference to what it copies, and that costs more than the copy.
  @inline(__always)
  mutating func append(copying bytes: borrowing Span<UInt8>) {
    append(addingCapacity: bytes.count) { $0.append(copying: bytes) }
  }
}
