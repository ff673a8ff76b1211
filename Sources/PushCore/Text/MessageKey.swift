/// A message's name in the notes of devices: 64 bits of the SHA-1 of its id. That two messages of one device share it is less likely than
/// one in a billion at ten thousand messages a month.
public enum MessageKey {
  public static func of(_ messageID: [UInt8]) -> Int64 { key(0, messageID) }

  /// Of what forces a badge, apart from all messages.
  public static func of(occasion: [UInt8]) -> Int64 { key(1, occasion) }

  private static func key(_ kind: UInt8, _ text: [UInt8]) -> Int64 {
    var hash = SHA1()
    hash.append(kind)
    hash.append(text.span)
    let (a, b, _, _, _) = hash.finish()
    return Int64(bitPattern: UInt64(a) << 32 | UInt64(b))
  }

  // MARK: what devices are told

  /// Of 53 bits, so that any reader of JSON has it whole.
  static func number(of key: Int64) -> UInt64 { UInt64(bitPattern: key) >> 11 }

  /// Which keys have this number; nil where it is none.
  public static func keys(ofNumber number: UInt64) -> ClosedRange<Int64>? {
    guard number >> 53 == 0 else { return nil }
    let first = Int64(bitPattern: number << 11)
    return first...(first | 0x7FF)
  }

  /// Appends the push key of a message on a device, forty hexadecimal digits: the message's key, and what tells the device's from others'.
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

  /// The message's key in a push key; nil where the text is none.
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
