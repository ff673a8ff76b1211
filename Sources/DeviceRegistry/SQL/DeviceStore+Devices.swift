import PushCore

/// The key of a device's row. For web push, the token may have the endpoint alone, or other keys than the row.
struct TokenKey: Hashable {
  let app: Int64
  let platform: Platform
  var token: [UInt8]

  /// The first three parameters of a look-up by token.
  var values: [SQLValue] { [.int(app), .int(platform), .blob(token)] }
}

extension DeviceStore {
  /// The values of a statement, and the index of the question that they answer.
  typealias Asked = (index: Int, values: [SQLValue])

  struct Found {
    let key: RegistryKey
    var id: Int64 { key.id }
    let user: Int64?
    let state: DeviceState
    /// Empty if there is none.
    let sender: [UInt8]
    /// Unix milliseconds.
    let registeredAt: Int64
    let goneAt: Int64?
    let kind: TokenKind
    /// The activity of a live activity's token; otherwise empty.
    let activity: [UInt8]
    let installation: [UInt8]?
    /// The device whose notes and badge count. Devices of an installation share it.
    let counter: Int64

    init(_ row: SQLRow) {
      key = row.key()
      user = row.optionalInt(2)
      state = row.state(3)
      sender = row.bytes(4)
      registeredAt = row.int(5)
      goneAt = row.optionalInt(6)
      kind = row.kind(7)
      activity = row.bytes(8)
      installation = row.optionalBytes(9)
      counter = row.int(10)
    }
  }

  /// The devices of a reference: at most one, except for an installation.
  func found(_ reference: DeviceReference, _ app: Int64) throws(RegistryError) -> [Found] {
    if case .installation(let name) = reference {
      return try session.all(SQL.devicesByInstallation, [.int(app), .text(name)], Found.init)
    }
    return try found([reference], app).compactMap(\.self)
  }

  func found(_ references: [DeviceReference], _ app: Int64) throws(RegistryError) -> [Found?] {
    try found(references.map { ($0, app) }, withReplaced: false)
  }

  /// The devices of many references, in few round trips. Of an installation, only the first device.
  /// - Parameter withReplaced: true to find also a device whose former token is named.
  func found(_ references: [(DeviceReference, Int64)], withReplaced: Bool) throws(RegistryError) -> [Found?] {
    var result = [Found?](repeating: nil, count: references.count)
    var tokens: [(index: Int, key: TokenKey)] = []
    var (byKey, byInstallation): ([Asked], [Asked]) = ([], [])
    for (index, (device, app)) in references.enumerated() {
      switch device {
      case .token(let platform, let token): tokens.append((index, TokenKey(app: app, platform: platform, token: token)))
      case .registration(let text):
        if let key = RegistryKey(text, .registration) { byKey.append((index, [.int(key.id), .int(key.salt), .int(app)])) }
      case .installation(let name): byInstallation.append((index, [.int(app), .text(name)]))
      case .invalid: continue
      }
    }
    let byToken = zip(tokens, try stored(tokens.map(\.key))).map { ($0.index, $1.values) }
    try fill(&result, SQL.deviceByToken, byToken)
    if withReplaced { try fill(&result, SQL.deviceByReplacedToken, byToken) }
    try fill(&result, SQL.deviceByKey, byKey)
    try fill(&result, SQL.deviceByAlias, byKey)
    try fill(&result, SQL.firstOfInstallation, byInstallation)
    return result
  }

  private func fill(_ result: inout [Found?], _ statement: Statement, _ asked: [Asked]) throws(RegistryError) {
    let missing = asked.filter { result[$0.index] == nil }
    let found = try session.ofEach(statement, missing.flatMap(\.values), Found.init)
    for (place, device) in zip(missing, found) { result[place.index] = device }
  }

  // MARK: Web push

  /// Gives web push the tokens that the registry has for their endpoints, present or replaced. Other tokens stay as they are.
  func stored(_ keys: [TokenKey]) throws(RegistryError) -> [TokenKey] {
    let subscriptions = keys.indices.filter { keys[$0].platform == .webpush }
    guard !subscriptions.isEmpty else { return keys }
    let bounds = subscriptions.flatMap { Self.bounds(of: keys[$0]) }
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
}

extension SQL {
  private static let foundColumns =
    """
    SELECT d.id, d.salt, d.user_id, d.state, d.sender, d.registered_at, d.gone_at, d.kind, d.activity, d.installation,
      \(counterOfDevice)
    """
  static let deviceByToken = Statement(
    "\(foundColumns) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3")
  static let deviceByReplacedToken = Statement("\(foundColumns) \(byReplacedToken)")
  static let deviceByKey = Statement("\(foundColumns) FROM devices d WHERE d.id = ?1 AND d.salt = ?2 AND d.app = ?3")
  static let deviceByAlias = Statement(
    "\(foundColumns) FROM aliases a JOIN devices d ON d.id = a.device WHERE a.id = ?1 AND a.salt = ?2 AND d.app = ?3")
  static let devicesByInstallation = Statement("\(foundColumns) FROM devices d WHERE d.app = ?1 AND d.installation = ?2")
  static let firstOfInstallation = Statement(
    "\(foundColumns) FROM devices d WHERE d.app = ?1 AND d.installation = ?2 ORDER BY d.id LIMIT 1")
  private static let webpush = Platform.webpush.rawValue
  /// SQLite takes the tables of a cross join in their order. Otherwise it would begin with all devices of the application.
  static let tokenOfEndpoint = Statement(
    rows: """
      SELECT COALESCE(
        (SELECT d.token FROM devices d WHERE d.app = ?1 AND d.platform = \(webpush) AND d.token >= ?2 AND d.token < ?3 LIMIT 1),
        (SELECT a.token FROM aliases a CROSS JOIN devices d
         WHERE d.id = a.device AND d.app = ?1 AND a.platform = \(webpush) AND a.token >= ?2 AND a.token < ?3 ORDER BY a.replaced_at DESC LIMIT 1))
      """, [.int, .blob, .blob])
  static let renewToken = Statement("UPDATE devices SET token = ?2 WHERE id = ?1")
}
