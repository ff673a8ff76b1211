import PushCore

/// Finding the devices that a change names.
extension SQLStore {
  /// A device as changes need it.
  struct Found {
    let id: Int64
    let salt: Int64
    let user: Int64?
    let state: DeviceState
    /// Empty for none.
    let sender: [UInt8]
    /// Unix milliseconds.
    let registeredAt: Int64
    let goneAt: Int64?
    let kind: TokenKind
    /// Of a live activity's token; empty for others.
    let activity: [UInt8]
    let installation: [UInt8]?
    /// Whose notes and badge are its own.
    let counter: Int64
  }

  /// The devices a reference names: at most one, except for an installation.
  func found(_ reference: DeviceReference, _ app: Int64) throws(RegistryError) -> [Found] {
    switch reference {
    case .token(let platform, let token):
      return try read(SQL.deviceByToken, [.int(app), .int(Int64(platform.rawValue)), .blob(token)])
    case .registration(let text):
      guard let key = RegistryKey(text, .registration) else { return [] }
      let direct = try read(SQL.deviceByKey, [.int(key.id), .int(key.salt), .int(app)])
      return direct.isEmpty ? try read(SQL.deviceByAlias, [.int(key.id), .int(key.salt), .int(app)]) : direct
    case .installation(let installation):
      return try read(SQL.devicesByInstallation, [.int(app), .text(installation)])
    case .invalid: return []
    }
  }

  /// As `found`, for many, in few round trips; an installation isn't expected here.
  func found(_ references: [DeviceReference], _ app: Int64) throws(RegistryError) -> [Found?] {
    var result = [Found?](repeating: nil, count: references.count)
    var byToken: [(Int, [SQLValue])] = []
    var byKey: [(Int, [SQLValue])] = []
    for (index, reference) in references.enumerated() {
      switch reference {
      case .token(let platform, let token):
        byToken.append((index, [.int(app), .int(Int64(platform.rawValue)), .blob(token)]))
      case .registration(let text):
        guard let key = RegistryKey(text, .registration) else { continue }
        byKey.append((index, [.int(key.id), .int(key.salt), .int(app)]))
      case .installation, .invalid: continue
      }
    }
    try fill(&result, SQL.deviceByToken, byToken)
    try fill(&result, SQL.deviceByKey, byKey)
    try fill(&result, SQL.deviceByAlias, byKey.filter { result[$0.0] == nil })
    return result
  }

  private func fill(
    _ result: inout [Found?], _ statement: Statement, _ asked: [(Int, [SQLValue])]
  ) throws(RegistryError) {
    guard !asked.isEmpty else { return }
    var rows: [(Int, Found)] = []
    try session.runEach(statement, asked.map(\.1)) { index, row in rows.append((asked[index].0, Self.found(row))) }
    for (index, device) in rows { result[index] = device }
  }

  private func read(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> [Found] {
    var result: [Found] = []
    try session.run(statement, values) { row in result.append(Self.found(row)) }
    return result
  }

  static func found(_ row: Session.Row) -> Found {
    Found(
      id: row.int(0), salt: row.int(1), user: row.optionalInt(2),
      state: DeviceState(rawValue: UInt8(truncatingIfNeeded: row.int(3))) ?? .gone, sender: row.bytes(4),
      registeredAt: row.int(5), goneAt: row.optionalInt(6),
      kind: TokenKind(rawValue: UInt8(truncatingIfNeeded: row.int(7))) ?? .alert,
      activity: row.bytes(8), installation: row.optionalBytes(9), counter: row.int(10))
  }
}

extension SQL {
  private static let foundColumns =
    """
    d.id, d.salt, d.user_id, d.state, d.sender, d.registered_at, d.gone_at, d.kind, d.activity, d.installation,
    \(counterOfDevice)
    """
  static let deviceByToken = Statement(
    "SELECT \(foundColumns) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3")
  static let deviceByKey = Statement("SELECT \(foundColumns) FROM devices d WHERE d.id = ?1 AND d.salt = ?2 AND d.app = ?3")
  static let deviceByAlias = Statement(
    """
    SELECT \(foundColumns) FROM aliases a JOIN devices d ON d.id = a.device
    WHERE a.id = ?1 AND a.salt = ?2 AND d.app = ?3
    """)
  static let devicesByInstallation = Statement(
    "SELECT \(foundColumns) FROM devices d WHERE d.app = ?1 AND d.installation = ?2")
}
