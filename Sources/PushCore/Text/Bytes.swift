/// Classes of ASCII bytes.
package enum Bytes {
  @inline(__always)
  static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

  @inline(__always)
  static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }

  @inline(__always)
  package static func isAlphanumeric(_ byte: UInt8) -> Bool { isDigit(byte) || isLetter(byte) }

  @inline(__always)
  static func isHex(_ byte: UInt8) -> Bool { isDigit(byte) || (byte | 0x20) &- UInt8(ascii: "a") < 6 }

  /// The bytes of most tokens of FCM: letters, digits, `-`, `:` and `_`.
  @inline(__always)
  static func isUsualInFCM(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "_")
  }

  /// The eight bytes from `at` as one word, the first in the lowest bits. One bounds check, one load.
  @inline(__always)
  static func word(_ bytes: borrowing Span<UInt8>, at: Int) -> UInt64 {
    bytes.bigEndian(UInt64.self, at: at).byteSwapped
  }

  /// The first eight bytes of a range as one word, the first in the lowest bits. Zeros take the place of missing bytes.
  @inline(__always)
  static func prefix(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> UInt64 {
    let count = min(range.count, 8)
    if range.lowerBound &+ 8 <= bytes.count { return word(bytes, at: range.lowerBound) & ~(UInt64.max << (8 &* count)) }
    var prefix: UInt64 = 0
    for index in 0..<count { prefix |= UInt64(bytes[range.lowerBound &+ index]) &<< (8 &* index) }
    return prefix
  }

  static func starts(_ bytes: borrowing Span<UInt8>, with prefix: String) -> Bool {
    let prefix = prefix.utf8.span
    return bytes.count >= prefix.count && bytes.extracting(first: prefix.count).equals(prefix)
  }
}
