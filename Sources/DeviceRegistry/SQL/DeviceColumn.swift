import PushCore

/// The order in which every statement that reads ``DeviceRows`` names its columns.
enum DeviceColumn {
  static let id = 0
  static let salt = 1
  static let registeredAt = 2
  static let platform = 3
  static let environment = 4
  static let state = 5
  static let token = 6
  static let sender = 7
  static let kind = 8
  static let list = "d.id, d.salt, d.registered_at, d.platform, d.environment, d.state, d.token, d.sender, d.kind"
  /// The first beyond them.
  static let next = 9
}

extension DeviceRows {
  mutating func append(_ row: some SQLRow) {
    append { arena, start in
      let tokenCount = row.append(DeviceColumn.token, to: &arena)
      let senderCount = row.append(DeviceColumn.sender, to: &arena)
      return DeviceRow(
        id: row.int(DeviceColumn.id), salt: row.int(DeviceColumn.salt), registeredAt: row.int(DeviceColumn.registeredAt),
        start: start, tokenCount: UInt16(truncatingIfNeeded: tokenCount), senderCount: UInt16(truncatingIfNeeded: senderCount),
        platform: Platform(rawValue: UInt8(truncatingIfNeeded: row.int(DeviceColumn.platform))) ?? .apns,
        environment: DeviceEnvironment(rawValue: UInt8(truncatingIfNeeded: row.int(DeviceColumn.environment))) ?? .unspecified,
        state: DeviceState(rawValue: UInt8(truncatingIfNeeded: row.int(DeviceColumn.state))) ?? .gone,
        kind: TokenKind(rawValue: UInt8(truncatingIfNeeded: row.int(DeviceColumn.kind))) ?? .alert)
    }
  }
}
