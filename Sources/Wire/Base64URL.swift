/// Base64 with the URL alphabet and without padding (RFC 7515 §2).
public enum Base64URL {
  public static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  public static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var bits: UInt32 = 0
    var held = 0
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      held += 8
      while held >= 6 {
        held -= 6
        text.append(alphabet[Int(bits >> UInt32(held) & 63)])
      }
    }
    if held > 0 { text.append(alphabet[Int(bits << UInt32(6 - held) & 63)]) }
    return text
  }

  /// Nil for other characters, padding or stray bits at the end.
  /// - Parameter isLenient: accepts the alphabet of Base64 (RFC 4648 §4) and padding too.
  public static func decode(_ text: some BidirectionalCollection<UInt8>, isLenient: Bool = false) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var count = 0
    var rest = text[...]
    if isLenient {
      var padding = 0
      while padding < 2, rest.last == UInt8(ascii: "=") {
        rest = rest.dropLast()
        padding += 1
      }
    }
    for character in rest {
      guard let value = value(character, isLenient) else { return nil }
      bits = bits << 6 | value
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return count < 6 && bits & (1 << UInt32(count) - 1) == 0 ? bytes : nil
  }

  private static func value(_ character: UInt8, _ isLenient: Bool) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - 0x41)
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - 0x61 + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - 0x30 + 52)
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    case UInt8(ascii: "+") where isLenient: 62
    case UInt8(ascii: "/") where isLenient: 63
    default: nil
    }
  }
}

/// Base64 with padding (RFC 4648 §4).
public enum Base64 {
  public static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
    let text = Base64URL.encode(bytes).map { character in
      switch character {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: character
      }
    }
    return text + [UInt8](repeating: UInt8(ascii: "="), count: (4 - text.count % 4) % 4)
  }
}
