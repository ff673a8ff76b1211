import PushCore

/// What keeps the registry bounded.
extension SQLStore {
  func purge(goneBefore: Int64, campaignsBefore: Int64, limit: Int) throws(RegistryError) -> Int {
    let devices = try transaction(.devices) { () throws(RegistryError) in
      try remove(SQL.goneDevices, before: goneBefore, limit)
    }
    let campaigns = try transaction(.campaigns) { () throws(RegistryError) in
      var ids: [[UInt8]] = []
      try session.run(SQL.overCampaigns, [.int(campaignsBefore), .int(Int64(limit))]) { row in ids.append(row.bytes(0)) }
      for id in ids {
        try session.run(SQL.deletePages, [.blob(id)])
        try session.run(SQL.deleteFailures, [.blob(id)])
        try session.run(SQL.deleteCampaign, [.blob(id)])
      }
      return ids.count
    }
    return devices + campaigns
  }

  func purgeActivities(before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(.devices) { () throws(RegistryError) in try remove(SQL.endedActivities, before: before, limit) }
  }

  private func remove(_ devices: Statement, before: Int64, _ limit: Int) throws(RegistryError) -> Int {
    var ids: [Int64] = []
    try session.run(devices, [.int(before), .int(Int64(limit))]) { row in ids.append(row.int(0)) }
    for id in ids { try removeDevice(id) }
    return ids.count
  }

  /// With everything that is kept of it.
  func removeDevice(_ id: Int64) throws(RegistryError) {
    let counter = try counter(ofDevice: id)
    try session.run(SQL.leaveTopics, [.int(id)])
    try leaveGroups(id)
    try session.run(SQL.deleteAliases, [.int(id)])
    try keepNumber(id)
    try session.run(SQL.deleteDevice, [.int(id)])
    if let counter { try dropCounter(counter) }
  }

  /// So that no other device gets the number of the newest one: an alias that names nobody.
  private func keepNumber(_ id: Int64) throws(RegistryError) {
    guard try session.run(SQL.keepNumber, [.int(id)]) > 0 else { return }
    try session.run(SQL.dropLowerNumbers, [.int(id)])
  }

  func purgeNotes(before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(.allNotes) { () throws(RegistryError) in
      let values: [SQLValue] = [.int(before), .int(Int64(limit))]
      return try session.run(SQL.purgeNotes, values) + session.run(SQL.purgeMessages, values)
    }
  }

  func probe(isWriting: Bool) throws(RegistryError) {
    // As a transaction, whose end finds that the database is no longer the one that others have.
    guard isWriting else { return try session.reading { () throws(RegistryError) -> Void in try session.run(SQL.probe, []) } }
    _ = try transaction(.devices) { () throws(RegistryError) in try session.run(SQL.probe, []) }
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
  static let overCampaigns = Statement(
    "SELECT id FROM campaigns WHERE updated_at < ?1 AND (state IN (2, 3) OR finished_at IS NOT NULL) ORDER BY created_at LIMIT ?2"
  )
  static let deletePages = Statement("DELETE FROM campaign_pages WHERE campaign = ?1")
  static let deleteCampaign = Statement("DELETE FROM campaigns WHERE id = ?1")
  static let purgeNotes = Statement(
    """
    DELETE FROM notes WHERE (message, device) IN (
      SELECT message, device FROM notes WHERE noted_at < ?1 ORDER BY noted_at LIMIT ?2)
    """)
  static let purgeMessages = Statement(
    "DELETE FROM messages WHERE message IN (SELECT message FROM messages WHERE noted_at < ?1 ORDER BY noted_at LIMIT ?2)")
  static let probe = Statement("SELECT max(id) FROM apps")
}
