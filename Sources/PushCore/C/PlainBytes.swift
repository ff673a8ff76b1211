import CBytes

extension Bytes {
  /// The place of the first byte from `start` on that isn't printable ASCII, or is a quote or a backslash; the end if there is none.
  @inline(__always)
  static func endOfPlain(_ bytes: borrowing Span<UInt8>, from start: Int) -> Int {
    precondition(start >= 0, "a place in the text")
    var index = start
    unsafe bytes.withUnsafeBufferPointer { bytes in
      guard let text = bytes.baseAddress else { return }
      while bytes.count &- index >= 16 {
        let plain = Int(unsafe shim_plain_prefix(text + index))
        index &+= plain
        if plain < 16 { return }
      }
      while index < bytes.count, unsafe isPlain(text[index]) { index &+= 1 }
    }
    return index
  }

  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte &- 0x20 <= 0x5E && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }
}
