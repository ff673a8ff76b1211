import PushCore

/// The gateway's keys of backends and secrets of devices, both as hashes.
extension DeviceStore {
  func createKey(_ key: GatewayKey) throws(RegistryError) {
    try session.run(
      SQL.insertKey,
      [
        .text(key.id), .blob(key.hash), .text(Array(key.apps.joined(separator: [0x2C]))),
        .text(Array(key.rightNames.joined(separator: [0x2C]))), .int(key.rate), .int(key.createdAt),
        .text(key.sender), .int(key.environment), .blob(key.account?.publicKey), .text(key.account?.tokenURI),
        .text(key.name),
      ])
  }

  public func keys() throws(RegistryError) -> [GatewayKey] { try session.all(SQL.keys, [], Self.key) }

  public func key(_ id: [UInt8]) throws(RegistryError) -> GatewayKey? {
    try session.first(SQL.keyByID, [.text(id)], Self.key)
  }

  private static func key(_ row: SQLRow) -> GatewayKey {
    let words = String(decoding: row.bytes(3), as: UTF8.self).split(separator: ",").map(String.init)
    var key = GatewayKey(
      id: row.bytes(0), hash: row.bytes(1), apps: row.bytes(2).split(separator: 0x2C).map(Array.init),
      rights: Set(words.compactMap(KeyRight.init(rawValue:))), rate: row.optionalInt(4), createdAt: row.int(5))
    key.usedAt = row.optionalInt(6)
    key.revokedAt = row.optionalInt(7)
    key.sender = row.optionalBytes(8)
    key.name = row.optionalBytes(12)
    key.environment = row.isNull(9) ? nil : row.environment(9)
    if let publicKey = row.optionalBytes(10), let tokenURI = row.optionalBytes(11) {
      key.account = GatewayAccount(publicKey: publicKey, tokenURI: tokenURI)
    }
    return key
  }

  /// False if the key doesn't exist or was already revoked.
  func revokeKey(_ id: [UInt8], now: Int64) throws(RegistryError) -> Bool {
    try session.run(SQL.revokeKey, [.text(id), .int(now)]) > 0
  }

  public func keyUsed(_ id: [UInt8], now: Int64) throws(RegistryError) {
    try write(.devices, SQL.keyUsed, [.text(id), .int(now)])
  }

  public func secret(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> [UInt8]? {
    try session.first(SQL.secret, [.text(app), .text(installation)]) { $0.bytes(0) }
  }

  /// False if the installation has a secret that may not be replaced.
  public func setSecret(
    _ hash: [UInt8], ofInstallation installation: [UInt8], app: [UInt8], replacing: Bool, now: Int64
  ) throws(RegistryError) -> Bool {
    let values: [SQLValue] = [.text(app), .text(installation), .blob(hash), .int(now)]
    return try write(.devices, replacing ? SQL.replaceSecret : SQL.insertSecret, values) > 0
  }

  public func removeSecret(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> Bool {
    try write(.devices, SQL.removeSecret, [.text(app), .text(installation)]) > 0
  }
}

extension SQL {
  static let insertKey = Statement(
    """
    INSERT INTO gateway_keys (id, hash, apps, rights, rate, created_at, sender, environment, public_key, token_uri, name)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    """)
  private static let columns =
    """
    SELECT id, hash, apps, rights, rate, created_at, used_at, revoked_at, sender, environment, public_key, token_uri, name
    FROM gateway_keys
    """
  static let keys = Statement("\(columns) ORDER BY created_at, id")
  static let keyByID = Statement("\(columns) WHERE id = ?1")
  static let revokeKey = Statement("UPDATE gateway_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL")
  static let keyUsed = Statement("UPDATE gateway_keys SET used_at = ?2 WHERE id = ?1 AND (used_at IS NULL OR used_at < ?2)")
  static let secret = Statement("SELECT hash FROM device_secrets WHERE app = ?1 AND installation = ?2")
  private static let secretInsert =
    "INSERT INTO device_secrets (app, installation, hash, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (app, installation) DO"
  static let insertSecret = Statement("\(secretInsert) NOTHING")
  static let replaceSecret = Statement(
    "\(secretInsert) UPDATE SET hash = excluded.hash, created_at = excluded.created_at")
  static let removeSecret = Statement("DELETE FROM device_secrets WHERE app = ?1 AND installation = ?2")
  static let purgeSecrets = Statement(
    """
    DELETE FROM device_secrets WHERE (app, installation) IN (
      SELECT s.app, s.installation FROM device_secrets s
      WHERE s.created_at < ?1 AND NOT EXISTS (
        SELECT 1 FROM devices d JOIN apps a ON a.id = d.app WHERE a.name = s.app AND d.installation = s.installation)
      LIMIT ?2)
    """)
}
