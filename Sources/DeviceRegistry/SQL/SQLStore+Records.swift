import PushCore

/// Whole records, for commands and exports.
extension SQLStore {
  func device(_ reference: DeviceReference, app: [UInt8]) throws(RegistryError) -> [DeviceRecord] {
    guard let id = try knownApp(app) else { return [] }
    var ids: [Int64] = []
    for device in try found(reference, id) { ids.append(device.id) }
    var records: [DeviceRecord] = []
    for id in ids { records += try self.records(SQL.recordByID, [.int(id)]) }
    return records
  }

  func devices(app: [UInt8]?, after id: Int64, limit: Int) throws(RegistryError) -> [DeviceRecord] {
    guard let app else { return try records(SQL.records, [.int(id), .int(Int64(limit))]) }
    guard let number = try knownApp(app) else { return [] }
    return try records(SQL.recordsOfApp, [.int(id), .int(Int64(limit)), .int(number)])
  }

  func devices(
    app: [UInt8], in state: DeviceState, since: Int64, after id: Int64, limit: Int
  ) throws(RegistryError) -> [DeviceRecord] {
    guard let number = try knownApp(app) else { return [] }
    return try records(
      SQL.recordsInState, [.int(id), .int(Int64(limit)), .int(number), .int(Int64(state.rawValue)), .int(since)])
  }

  func deviceCounts(app: [UInt8]?) throws(RegistryError) -> [DeviceCount] {
    var counts: [DeviceCount] = []
    try session.run(SQL.deviceCounts, []) { row in
      guard app == nil || row.bytes(0) == app else { return }
      counts.append(
        DeviceCount(
          app: row.bytes(0), platform: Platform(rawValue: UInt8(truncatingIfNeeded: row.int(1))) ?? .apns,
          kind: TokenKind(rawValue: UInt8(truncatingIfNeeded: row.int(2))) ?? .alert,
          state: DeviceState(rawValue: UInt8(truncatingIfNeeded: row.int(3))) ?? .gone, count: row.int(4)))
    }
    return counts
  }

  func records(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> [DeviceRecord] {
    var records: [DeviceRecord] = []
    try session.run(statement, values) { row in
      var device = Registration(
        app: row.bytes(9), platform: Platform(rawValue: UInt8(truncatingIfNeeded: row.int(3))) ?? .apns, token: row.bytes(6))
      device.environment = DeviceEnvironment(rawValue: UInt8(truncatingIfNeeded: row.int(4)))
      if device.environment == .unspecified { device.environment = nil }
      let sender = row.bytes(7)
      device.sender = sender.isEmpty ? nil : sender
      device.installation = row.optionalBytes(10)
      device.user = row.optionalBytes(11)
      device.name = row.optionalBytes(12)
      device.locale = row.optionalBytes(13)
      device.timeZone = row.optionalBytes(14)
      device.appVersion = row.optionalBytes(15)
      device.registeredAt = row.int(2)
      let kind = TokenKind(rawValue: UInt8(truncatingIfNeeded: row.int(DeviceColumn.kind))) ?? .alert
      device.kind = kind == .alert ? nil : kind
      device.activity = kind == .liveActivity ? row.bytes(18) : nil
      records.append(
        DeviceRecord(
          id: row.int(0), registration: RegistryKey(id: row.int(0), salt: row.int(1)).registration, device: device,
          state: DeviceState(rawValue: UInt8(truncatingIfNeeded: row.int(5))) ?? .gone, reason: row.optionalBytes(16),
          registeredAt: row.int(2), lastSeen: row.int(17), markedAt: row.optionalInt(19)))
    }
    try session.runEach(SQL.topicsOfDevice, records.map { [.int($0.id)] }) { index, row in
      records[index].device.topics.append(row.bytes(0))
    }
    return records
  }

  func analyze() throws(RegistryError) { try session.run(SQL.analyze, []) }
}

extension SQL {
  private static let recordQuery =
    """
    SELECT \(DeviceColumn.list), (SELECT a.name FROM apps a WHERE a.id = d.app), d.installation, u.name, u.display, d.locale,
      d.time_zone, d.app_version, d.reason, d.last_seen, d.activity,
      CASE d.state WHEN 0 THEN NULL WHEN 2 THEN d.gone_at ELSE COALESCE(d.marked_at, d.last_seen) END
    FROM devices d LEFT JOIN users u ON u.id = d.user_id
    """
  static let recordByID = Statement("\(recordQuery) WHERE d.id = ?1")
  static let recordsOfUser = Statement("\(recordQuery) WHERE d.user_id = ?1 ORDER BY d.id LIMIT ?2")
  static let records = Statement("\(recordQuery) WHERE d.id > ?1 ORDER BY d.id LIMIT ?2")
  static let recordsOfApp = Statement("\(recordQuery) WHERE d.id > ?1 AND d.app = ?3 ORDER BY d.id LIMIT ?2")
  static let recordsInState = Statement(
    """
    \(recordQuery) WHERE d.id > ?1 AND d.app = ?3 AND d.state <> 0 AND d.state = ?4
      AND COALESCE(CASE WHEN d.state = 2 THEN d.gone_at ELSE d.marked_at END, d.last_seen) >= ?5
    ORDER BY d.id LIMIT ?2
    """)
  static let deviceCounts = Statement(
    """
    SELECT a.name, d.platform, d.kind, d.state, count(*) FROM devices d JOIN apps a ON a.id = d.app
    GROUP BY a.name, d.platform, d.kind, d.state ORDER BY a.name, d.platform, d.kind, d.state
    """)
  static let topicsOfDevice = Statement(
    "SELECT t.name FROM members m JOIN topics t ON t.id = m.topic WHERE m.device = ?1 ORDER BY t.name")
  static let analyze = Statement("ANALYZE")
}
