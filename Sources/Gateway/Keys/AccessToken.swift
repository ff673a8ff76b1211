import DeviceRegistry
import PushCore
import Wire

/// The token endpoint's token for a service account's key: `pf1t~<the key's id>~<end>~<HMAC>`. The HMAC's key is the registry's
/// hash of the key. So each gateway can verify the token without storing it, and it ends when the key is revoked.
struct AccessToken {
  static let lifetime: Int64 = 3_600
  private static let prefix = Array("pf1t".utf8)

  let keyID: [UInt8]
  private let end: Int64
  private let code: [UInt8]

  /// - Parameter now: Unix seconds.
  init(for key: GatewayKey, at now: Int64) {
    keyID = key.id
    end = now + Self.lifetime
    code = Self.code(keyID, end, key.hash)
  }

  /// Nil if the text has another form.
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
    // Only keys of service accounts have tokens. For a text key, anybody who can read its hash could make tokens.
    key.account != nil && Digest.areEqual(code, Self.code(keyID, end, key.hash)) && now < end
  }

  private static func start(_ id: [UInt8], _ end: Int64) -> [UInt8] { prefix + [0x7E] + id + [0x7E] + Array(String(end).utf8) }

  private static func code(_ id: [UInt8], _ end: Int64, _ hash: [UInt8]) -> [UInt8] {
    Base64URL.encode(Digest.authenticator(of: start(id, end), key: hash))
  }
}
