import PushCore

/// Devices of web push.
extension Registration {
  /// Nil for other platforms.
  public var subscription: WebPushSubscription? { platform == .webpush ? WebPushSubscription(token: token) : nil }

  /// The id of the VAPID key that the subscription was made with, 8 bytes; nil if it isn't known, or for other platforms.
  public var keyID: [UInt8]? { platform == .webpush ? Self.keyID(of: token) : nil }

  private static func keyID(of token: [UInt8]) -> [UInt8]? {
    let id = WebPushSubscription.keyID(of: token[...])
    return id.allSatisfy { $0 == 0 } ? nil : Array(id)
  }

  /// The part of the token that distinguishes the device from others of its application and platform.
  public var identity: [UInt8] { Array(platform.identity(of: token[...])) }

  /// The token to store. A subscription that names no VAPID key keeps the one that the registry knows.
  /// - Parameter former: the token that the registry has for the same device; empty if it has none.
  func token(after former: [UInt8] = []) -> [UInt8] {
    subscription?.token(keyID: keyID ?? Self.keyID(of: former) ?? newKeyID) ?? token
  }
}
