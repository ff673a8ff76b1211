import PushCore

extension DeviceStore {
  /// Removes at most `limit` records from before a time, and returns how many.
  public func purge(_ records: Purge, before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(records.intent) { () throws(RegistryError) in
      let values: [SQLValue] = [.int(before), .int(limit)]
      return switch records {
      case .devices: try removeDevices(SQL.goneDevices, values)
      case .activities: try removeDevices(SQL.endedActivities, values)
      case .secrets: try session.run(SQL.purgeSecrets, values)
      case .campaigns: try purgeCampaigns(values)
      case .notes: try session.run(SQL.purgeNotes, values) + session.run(SQL.purgeMessages, values)
      case .waiting: try session.run(SQL.purgeWaiting, values)
      case .requests: try session.run(SQL.purgeRequests, values)
      case .content: try purgeContent(values)
      case .audit: try session.run(SQL.purgeAuditEvents, values)
      }
    }
  }

  private func purgeCampaigns(_ values: [SQLValue]) throws(RegistryError) -> Int {
    let ids = try session.all(SQL.overCampaigns, values) { $0.bytes(0) }
    for statement in SQL.deleteCampaign { try session.runEach(statement, ids.map { .blob($0) }) }
    return ids.count
  }

  private func removeDevices(_ devices: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int {
    let ids = try session.ints(devices, values)
    for id in ids { try removeDevice(id) }
    return ids.count
  }

  func removeDevice(_ id: Int64) throws(RegistryError) {
    let counter = try counter(ofDevice: id)
    try session.run(SQL.leaveTopics, [.int(id)])
    try leaveGroups(id)
    try session.run(SQL.deleteAliases, [.int(id)])
    // An alias without a device keeps the highest device number, so that no other device gets it.
    if try session.run(SQL.keepNumber, [.int(id)]) > 0 { try session.run(SQL.dropLowerNumbers, [.int(id)]) }
    try session.run(SQL.deleteDevice, [.int(id)])
    if let counter { try dropCounter(counter) }
  }

  /// Deletes a user: the devices with their tokens, topics and badges, the secrets of their installations, and the memberships
  /// of groups. Times of acknowledgements stay until they are purged, as numbers that no longer belong to anybody.
  /// - Returns: the number of deleted devices; nil if the user is not known.
  func forgetUser(_ name: [UInt8], of app: [UInt8]) throws(RegistryError) -> Int? {
    guard let number = try knownApp(app), let user = try knownUser(name, number) else { return nil }
    let devices = try session.all(SQL.devicesToForget, [.int(user)]) { (id: $0.int(0), installation: $0.optionalBytes(1)) }
    for device in devices { try removeDevice(device.id) }
    for installation in Set(devices.compactMap(\.installation)) {
      try session.run(SQL.removeSecret, [.text(app), .text(installation)])
    }
    try session.run(SQL.leaveUserGroups, [.int(user)])
    try session.run(SQL.deleteUser, [.int(user)])
    return devices.count
  }

  /// Checks cheaply that the store answers, or that a write can begin.
  public func probe(isWriting: Bool) throws(RegistryError) {
    // As a transaction: its commit detects a deleted or replaced database.
    guard isWriting else { return try session.reading { () throws(RegistryError) -> Void in try session.run(SQL.probe, []) } }
    try write(.devices, SQL.probe, [])
  }

  // MARK: Stale devices

  /// Claims stale devices among the next portion of all devices, so that no other worker reports them.
  /// - Parameter number: where to start; 0 at first.
  public func claimStale(
    after number: Int64, portion: Int, seenBefore: Int64, claimedBefore: Int64, limit: Int, now: Int64
  ) throws(RegistryError) -> StaleDevices {
    guard let end = try session.firstInt(SQL.endOfPortion, [.int(number), .int(portion)]) else {
      return StaleDevices(devices: [], next: nil)
    }
    let (seen, claimed) = (SQLValue.int(seenBefore), SQLValue.int(claimedBefore))
    let bounds: [SQLValue] = [.int(number), .int(end), seen, claimed, .int(limit)]
    let ids = try session.ints(SQL.staleDevices, bounds)
    guard !ids.isEmpty else { return StaleDevices(devices: [], next: end) }
    let records = try transaction(.devices) { () throws(RegistryError) in
      let sets: [SQLValue] = ids.flatMap { [.int($0), .int(now), seen, claimed] }
      let own = try session.ofEach(SQL.claimStale, sets) { row in row.int(0) }
      return try self.records(of: own.compactMap(\.self))
    }
    return StaleDevices(devices: records, next: ids.count < limit ? end : ids.last)
  }

  /// Marks reported devices as stale, unless they have registered since. Broadcasts then skip them.
  public func markStale(_ ids: [Int64], seenBefore: Int64, now: Int64) throws(RegistryError) {
    try writeEach(.devices, SQL.markStale, ids.flatMap { [.int($0), .int(now), .int(seenBefore)] })
  }
}

extension Purge {
  fileprivate var intent: TransactionIntent {
    switch self {
    case .devices, .activities, .secrets: .devices
    case .campaigns, .audit: .campaigns
    case .notes, .waiting, .requests, .content: .allNotes
    }
  }
}

extension SQL {
  static let goneDevices = Statement("SELECT id FROM devices WHERE gone_at < ?1 AND state = 2 ORDER BY gone_at LIMIT ?2")
  static let endedActivities = Statement(
    "SELECT id FROM devices WHERE kind = \(TokenKind.liveActivity.rawValue) AND last_seen < ?1 ORDER BY last_seen LIMIT ?2")
  static let deleteAliases = Statement("DELETE FROM aliases WHERE device = ?1")
  static let keepNumber = Statement(
    """
    INSERT INTO aliases (id, salt, device)
    SELECT id, salt, 0 FROM devices WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM devices WHERE id > ?1) ON CONFLICT DO NOTHING
    """)
  static let dropLowerNumbers = Statement("DELETE FROM aliases WHERE device = 0 AND id < ?1")
  /// The user's devices, and other tokens of the same installations, such as unregistered ones, that belong to no other user.
  static let devicesToForget = Statement(
    """
    SELECT id, installation FROM devices WHERE user_id = ?1
    UNION SELECT r.id, r.installation FROM devices d JOIN devices r ON r.app = d.app AND r.installation = d.installation
    WHERE d.user_id = ?1 AND r.user_id IS NULL ORDER BY 1
    """)
  static let leaveUserGroups = Statement("DELETE FROM group_members WHERE kind = 1 AND member = ?1")
  static let deleteUser = Statement("DELETE FROM users WHERE id = ?1")
  static let overCampaigns = Statement(
    "SELECT id FROM campaigns WHERE updated_at < ?1 AND (state IN (2, 3) OR finished_at IS NOT NULL) ORDER BY created_at LIMIT ?2"
  )
  static let deleteCampaign = [
    ("campaign_pages", "campaign"), ("campaign_failures", "campaign"), ("campaign_unreached", "campaign"), ("campaigns", "id"),
  ].map { table, key in Statement("DELETE FROM \(table) WHERE \(key) = ?1") }
  static let purgeNotes = purge("notes", by: "message, device", "noted_at <")
  static let purgeMessages = purge("messages", by: "message", "noted_at <")
  static let purgeWaiting = purge("waiting", by: "place", "until <")
  static let purgeRequests = purge("gateway_requests", by: "name", "until <=")
  static let purgeContent = purge("content_pages", by: "digest", "until <=", " RETURNING app, length(content)")
  static func purge(_ table: String, by key: String, _ isOver: String, _ rest: String = "") -> Statement {
    let time = isOver.prefix { $0 != " " }
    return Statement(
      "DELETE FROM \(table) WHERE (\(key)) IN (SELECT \(key) FROM \(table) WHERE \(isOver) ?1 ORDER BY \(time) LIMIT ?2)\(rest)"
    )
  }
  static let probe = Statement("SELECT max(id) FROM apps")
  static let endOfPortion = Statement("SELECT max(id) FROM (SELECT id FROM devices WHERE id > ?1 ORDER BY id LIMIT ?2) p")
  private static let isStale = "state < 2 AND last_seen < ?3 AND (stale_claim IS NULL OR stale_claim < ?4)"
  static let staleDevices = Statement(
    "SELECT id FROM devices WHERE id > ?1 AND id <= ?2 AND \(isStale) ORDER BY id LIMIT ?5")
  static let claimStale = Statement("UPDATE devices SET stale_claim = ?2 WHERE id = ?1 AND \(isStale) RETURNING id")
  static let markStale = Statement(
    "UPDATE devices SET state = 3, reason = 'stale', marked_at = ?2 WHERE id = ?1 AND state < 2 AND last_seen < ?3")
}
