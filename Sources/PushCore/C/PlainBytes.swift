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

  /// True for hexadecimal digits without capital letters.
  package static func areLowerHex(_ bytes: borrowing Span<UInt8>) -> Bool {
    unsafe all(bytes, shim_lower_hex) { isDigit($0) || $0 &- UInt8(ascii: "a") < 6 }
  }

  static func areUsualInFCM(_ bytes: borrowing Span<UInt8>) -> Bool { unsafe all(bytes, shim_usual_in_fcm, isUsualInFCM) }

  /// - Parameter areIn: checks sixteen bytes.
  @inline(__always)
  private static func all(
    _ bytes: borrowing Span<UInt8>, _ areIn: (UnsafePointer<UInt8>) -> Bool, _ isIn: (UInt8) -> Bool
  ) -> Bool {
    unsafe bytes.withUnsafeBufferPointer { bytes in
      guard let text = bytes.baseAddress, bytes.count >= 16 else { return unsafe bytes.allSatisfy(isIn) }
      for start in stride(from: 0, to: bytes.count &- 16, by: 16) where unsafe !areIn(text + start) { return false }
      return unsafe areIn(text + (bytes.count &- 16))
    }
  }

  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte &- 0x20 <= 0x5E && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }
}
