import PushCore

extension DeviceRows {
  /// - Parameters:
  ///   - row: with ``SQL/deviceColumns``.
  ///   - kind: if set, leaves out gone and stale devices, and other kinds of APNs tokens.
  ///   - goneSince: if set, devices that are gone since this time are not left out.
  mutating func append(_ row: SQLRow, onlyFor kind: TokenKind? = nil, goneSince: Int64? = nil) {
    let platform = row.platform(3)
    let state = row.state(5)
    let ownKind = row.kind(8)
    if let kind {
      let isWanted = state == .active || state == .suspect || state == .gone && row.int(9) > goneSince ?? .max
      guard isWanted, ownKind == kind || platform != .apns else { return }
    }
    append { arena, start in
      let tokenCount = row.append(6, to: &arena)
      let senderCount = row.append(7, to: &arena)
      return DeviceRow(
        id: row.int(0), salt: row.int(1), registeredAt: row.int(2),
        start: start, tokenCount: UInt16(truncatingIfNeeded: tokenCount), senderCount: UInt16(truncatingIfNeeded: senderCount),
        platform: platform, environment: row.environment(4), state: state, kind: ownKind)
    }
  }
}
