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
    let eight = bytes.extracting(at..<at &+ 8)
    let low = UInt64(eight[0]) | UInt64(eight[1]) &<< 8 | UInt64(eight[2]) &<< 16 | UInt64(eight[3]) &<< 24
    let high = UInt64(eight[4]) | UInt64(eight[5]) &<< 8 | UInt64(eight[6]) &<< 16 | UInt64(eight[7]) &<< 24
    return low | high &<< 32
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

  static func areEqual(_ one: borrowing Span<UInt8>, _ other: borrowing Span<UInt8>) -> Bool {
    guard one.count == other.count else { return false }
    var index = 0
    while index &+ 8 <= one.count {
      guard word(one, at: index) == word(other, at: index) else { return false }
      index &+= 8
    }
    for index in index..<one.count where one[index] != other[index] { return false }
    return true
  }

  static func starts(_ bytes: borrowing Span<UInt8>, with prefix: String) -> Bool {
    let prefix = prefix.utf8.span
    return bytes.count >= prefix.count && areEqual(bytes.extracting(first: prefix.count), prefix)
  }
}
