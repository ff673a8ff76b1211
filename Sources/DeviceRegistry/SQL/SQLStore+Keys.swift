import PushCore

/// Who may come in by the gateway: keys of backends, secrets of devices. Both as hashes.
extension SQLStore {
  func createKey(_ key: GatewayKey) throws(RegistryError) {
    try transaction(.devices) { () throws(RegistryError) -> Void in
      try session.run(
        SQL.insertKey,
        [
          .text(key.id), .blob(key.hash), .text(Array(key.apps.joined(separator: [0x2C]))),
          .text(Array(key.rights.map(\.rawValue).sorted().joined(separator: ",").utf8)), .int(key.rate), .int(key.createdAt),
          .text(key.sender), .int(key.environment.map { Int64($0.rawValue) }), .blob(key.account?.publicKey),
          .text(key.account?.tokenURI),
        ])
    }
  }

  func keys() throws(RegistryError) -> [GatewayKey] {
    var keys: [GatewayKey] = []
    try session.run(SQL.keys, []) { row in keys.append(Self.key(row)) }
    return keys
  }

  func key(_ id: [UInt8]) throws(RegistryError) -> GatewayKey? {
    var key: GatewayKey?
    try session.run(SQL.keyByID, [.text(id)]) { row in key = Self.key(row) }
    return key
  }

  private static func key(_ row: Session.Row) -> GatewayKey {
    let words = String(decoding: row.bytes(3), as: UTF8.self).split(separator: ",").map(String.init)
    var key = GatewayKey(
      id: row.bytes(0), hash: row.bytes(1), apps: row.bytes(2).split(separator: 0x2C).map(Array.init),
      rights: Set(words.compactMap(KeyRight.init(rawValue:))), rate: row.optionalInt(4), createdAt: row.int(5))
    key.usedAt = row.optionalInt(6)
    key.revokedAt = row.optionalInt(7)
    key.sender = row.optionalBytes(8)
    key.environment = row.optionalInt(9).flatMap { DeviceEnvironment(rawValue: UInt8(truncatingIfNeeded: $0)) }
    if let publicKey = row.optionalBytes(10), let tokenURI = row.optionalBytes(11) {
      key.account = GatewayAccount(publicKey: publicKey, tokenURI: tokenURI)
    }
    return key
  }

  func revokeKey(_ id: [UInt8], now: Int64) throws(RegistryError) -> Bool {
    try transaction(.devices) { () throws(RegistryError) in
      try session.run(SQL.revokeKey, [.text(id), .int(now)]) > 0
    }
  }

  func keyUsed(_ id: [UInt8], now: Int64) throws(RegistryError) {
    try transaction(.devices) { () throws(RegistryError) -> Void in try session.run(SQL.keyUsed, [.text(id), .int(now)]) }
  }

  func secret(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> [UInt8]? {
    var hash: [UInt8]?
    try session.run(SQL.secret, [.text(app), .text(installation)]) { row in hash = row.bytes(0) }
    return hash
  }

  func setSecret(
    _ hash: [UInt8], ofInstallation installation: [UInt8], app: [UInt8], replacing: Bool, now: Int64
  ) throws(RegistryError) -> Bool {
    try transaction(.devices) { () throws(RegistryError) in
      let values: [SQLValue] = [.text(app), .text(installation), .blob(hash), .int(now)]
      return try session.run(replacing ? SQL.replaceSecret : SQL.insertSecret, values) > 0
    }
  }

  func removeSecret(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> Bool {
    try transaction(.devices) { () throws(RegistryError) in
      try session.run(SQL.removeSecret, [.text(app), .text(installation)]) > 0
    }
  }

  func purgeSecrets(before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(.devices) { () throws(RegistryError) in
      try session.run(SQL.purgeSecrets, [.int(before), .int(Int64(limit))])
    }
  }
}

extension SQL {
  static let insertKey = Statement(
    """
    INSERT INTO gateway_keys (id, hash, apps, rights, rate, created_at, sender, environment, public_key, token_uri)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    """)
  private static let columns =
    """
    SELECT id, hash, apps, rights, rate, created_at, used_at, revoked_at, sender, environment, public_key, token_uri
    FROM gateway_keys
    """
  static let keys = Statement("\(columns) ORDER BY created_at, id")
  static let keyByID = Statement("\(columns) WHERE id = ?1")
  static let revokeKey = Statement("UPDATE gateway_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL")
  static let keyUsed = Statement("UPDATE gateway_keys SET used_at = ?2 WHERE id = ?1 AND (used_at IS NULL OR used_at < ?2)")
  static let secret = Statement("SELECT hash FROM device_secrets WHERE app = ?1 AND installation = ?2")
  static let insertSecret = Statement(
    """
    INSERT INTO device_secrets (app, installation, hash, created_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (app, installation) DO NOTHING
    """)
  static let replaceSecret = Statement(
    """
    INSERT INTO device_secrets (app, installation, hash, created_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (app, installation) DO UPDATE SET hash = excluded.hash, created_at = excluded.created_at
    """)
  static let removeSecret = Statement("DELETE FROM device_secrets WHERE app = ?1 AND installation = ?2")
  /// Of installations that are registered no more.
  static let purgeSecrets = Statement(
    """
    DELETE FROM device_secrets WHERE (app, installation) IN (
      SELECT s.app, s.installation FROM device_secrets s
      WHERE s.created_at < ?1 AND NOT EXISTS (
        SELECT 1 FROM devices d JOIN apps a ON a.id = d.app WHERE a.name = s.app AND d.installation = s.installation)
      LIMIT ?2)
    """)
}
