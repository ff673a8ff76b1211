/// Gives one request on one device the same `apns-id` in every attempt and worker: the UUID version 5 of the token, in the
/// namespace of the UUID version 5 of the message id. Apps can recognise a repeated push by it; Apple doesn't.
///
/// A token of lower-case hexadecimal digits is hashed as the bytes it encodes: one block instead of two, which saves a
/// twentieth of the cost of a push.
public struct DeviceIdentity: Sendable {
  private let namespace: (high: UInt64, low: UInt64)

  /// Hashes the message id once for all devices of a request.
  public init(messageID: borrowing [UInt8]) {
    var hash = Self.namespaceState
    hash.append(messageID.span)
    let (a, b, c, d, _) = hash.finish()
    namespace = UUIDText.marked(high: UInt64(a) &<< 32 | UInt64(b), low: UInt64(c) &<< 32 | UInt64(d), version: 5)
  }

  public func apnsID(token: Span<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    appendAPNsID(token: token, to: &text)
    return text
  }

  public func appendAPNsID(token: Span<UInt8>, to text: inout [UInt8]) {
    var hash = begun()
    if !Self.append(digits: token, to: &hash) {
      hash = begun()
      hash.append(token)
    }
    let (a, b, c, d, _) = hash.finish()
    UUIDText.append(high: UInt64(a) &<< 32 | UInt64(b), low: UInt64(c) &<< 32 | UInt64(d), version: 5, to: &text)
  }

  public static func apnsID(messageID: [UInt8], token: [UInt8]) -> [UInt8] {
    DeviceIdentity(messageID: messageID).apnsID(token: token.span)
  }

  /// The hash after the namespace.
  @inline(__always)
  private func begun() -> SHA1 {
    var hash = SHA1()
    hash.append(word: UInt32(truncatingIfNeeded: namespace.high &>> 32))
    hash.append(word: UInt32(truncatingIfNeeded: namespace.high))
    hash.append(word: UInt32(truncatingIfNeeded: namespace.low &>> 32))
    hash.append(word: UInt32(truncatingIfNeeded: namespace.low))
    return hash
  }

  /// Decodes eight digits at a time. False if the count isn't a multiple of eight or a byte isn't one of 0–9 and a–f.
  private static func append(digits: Span<UInt8>, to hash: inout SHA1) -> Bool {
    guard digits.count & 7 == 0, !digits.isEmpty else { return false }
    var index = 0
    while index < digits.count {
      let text = Bytes.word(digits, at: index).byteSwapped
      // Letters have bit 6. Encoding the values again must give the same text.
      let values = (text & 0x0F0F_0F0F_0F0F_0F0F) &+ 9 &* (text &>> 6 & 0x0101_0101_0101_0101)
      let letters = (values &+ 0x0606_0606_0606_0606) &>> 4 & 0x0101_0101_0101_0101
      guard values & 0xF0F0_F0F0_F0F0_F0F0 == 0, text == values &+ 0x3030_3030_3030_3030 &+ 0x27 &* letters else {
        return false
      }
      let pairs = (values | values &>> 4) & 0x00FF_00FF_00FF_00FF
      let quads = (pairs | pairs &>> 8) & 0x0000_FFFF_0000_FFFF
      hash.append(word: UInt32(truncatingIfNeeded: quads | quads &>> 16))
      index &+= 8
    }
    return true
  }

  /// `7f1d0c52-6a39-4e0b-9d27-c4b58e3a16f0`. Must never change: redelivered requests would get other ids.
  static let ofAllMessages: [UInt8] = [
    0x7F, 0x1D, 0x0C, 0x52, 0x6A, 0x39, 0x4E, 0x0B, 0x9D, 0x27, 0xC4, 0xB5, 0x8E, 0x3A, 0x16, 0xF0,
  ]

  private static let namespaceState: SHA1 = {
    var hash = SHA1()
    hash.append(ofAllMessages.span)
    return hash
  }()
}
