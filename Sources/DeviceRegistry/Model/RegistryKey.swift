import PushCore

/// The content of a registration or notification key: the record's number, and a random number that prevents guessing.
struct RegistryKey: Hashable {
  let id: Int64
  let salt: Int64

  var registration: [UInt8] {
    RegistryID.make(.registration, high: UInt64(bitPattern: id), low: UInt64(bitPattern: salt))
  }
  var notificationKey: [UInt8] { RegistryID.make(.group, high: UInt64(bitPattern: id), low: UInt64(bitPattern: salt)) }
}

extension RegistryKey {
  /// Parses a text in the form of an issued id; nil if the form is wrong.
  init?(_ text: [UInt8], _ kind: RegistryID.Kind) {
    guard RegistryID.kind(of: text) == kind else { return nil }
    var bits: UInt128 = 0
    for byte in text.suffix(Self.digitCount) {
      let value = Self.values[Int(byte)]
      guard value < 32 else { return nil }
      bits = bits << 5 | UInt128(value)
    }
    id = Int64(bitPattern: UInt64(truncatingIfNeeded: bits >> 64))
    salt = Int64(bitPattern: UInt64(truncatingIfNeeded: bits))
  }

  private static let digitCount = 26
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, digit) in "0123456789abcdefghjkmnpqrstvwxyz".utf8.enumerated() { values[Int(digit)] = UInt8(value) }
    return values
  }()
}
