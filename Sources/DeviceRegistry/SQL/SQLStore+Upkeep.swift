import PushCore

/// What keeps the registry bounded.
extension SQLStore {
  func purge(goneBefore: Int64, campaignsBefore: Int64, limit: Int) throws(RegistryError) -> Int {
    let devices = try transaction(.devices) { () throws(RegistryError) in
      var ids: [Int64] = []
      try session.run(SQL.goneDevices, [.int(goneBefore), .int(Int64(limit))]) { row in ids.append(row.int(0)) }
      for id in ids {
        try session.run(SQL.leaveTopics, [.int(id)])
        try leaveGroups(id)
        try session.run(SQL.deleteAliases, [.int(id)])
        try session.run(SQL.deleteBadge, [.int(id)])
        try session.run(SQL.deleteDevice, [.int(id)])
      }
      return ids.count
    }
    let campaigns = try transaction(.campaigns) { () throws(RegistryError) in
      var ids: [[UInt8]] = []
      try session.run(SQL.overCampaigns, [.int(campaignsBefore), .int(Int64(limit))]) { row in ids.append(row.bytes(0)) }
      for id in ids {
        try session.run(SQL.deletePages, [.blob(id)])
        try session.run(SQL.deleteCampaign, [.blob(id)])
      }
      return ids.count
    }
    return devices + campaigns
  }

  func purgeNotes(before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(.notes) { () throws(RegistryError) in
      let values: [SQLValue] = [.int(before), .int(Int64(limit))]
      return try session.run(SQL.purgeNotes, values) + session.run(SQL.purgeMessages, values)
    }
  }

  func probe(isWriting: Bool) throws(RegistryError) {
    guard isWriting else {
      try session.run(SQL.probe, [])
      return
    }
    _ = try transaction(.devices) { () throws(RegistryError) in try session.run(SQL.probe, []) }
  }
}

extension SQL {
  static let goneDevices = Statement("SELECT id FROM devices WHERE gone_at < ?1 AND state = 2 ORDER BY gone_at LIMIT ?2")
  static let deleteAliases = Statement("DELETE FROM aliases WHERE device = ?1")
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
