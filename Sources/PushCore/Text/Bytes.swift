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

  /// True for hexadecimal digits without capital letters.
  static func areLowerHex(_ bytes: borrowing Span<UInt8>) -> Bool {
    all(of: bytes, { isDigit($0) || $0 &- UInt8(ascii: "a") < 6 }) { word in
      // The high bit is set for each digit, and for each letter from a to f.
      ~((word ^ ones &* 0x30) &+ ones &* 0x76) | isSmallLetter(word, below: 7)
    }
  }

  /// The bytes of most tokens of FCM: letters, digits, `-`, `:` and `_`.
  @inline(__always)
  static func isUsualInFCM(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "_")
  }

  static func areUsualInFCM(_ bytes: borrowing Span<UInt8>) -> Bool {
    all(of: bytes, isUsualInFCM) { word in
      // The colon follows the digits.
      let digitsAndColon = ~((word ^ ones &* 0x30) &+ ones &* 0x75)
      let marks = ~((word ^ ones &* 0x2D) &+ ones &* 0x7F) | ~((word ^ ones &* 0x5F) &+ ones &* 0x7F)
      return digitsAndColon | marks | isSmallLetter(word | ones &* 0x20, below: 27)
    }
  }

  /// Checks eight bytes at once.
  /// - Parameter areIn: sets the high bit of each byte of its word that is in the class. All bytes of the word are ASCII, so no sum
  ///   carries into the next byte.
  @inline(__always)
  private static func all(
    of bytes: borrowing Span<UInt8>, _ isIn: (UInt8) -> Bool, _ areIn: (UInt64) -> UInt64
  ) -> Bool {
    var index = 0
    while index &+ 8 <= bytes.count {
      let word = Self.word(bytes, at: index)
      guard word & high == 0, areIn(word) & high == high else { return false }
      index &+= 8
    }
    for index in index..<bytes.count where !isIn(bytes[index]) { return false }
    return true
  }

  private static let ones: UInt64 = 0x0101_0101_0101_0101
  private static let high = ones &* 0x80

  /// Sets the high bit of each small letter before the letter with this number from 1.
  @inline(__always)
  private static func isSmallLetter(_ word: UInt64, below number: UInt64) -> UInt64 {
    let letters = word ^ ones &* 0x60
    return (letters &+ ones &* 0x7F) & ~(letters &+ ones &* (0x80 &- number))
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
