import PushCore

/// Texts of URLs and forms (RFC 3986 §2.1, and what browsers call `application/x-www-form-urlencoded`).
enum PercentEncoding {
  /// Nil where an escape is cut off or has no digits.
  static func decode(_ text: some Collection<UInt8>, plusIsSpace: Bool = false) -> [UInt8]? {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count)
    var bytes = text.makeIterator()
    while let byte = bytes.next() {
      if byte == UInt8(ascii: "%") {
        guard let high = bytes.next().flatMap(digit), let low = bytes.next().flatMap(digit) else { return nil }
        decoded.append(high << 4 | low)
      } else {
        decoded.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
      }
    }
    return decoded
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46, 0x61...0x66: (byte | 0x20) - 0x57
    default: nil
    }
  }

  /// The fields of a query or a form, in order; nil where one can't be decoded. At most `limit` of them.
  static func fields(_ text: [UInt8], limit: Int = 1_000) -> [(name: [UInt8], value: [UInt8])]? {
    var fields: [(name: [UInt8], value: [UInt8])] = []
    for part in text.split(separator: UInt8(ascii: "&")) {
      let sides = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard fields.count < limit, let name = decode(sides[0], plusIsSpace: true),
        let value = sides.count == 2 ? decode(sides[1], plusIsSpace: true) : []
      else { return nil }
      fields.append((name, value))
    }
    return fields
  }
}
