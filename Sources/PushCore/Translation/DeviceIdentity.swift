/// Names one request on one device, so that every attempt, of whichever worker, carries the same `apns-id`: the UUID version 5
/// of the token in the namespace that the message id is, by the same rule, in ours. Apps can tell a repeated push by it;
/// Apple promises nothing of the kind.
///
/// A token of lower-case hexadecimal digits counts as the bytes that it spells: with them the hash has one block to go through
/// instead of two, which is a twentieth of all that a push costs.
public struct DeviceIdentity: Sendable {
  private let prefix: SHA1

  /// Made once per request; the message id is hashed once however many devices follow.
  public init(messageID: [UInt8]) {
    var hash = Self.namespaceState
    hash.append(messageID.span)
    let (a, b, c, d, _) = hash.finish()
    let (high, low) = UUIDText.marked(high: UInt64(a) &<< 32 | UInt64(b), low: UInt64(c) &<< 32 | UInt64(d), version: 5)
    var namespace = SHA1()
    for half in [high, low] {
      namespace.append(word: UInt32(truncatingIfNeeded: half &>> 32))
      namespace.append(word: UInt32(truncatingIfNeeded: half))
    }
    prefix = namespace
  }

  /// 36 bytes, canonical and lower case.
  public func apnsID(token: Span<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    appendAPNsID(token: token, to: &text)
    return text
  }

  public func appendAPNsID(token: Span<UInt8>, to text: inout [UInt8]) {
    var hash = prefix
    if !Self.append(digits: token, to: &hash) {
      hash = prefix
      hash.append(token)
    }
    let (a, b, c, d, _) = hash.finish()
    UUIDText.append(high: UInt64(a) &<< 32 | UInt64(b), low: UInt64(c) &<< 32 | UInt64(d), version: 5, to: &text)
  }

  public static func apnsID(messageID: [UInt8], token: [UInt8]) -> [UInt8] {
    DeviceIdentity(messageID: messageID).apnsID(token: token.span)
  }

  /// Eight digits at a time, one in each byte of a word. False when there are others among them, or too few for the last eight.
  private static func append(digits: Span<UInt8>, to hash: inout SHA1) -> Bool {
    guard digits.count & 7 == 0, !digits.isEmpty else { return false }
    var index = 0
    while index < digits.count {
      let eight = digits.extracting(index..<index &+ 8)
      var text: UInt64 = 0
      for place in 0..<8 { text = text &<< 8 | UInt64(eight[place]) }
      // Letters have bit 6; what a value spells must be what was there.
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

  /// `7f1d0c52-6a39-4e0b-9d27-c4b58e3a16f0`: never to change, or redelivered requests would change their names.
  static let namespace: [UInt8] = [
    0x7F, 0x1D, 0x0C, 0x52, 0x6A, 0x39, 0x4E, 0x0B, 0x9D, 0x27, 0xC4, 0xB5, 0x8E, 0x3A, 0x16, 0xF0,
  ]

  private static let namespaceState: SHA1 = {
    var hash = SHA1()
    hash.append(namespace.span)
    return hash
  }()
}
