extension [UInt8] {
  /// Appends what is only borrowed: `append(contentsOf:)` would take a reference to it first, which costs more than the copy.
  @inline(__always)
  mutating func append(copying bytes: borrowing Span<UInt8>) {
    guard !bytes.isEmpty else { return }
    append(addingCapacity: bytes.count) { output in
      output.withUnsafeMutableBufferPointer { target, count in
        bytes.withUnsafeBufferPointer { source in
          target.baseAddress!.update(from: source.baseAddress!, count: source.count)
          count = source.count
        }
      }
    }
  }
}
