import DeviceRegistry
import TLS

/// What the token endpoint gives out for a service account's key: `pf1t~<the key's id>~<end>~<HMAC>`. The HMAC's key is the hash that the
/// registry has of the key, so that each gateway can judge it, nothing is kept of it, and who revokes the key ends it.
struct AccessToken {
  /// Seconds.
  static let lifetime: Int64 = 3_600
  private static let prefix = Array("pf1t".utf8)

  let keyID: [UInt8]
  /// Unix seconds.
  private let end: Int64
  private let code: [UInt8]

  /// - Parameter now: unix seconds.
  init(for key: GatewayKey, at now: Int64) {
    keyID = key.id
    end = now + Self.lifetime
    code = Self.code(keyID, end, key.hash)
  }

  /// Nil where the text can't be one.
  init?(_ text: [UInt8]) {
    guard text.count <= 128, text.starts(with: Self.prefix) else { return nil }
    let parts = text.split(separator: 0x7E, omittingEmptySubsequences: false).map(Array.init)
    guard parts.count == 4, parts[0] == Self.prefix, NewSecret.isID(parts[1]), parts[2].count <= 12,
      let end = Int64(String(decoding: parts[2], as: UTF8.self))
    else { return nil }
    (keyID, self.end, code) = (parts[1], end, parts[3])
  }

  var text: [UInt8] { Self.start(keyID, end) + [0x7E] + code }

  func isGood(for key: GatewayKey, at now: Int64) -> Bool {
    // A key that is shown as a text has no tokens: who reads its hash could make some.
    key.account != nil && Digest.areEqual(code, Self.code(keyID, end, key.hash)) && now < end
  }

  private static func start(_ id: [UInt8], _ end: Int64) -> [UInt8] { prefix + [0x7E] + id + [0x7E] + Array(String(end).utf8) }

  private static func code(_ id: [UInt8], _ end: Int64, _ hash: [UInt8]) -> [UInt8] {
    Base64URL.encode(Digest.authenticator(of: start(id, end), key: hash))
  }
}
