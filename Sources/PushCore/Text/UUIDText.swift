import Wire

/// UUIDs in the only form that APNs accepts: 36 bytes, lower case, 8-4-4-4-12 (RFC 9562 §4).
public enum UUIDText {
  public static func random() -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  public static func random(using generator: inout some RandomNumberGenerator) -> [UInt8] {
    let high: UInt64 = generator.next()
    let low: UInt64 = generator.next()
    return canonical(high: high, low: low, version: 4)
  }

  /// A UUID of the first 128 bits of a digest, version 8 (RFC 9562 §5.8): the same digest gives the same UUID.
  public static func named(_ digest: [UInt8]) -> [UInt8] {
    let bytes = digest.span
    return canonical(high: bytes.bigEndian(UInt64.self, at: 0), low: bytes.bigEndian(UInt64.self, at: 8), version: 8)
  }

  static func canonical(high: UInt64, low: UInt64, version: UInt64) -> [UInt8] {
    var text: [UInt8] = []
    append(high: high, low: low, version: version, to: &text)
    return text
  }

  static func append(high: UInt64, low: UInt64, version: UInt64, to text: inout [UInt8]) {
    let (high, low) = marked(high: high, low: low, version: version)
    let (first, second) = (digits(high &>> 32), digits(high))
    let (third, fourth) = (digits(low &>> 32), digits(low))
    let hyphen = UInt64(hyphen)
    text.append(addingCapacity: 36) { text in
      text.append(bigEndian: first)
      text.append(bigEndian: hyphen &<< 56 | (second &>> 32) &<< 24 | hyphen &<< 16 | (second & 0xFFFF_FFFF) &>> 16)
      text.append(bigEndian: second &<< 48 | hyphen &<< 40 | (third &>> 32) &<< 8 | hyphen)
      text.append(bigEndian: third &<< 32 | fourth &>> 32)
      text.append(bigEndian: UInt32(truncatingIfNeeded: fourth))
    }
  }

  /// The eight hexadecimal digits of the low 32 bits, the first digit in the highest byte. Computes all eight at once.
  private static func digits(_ bits: UInt64) -> UInt64 {
    let word = bits & 0xFFFF_FFFF
    let quads = (word &<< 16 | word) & 0x0000_FFFF_0000_FFFF
    let pairs = (quads &<< 8 | quads) & 0x00FF_00FF_00FF_00FF
    let values = (pairs &<< 4 | pairs) & 0x0F0F_0F0F_0F0F_0F0F
    let letters = (values &+ 0x0606_0606_0606_0606) &>> 4 & 0x0101_0101_0101_0101
    return values &+ 0x3030_3030_3030_3030 &+ 0x27 &* letters
  }

  /// Sets the bits of version and variant (RFC 9562 §4.1, §4.2).
  static func marked(high: UInt64, low: UInt64, version: UInt64) -> (high: UInt64, low: UInt64) {
    (high & 0xFFFF_FFFF_FFFF_0FFF | version &<< 12, low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
  }

  /// True if APNs accepts `text` as `apns-id` (BadMessageId otherwise).
  public static func isCanonical(_ text: [UInt8]) -> Bool {
    guard text.count == 36 else { return false }
    for (index, byte) in text.enumerated() {
      let isHyphen = [8, 13, 18, 23].contains(index)
      guard isHyphen ? byte == hyphen : Bytes.isDigit(byte) || byte &- 0x61 < 6 else { return false }
    }
    return true
  }

  private static let hyphen: UInt8 = 0x2D
}
