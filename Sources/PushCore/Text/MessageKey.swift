/// A short key of a message: 64 bits of the SHA-1 of its id. Two of ten thousand messages a month to one device share a key
/// with a probability below one in a billion.
public enum MessageKey {
  public static func of(_ messageID: [UInt8]) -> Int64 { key(0, messageID) }

  /// The key of an occasion that sets a badge. Hashed apart from message ids.
  public static func of(occasion: [UInt8]) -> Int64 { key(1, occasion) }

  private static func key(_ kind: UInt8, _ text: [UInt8]) -> Int64 {
    var hash = SHA1()
    hash.append(kind)
    hash.append(text.span)
    let (a, b, _, _, _) = hash.finish()
    return Int64(bitPattern: UInt64(a) << 32 | UInt64(b))
  }

  // MARK: Numbers and push keys in payloads

  /// The upper 53 bits: every JSON reader keeps them exactly.
  static func number(of key: Int64) -> UInt64 { UInt64(bitPattern: key) >> 11 }

  /// The keys with this number; nil if it has more than 53 bits.
  public static func keys(ofNumber number: UInt64) -> ClosedRange<Int64>? {
    guard number >> 53 == 0 else { return nil }
    let first = Int64(bitPattern: number << 11)
    return first...(first | 0x7FF)
  }

  /// Appends the push key of a message on a device, forty hexadecimal digits: the message's key, then a hash with the token.
  static func appendPushKey(of key: Int64, token: Span<UInt8>, to text: inout [UInt8]) {
    let bits = UInt64(bitPattern: key)
    var hash = SHA1()
    let halves = [UInt32(truncatingIfNeeded: bits >> 32), UInt32(truncatingIfNeeded: bits)]
    for half in halves { hash.append(word: half) }
    hash.append(token)
    let (a, b, c, _, _) = hash.finish()
    for word in halves + [a, b, c] {
      for shift in stride(from: UInt32(28), through: 0, by: -4) { text.append(digits[Int(word >> shift & 15)]) }
    }
  }

  private static let digits = Array("0123456789abcdef".utf8)

  /// The message's key in a push key; nil if the text isn't a push key.
  public static func key(ofPushKey text: [UInt8]) -> Int64? {
    guard text.count == 40 else { return nil }
    var bits: UInt64 = 0
    for (place, byte) in text.enumerated() {
      guard let digit = digits.firstIndex(of: byte < 0x41 ? byte : byte | 0x20) else { return nil }
      if place < 16 { bits = bits << 4 | UInt64(digit) }
    }
    return Int64(bitPattern: bits)
  }
}
