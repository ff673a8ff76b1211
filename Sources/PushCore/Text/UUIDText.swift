/// UUIDs in their canonical form: 36 bytes, lower case, 8-4-4-4-12 (RFC 9562 §4), the only one APNs takes.
public enum UUIDText {
  /// A random UUID, version 4.
  public static func random() -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  public static func random(using generator: inout some RandomNumberGenerator) -> [UInt8] {
    let high: UInt64 = generator.next()
    let low: UInt64 = generator.next()
    return canonical(high: high, low: low, version: 4)
  }

  /// Of the first 128 bits of a digest, version 8 (RFC 9562 §5.8): who has the digest has the same name.
  public static func named(_ digest: [UInt8]) -> [UInt8] {
    func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    return canonical(high: word(digest.prefix(8)), low: word(digest.dropFirst(8).prefix(8)), version: 8)
  }

  /// 128 bits spelled out after setting those of version and variant.
  static func canonical(high: UInt64, low: UInt64, version: UInt64) -> [UInt8] {
    var text: [UInt8] = []
    append(high: high, low: low, version: version, to: &text)
    return text
  }

  static func append(high: UInt64, low: UInt64, version: UInt64, to text: inout [UInt8]) {
    let (high, low) = marked(high: high, low: low, version: version)
    let (first, second) = (digits(high &>> 32), digits(high))
    let (third, fourth) = (digits(low &>> 32), digits(low))
    text.append(addingCapacity: 36) { text in
      append(first, 8, to: &text)
      text.append(hyphen)
      append(second, 4, to: &text)
      text.append(hyphen)
      append(second &<< 32, 4, to: &text)
      text.append(hyphen)
      append(third, 4, to: &text)
      text.append(hyphen)
      append(third &<< 32, 4, to: &text)
      append(fourth, 8, to: &text)
    }
  }

  /// The low 32 bits spelled out, the first digit in the highest byte: all eight at once.
  private static func digits(_ bits: UInt64) -> UInt64 {
    let word = bits & 0xFFFF_FFFF
    let quads = (word &<< 16 | word) & 0x0000_FFFF_0000_FFFF
    let pairs = (quads &<< 8 | quads) & 0x00FF_00FF_00FF_00FF
    let values = (pairs &<< 4 | pairs) & 0x0F0F_0F0F_0F0F_0F0F
    let letters = (values &+ 0x0606_0606_0606_0606) &>> 4 & 0x0101_0101_0101_0101
    return values &+ 0x3030_3030_3030_3030 &+ 0x27 &* letters
  }

  /// The highest `count` bytes.
  @inline(__always)
  private static func append(_ digits: UInt64, _ count: Int, to text: inout OutputSpan<UInt8>) {
    for place in 0..<count { text.append(UInt8(truncatingIfNeeded: digits &>> UInt64(56 &- 8 &* place))) }
  }

  /// With the bits of version and variant set (RFC 9562 §4.1, §4.2).
  static func marked(high: UInt64, low: UInt64, version: UInt64) -> (high: UInt64, low: UInt64) {
    (high & 0xFFFF_FFFF_FFFF_0FFF | version &<< 12, low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
  }

  /// Whether `text` is a UUID as APNs wants `apns-id` (BadMessageId otherwise).
  public static func isCanonical(_ text: [UInt8]) -> Bool {
    guard text.count == 36 else { return false }
    for (index, byte) in text.enumerated() {
      switch index {
      case 8, 13, 18, 23: if byte != hyphen { return false }
      default:
        let isDigit = byte &- 0x30 < 10 || byte &- 0x61 < 6
        if !isDigit { return false }
      }
    }
    return true
  }

  private static let hyphen: UInt8 = 0x2D
}
