import PushCore

extension DeviceStore {
  /// Claims stale devices, so that no other worker reports them.
  public func claimStale(_ search: StaleSearch, now: Int64) throws(RegistryError) -> StaleDevices {
    guard let end = try session.firstInt(SQL.endOfPortion, [.int(search.after), .int(search.portion)]) else {
      return StaleDevices(devices: [], next: nil)
    }
    let (seen, claimed) = (SQLValue.int(search.seenBefore), SQLValue.int(search.claimedBefore))
    let bounds: [SQLValue] = [.int(search.after), .int(end), seen, claimed, .int(search.limit)]
    let ids = try session.ints(SQL.staleDevices, bounds)
    guard !ids.isEmpty else { return StaleDevices(devices: [], next: end) }
    let records = try transaction(.devices) { () throws(RegistryError) in
      let sets: [[SQLValue]] = ids.map { [.int($0), .int(now), seen, claimed] }
      let own = try session.ofEach(SQL.claimStale, sets) { row in row.int(0) }
      return try self.records(of: own.compactMap(\.self))
    }
    return StaleDevices(devices: records, next: ids.count < search.limit ? end : ids.last)
  }

  /// Marks reported devices as stale, unless they have registered since. Broadcasts then skip them.
  public func markStale(_ ids: [Int64], seenBefore: Int64, now: Int64) throws(RegistryError) {
    try transaction(.devices) { () throws(RegistryError) in
      try session.runEach(SQL.markStale, ids.map { [.int($0), .int(now), .int(seenBefore)] })
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
