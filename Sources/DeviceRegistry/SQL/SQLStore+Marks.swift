import PushCore

/// What providers' answers do to devices: never more than their own time allows.
extension SQLStore {
  func mark(_ marks: [DeviceMark], now: Int64) throws(RegistryError) -> [MarkOutcome] {
    marks.isEmpty ? [] : try Session.mark(marks, in: self, now: now)
  }

  /// One by one, which costs little where the database is a file.
  func markEach(_ marks: [DeviceMark], _ now: Int64) throws(RegistryError) -> [MarkOutcome] {
    try transaction(.devices) { () throws(RegistryError) in
      var outcomes: [MarkOutcome] = []
      outcomes.reserveCapacity(marks.count)
      for mark in marks { outcomes.append(try apply(mark, now)) }
      return outcomes
    }
  }

  private func apply(_ mark: DeviceMark, _ now: Int64) throws(RegistryError) -> MarkOutcome {
    guard let app = try knownApp(mark.app) else { return .unknown }
    var found: (key: RegistryKey, registeredAt: Int64, state: Int64, isForActivity: Bool)?
    try session.run(SQL.rowByToken, [.int(app), .int(Int64(mark.platform.rawValue)), .blob(mark.token)]) { row in
      found = (
        RegistryKey(id: row.int(DeviceColumn.id), salt: row.int(DeviceColumn.salt)), row.int(DeviceColumn.registeredAt),
        row.int(DeviceColumn.state),
        TokenKind(rawValue: UInt8(truncatingIfNeeded: row.int(DeviceColumn.kind)))?.isForActivity == true
      )
    }
    guard let found, found.isForActivity == mark.isForActivity else { return .unknown }
    let registration = found.key.registration
    switch mark.verdict {
    case .gone(let since):
      guard found.state != Int64(DeviceState.gone.rawValue) else { return .unchanged(registration: registration) }
      guard since > found.registeredAt else { return .registeredSince(registration: registration) }
      try session.run(SQL.markGone, [.int(found.key.id), .text(mark.reason), .int(now)])
    case .suspect:
      guard found.state == Int64(DeviceState.active.rawValue) else { return .unchanged(registration: registration) }
      try session.run(SQL.markSuspect, [.int(found.key.id), .text(mark.reason), .int(now)])
    }
    return .marked(registration: registration)
  }
}

extension SQL {
  static let rowByToken = Statement(
    "SELECT \(DeviceColumn.list) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3")
  static let markGone = Statement("UPDATE devices SET state = 2, reason = ?2, gone_at = ?3 WHERE id = ?1")
  static let markSuspect = Statement("UPDATE devices SET state = 1, reason = ?2, marked_at = ?3 WHERE id = ?1")
}
