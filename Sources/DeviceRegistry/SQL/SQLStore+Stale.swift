import PushCore

/// Devices that haven't registered for long.
extension SQLStore {
  func claimStale(_ search: StaleSearch, now: Int64) throws(RegistryError) -> StaleDevices {
    guard let end = try session.firstInt(SQL.endOfPortion, [.int(search.after), .int(Int64(search.portion))]) else {
      return StaleDevices(devices: [], next: nil)
    }
    var ids: [Int64] = []
    let (seen, claimed) = (SQLValue.int(search.seenBefore), SQLValue.int(search.claimedBefore))
    let bounds: [SQLValue] = [.int(search.after), .int(end), seen, claimed, .int(Int64(search.limit))]
    try session.run(SQL.staleDevices, bounds) { row in ids.append(row.int(0)) }
    guard !ids.isEmpty else { return StaleDevices(devices: [], next: end) }
    let records = try transaction(.devices) { () throws(RegistryError) in
      var own: [Int64] = []
      let sets: [[SQLValue]] = ids.map { [.int($0), .int(now), seen, claimed] }
      try session.runEach(SQL.claimStale, sets) { _, row in own.append(row.int(0)) }
      var records: [DeviceRecord] = []
      for id in own { records += try self.records(SQL.recordByID, [.int(id)]) }
      return records
    }
    return StaleDevices(devices: records, next: ids.count < search.limit ? end : ids.last)
  }

  func markStale(_ ids: [Int64], seenBefore: Int64, now: Int64) throws(RegistryError) {
    try transaction(.devices) { () throws(RegistryError) in
      try session.runEach(SQL.markStale, ids.map { [.int($0), .int(now), .int(seenBefore)] }) { _, _ in }
    }
  }
}

extension SQL {
  static let endOfPortion = Statement("SELECT max(id) FROM (SELECT id FROM devices WHERE id > ?1 ORDER BY id LIMIT ?2) p")
  private static let isStale = "state < 2 AND last_seen < ?3 AND (stale_claim IS NULL OR stale_claim < ?4)"
  static let staleDevices = Statement(
    "SELECT id FROM devices WHERE id > ?1 AND id <= ?2 AND \(isStale) ORDER BY id LIMIT ?5")
  static let claimStale = Statement("UPDATE devices SET stale_claim = ?2 WHERE id = ?1 AND \(isStale) RETURNING id")
  static let markStale = Statement(
    "UPDATE devices SET state = 3, reason = 'stale', marked_at = ?2 WHERE id = ?1 AND state < 2 AND last_seen < ?3")
}
