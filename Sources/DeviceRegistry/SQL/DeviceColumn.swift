import PushCore

/// The column order of every statement that reads ``DeviceRows``.
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
  static let next = 9
}

extension DeviceRows {
  /// - Parameter kind: if set, leaves out gone and stale devices, and other kinds of APNs tokens.
  mutating func append(_ row: SQLRow, onlyFor kind: TokenKind? = nil) {
    let platform = row.platform(DeviceColumn.platform)
    let state = row.state(DeviceColumn.state)
    let ownKind = row.kind(DeviceColumn.kind)
    if let kind {
      guard state == .active || state == .suspect, ownKind == kind || platform != .apns else { return }
    }
    append { arena, start in
      let tokenCount = row.append(DeviceColumn.token, to: &arena)
      let senderCount = row.append(DeviceColumn.sender, to: &arena)
      return DeviceRow(
        id: row.int(DeviceColumn.id), salt: row.int(DeviceColumn.salt), registeredAt: row.int(DeviceColumn.registeredAt),
        start: start, tokenCount: UInt16(truncatingIfNeeded: tokenCount), senderCount: UInt16(truncatingIfNeeded: senderCount),
        platform: platform, environment: row.environment(DeviceColumn.environment), state: state, kind: ownKind)
    }
  }
}
