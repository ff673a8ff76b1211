/// An id that the registry issues: `pf1r~` for a registration, `pf1g~` for a notification key, then 128 bits as 26 lower-case
/// digits of Crockford's base 32 (no i, l, o, u), the highest digit first. No provider's token contains `~`, so an id is never
/// mistaken for a token. The id needs no escaping in a URL (RFC 3986 §2.3).
public enum RegistryID {
  public enum Kind: Sendable {
    case registration, group
  }

  private static let digits = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
  /// The value of each byte as a digit; 255 for a byte that is none.
  public static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, digit) in digits.enumerated() { values[Int(digit)] = UInt8(value) }
    return values
  }()
  private static let registrationPrefix = Array("pf1r~".utf8)
  private static let groupPrefix = Array("pf1g~".utf8)
  public static let prefixLength = 5

  /// Makes an id of 128 random bits.
  public static func make(_ kind: Kind, high: UInt64, low: UInt64) -> [UInt8] {
    var id = kind == .registration ? registrationPrefix : groupPrefix
    var bits = UInt128(high) << 64 | UInt128(low)
    var encoded = [UInt8](repeating: 0, count: 26)
    for index in stride(from: 25, through: 0, by: -1) {
      encoded[index] = digits[Int(bits & 31)]
      bits >>= 5
    }
    id += encoded
    return id
  }

  /// The kind of an id by its form; nil if the text isn't an id of the registry.
  public static func kind(of text: [UInt8]) -> Kind? {
    guard text.count == 31, text[0] == UInt8(ascii: "p"), text[5] <= UInt8(ascii: "7") else { return nil }
    guard text[5...].allSatisfy({ values[Int($0)] < 32 }) else { return nil }
    if text.starts(with: registrationPrefix) { return .registration }
    return text.starts(with: groupPrefix) ? .group : nil
  }
}
