/// Classes of ASCII bytes that several rules share.
enum Bytes {
  @inline(__always)
  static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

  @inline(__always)
  static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }

  @inline(__always)
  static func isAlphanumeric(_ byte: UInt8) -> Bool { isDigit(byte) || isLetter(byte) }

  @inline(__always)
  static func isHex(_ byte: UInt8) -> Bool { isDigit(byte) || (byte | 0x20) &- UInt8(ascii: "a") < 6 }

  static func isHex(_ bytes: borrowing Span<UInt8>) -> Bool {
    for index in bytes.indices where !isHex(bytes[index]) { return false }
    return true
  }

  /// Of hexadecimal digits: none is one of A to F.
  static func isLowerCase(_ digits: borrowing Span<UInt8>) -> Bool {
    // Digits and small letters have this bit, capital letters don't.
    var common: UInt8 = 0x20
    for index in digits.indices { common &= digits[index] }
    return common != 0
  }

  /// Eight bytes from `at` on as one word, the first in its lowest bits. One check of bounds, one load.
  @inline(__always)
  static func word(_ bytes: borrowing Span<UInt8>, at: Int) -> UInt64 {
    let eight = bytes.extracting(at..<at &+ 8)
    let low = UInt64(eight[0]) | UInt64(eight[1]) &<< 8 | UInt64(eight[2]) &<< 16 | UInt64(eight[3]) &<< 24
    let high = UInt64(eight[4]) | UInt64(eight[5]) &<< 8 | UInt64(eight[6]) &<< 16 | UInt64(eight[7]) &<< 24
    return low | high &<< 32
  }

  /// How many bytes of a word, from the first on, stand in a JSON string for themselves: ASCII without controls, quotes and
  /// backslashes.
  @inline(__always)
  static func plainPrefix(_ word: UInt64) -> Int {
    let ones: UInt64 = 0x0101_0101_0101_0101
    // In each, the high bit of the first byte that matches is set; bits of bytes behind it may be wrong.
    let controls = (word &- ones &* 0x20) & ~word
    let quotes = word ^ ones &* 0x22
    let backslashes = word ^ ones &* 0x5C
    let special = controls | (quotes &- ones) & ~quotes | (backslashes &- ones) & ~backslashes | word
    return (special & (ones &* 0x80)).trailingZeroBitCount &>> 3
  }
}
