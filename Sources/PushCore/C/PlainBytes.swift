import CBytes

extension Bytes {
  /// The place of the first byte from `start` on that isn't printable ASCII, or is a quote or a backslash; the end if there is none.
  @inline(__always)
  static func endOfPlain(_ bytes: borrowing Span<UInt8>, from start: Int) -> Int {
    var index = start
    while bytes.count &- index >= 16 {
      let plain = plainPrefix(ofSixteen: bytes.extracting(index..<index &+ 16))
      if plain < 16 { return index &+ plain }
      // A constant, so that the processor reads the next bytes before this result.
      index &+= 16
    }
    while index < bytes.count, isPlain(bytes[index]) { index &+= 1 }
    return index
  }

  @inline(__always)
  private static func plainPrefix(ofSixteen bytes: borrowing Span<UInt8>) -> Int {
    unsafe bytes.withUnsafeBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return 0 }
      return Int(unsafe shim_plain_prefix(start))
    }
  }

  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte &- 0x20 <= 0x5E && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }
}
