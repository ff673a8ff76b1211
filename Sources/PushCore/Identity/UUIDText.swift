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

  /// 128 bits spelled out after setting those of version and variant.
  static func canonical(high: UInt64, low: UInt64, version: UInt64) -> [UInt8] {
    var text: [UInt8] = []
    append(high: high, low: low, version: version, to: &text)
    return text
  }

  static func append(high: UInt64, low: UInt64, version: UInt64, to text: inout [UInt8]) {
    let (high, low) = marked(high: high, low: low, version: version)
    text.append(addingCapacity: 36) { text in
      appendHex(high, from: 64, to: 32, into: &text)
      text.append(hyphen)
      appendHex(high, from: 32, to: 16, into: &text)
      text.append(hyphen)
      appendHex(high, from: 16, to: 0, into: &text)
      text.append(hyphen)
      appendHex(low, from: 64, to: 48, into: &text)
      text.append(hyphen)
      appendHex(low, from: 48, to: 0, into: &text)
    }
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

  @inline(__always)
  private static func appendHex(_ bits: UInt64, from: UInt64, to: UInt64, into text: inout OutputSpan<UInt8>) {
    var shift = from
    while shift > to {
      shift &-= 4
      let digit = UInt8(truncatingIfNeeded: bits &>> shift) & 15
      text.append(digit < 10 ? 0x30 &+ digit : 0x57 &+ digit)
    }
  }
}
