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

  private func records(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> [DeviceRecord] {
    var records: [DeviceRecord] = []
    try session.run(statement, values) { row in
      var device = Registration(
        app: row.bytes(8), platform: Platform(rawValue: UInt8(truncatingIfNeeded: row.int(3))) ?? .apns, token: row.bytes(6))
      device.environment = DeviceEnvironment(rawValue: UInt8(truncatingIfNeeded: row.int(4)))
      if device.environment == .unspecified { device.environment = nil }
      let sender = row.bytes(7)
      device.sender = sender.isEmpty ? nil : sender
      device.installation = row.optionalBytes(9)
      device.user = row.optionalBytes(10)
      device.name = row.optionalBytes(11)
      device.locale = row.optionalBytes(12)
      device.timeZone = row.optionalBytes(13)
      device.appVersion = row.optionalBytes(14)
      device.registeredAt = row.int(2)
      records.append(
        DeviceRecord(
          id: row.int(0), registration: RegistryKey(id: row.int(0), salt: row.int(1)).registration, device: device,
          state: DeviceState(rawValue: UInt8(truncatingIfNeeded: row.int(5))) ?? .gone, reason: row.optionalBytes(15),
          registeredAt: row.int(2), lastSeen: row.int(16)))
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
      d.time_zone, d.app_version, d.reason, d.last_seen
    FROM devices d LEFT JOIN users u ON u.id = d.user_id
    """
  static let recordByID = Statement("\(recordQuery) WHERE d.id = ?1")
  static let records = Statement("\(recordQuery) WHERE d.id > ?1 ORDER BY d.id LIMIT ?2")
  static let recordsOfApp = Statement("\(recordQuery) WHERE d.id > ?1 AND d.app = ?3 ORDER BY d.id LIMIT ?2")
  static let topicsOfDevice = Statement(
    "SELECT t.name FROM members m JOIN topics t ON t.id = m.topic WHERE m.device = ?1 ORDER BY t.name")
  static let analyze = Statement("ANALYZE")
}
