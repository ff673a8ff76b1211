/// Names one request on one device, so that every attempt, of whichever worker, carries the same `apns-id`: the UUID version 5
/// of message id, NUL and token (F-34). Apps can tell a repeated push by it; Apple promises nothing of the kind.
public struct DeviceIdentity: Sendable {
  private let prefix: SHA1

  /// Made once per request; the message id is hashed once however many devices follow.
  public init(messageID: [UInt8]) {
    var hash = Self.namespaceState
    hash.append(messageID)
    hash.append(0)
    prefix = hash
  }

  /// 36 bytes, canonical and lower case.
  public func apnsID(token: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    appendAPNsID(token: token, to: &text)
    return text
  }

  public func appendAPNsID(token: [UInt8], to text: inout [UInt8]) {
    var hash = prefix
    hash.append(token)
    let (a, b, c, d, _) = hash.finish()
    UUIDText.append(high: UInt64(a) &<< 32 | UInt64(b), low: UInt64(c) &<< 32 | UInt64(d), version: 5, to: &text)
  }

  public static func apnsID(messageID: [UInt8], token: [UInt8]) -> [UInt8] {
    DeviceIdentity(messageID: messageID).apnsID(token: token)
  }

  /// `7f1d0c52-6a39-4e0b-9d27-c4b58e3a16f0`: never to change, or redelivered requests would change their names.
  static let namespace: [UInt8] = [
    0x7F, 0x1D, 0x0C, 0x52, 0x6A, 0x39, 0x4E, 0x0B, 0x9D, 0x27, 0xC4, 0xB5, 0x8E, 0x3A, 0x16, 0xF0,
  ]

  private static let namespaceState: SHA1 = {
    var hash = SHA1()
    hash.append(namespace)
    return hash
  }()
}
