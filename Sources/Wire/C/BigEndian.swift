/// Integers in network byte order. An offset outside the bytes stops the program, so the caller checks it.
extension RawSpan {
  @inlinable @inline(__always)
  public func byte(at offset: Int) -> UInt8 { unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self) }

  @inlinable @inline(__always)
  public func bigEndian<T: FixedWidthInteger & BitwiseCopyable>(_ type: T.Type, at offset: Int) -> T {
    unsafe T(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: T.self))
  }
}

extension Span<UInt8> {
  @inlinable @inline(__always)
  public func bigEndian<T: FixedWidthInteger & BitwiseCopyable>(_ type: T.Type, at offset: Int) -> T {
    unsafe bytes.bigEndian(T.self, at: offset)
  }
}

extension OutputSpan<UInt8> {
  @inlinable @inline(__always)
  public mutating func append<T: FixedWidthInteger>(bigEndian value: T) {
    unsafe withUnsafeMutableBufferPointer { target, count in
      precondition(MemoryLayout<T>.size <= target.count - count, "not enough room")
      unsafe Swift.withUnsafeBytes(of: value.bigEndian) { bytes in
        unsafe UnsafeMutableRawPointer(target.baseAddress! + count).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
      }
      count += MemoryLayout<T>.size
    }
  }
}

extension [UInt8] {
  @inlinable @inline(__always)
  public mutating func appendBigEndian<T: FixedWidthInteger>(_ value: T) {
    append(addingCapacity: MemoryLayout<T>.size) { $0.append(bigEndian: value) }
  }
}
