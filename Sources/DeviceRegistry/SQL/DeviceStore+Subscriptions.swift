import PushCore

/// The key of a device's row. For web push, the token may have the endpoint alone, or other keys than the row.
struct TokenKey: Hashable {
  let app: Int64
  let platform: Platform
  var token: [UInt8]

  /// The first three parameters of a look-up by token.
  var values: [SQLValue] { [.int(app), .int(platform), .blob(token)] }
}

/// A subscription to web push is the same device as long as its endpoint is the same.
extension DeviceStore {
  /// Gives web push the tokens that the registry has for their endpoints, present or replaced. Other tokens stay as they are.
  func stored(_ keys: [TokenKey]) throws(RegistryError) -> [TokenKey] {
    let subscriptions = keys.indices.filter { keys[$0].platform == .webpush }
    guard !subscriptions.isEmpty else { return keys }
    let bounds = subscriptions.map { Self.bounds(of: keys[$0]) }
    let tokens = try session.ofEach(SQL.tokenOfEndpoint, bounds) { $0.optionalBytes(0) }
    var keys = keys
    for (index, token) in zip(subscriptions, tokens) { if let token { keys[index].token = token } }
    return keys
  }

  /// The tokens of an endpoint begin with it and a zero byte, which no endpoint has.
  private static func bounds(of key: TokenKey) -> [SQLValue] {
    let endpoint = Array(WebPushSubscription.endpoint(of: key.token[...]))
    return [.int(key.app), .blob(endpoint + [0]), .blob(endpoint + [1])]
  }

  /// Renews a device's token if the subscription has other keys now.
  func renewSubscription(_ device: Found, _ former: TokenKey, _ token: [UInt8]) throws(RegistryError) {
    guard former.token != token else { return }
    try session.run(SQL.renewToken, [.int(device.id), .blob(token)])
  }
}

extension SQL {
  private static let webpush = Platform.webpush.rawValue
  /// SQLite takes the tables of a cross join in their order. Otherwise it would begin with all devices of the application.
  static let tokenOfEndpoint = Statement(
    rows: """
      SELECT COALESCE(
        (SELECT d.token FROM devices d WHERE d.app = ?1 AND d.platform = \(webpush) AND d.token >= ?2 AND d.token < ?3 LIMIT 1),
        (SELECT a.token FROM aliases a CROSS JOIN devices d
         WHERE d.id = a.device AND d.app = ?1 AND a.platform = \(webpush) AND a.token >= ?2 AND a.token < ?3 ORDER BY a.replaced_at DESC LIMIT 1))
      """, .int, .blob, .blob)
  static let renewToken = Statement("UPDATE devices SET token = ?2 WHERE id = ?1")
}
