import PushCore

/// Which request is the newest in each place where some wait.
extension SQLStore {
  func noteWaiting(_ notes: [CollapseNote]) throws(RegistryError) {
    guard !notes.isEmpty else { return }
    try transaction(.notes(of: [])) { () throws(RegistryError) -> Void in
      let sorted = notes.sorted { $0.place.bytes.lexicographicallyPrecedes($1.place.bytes) }
      let values: [[SQLValue]] = sorted.map { [.blob($0.place.bytes), .blob($0.order.bytes), .int($0.until)] }
      try session.runEach(SQL.noteWaiting, values) { _, _ in }
    }
  }

  func newestWaiting(in places: [CollapsePlace]) throws(RegistryError) -> [CollapseOrder?] {
    var newest = [CollapseOrder?](repeating: nil, count: places.count)
    guard !places.isEmpty else { return newest }
    try session.runEach(SQL.newestWaiting, places.map { [.blob($0.bytes)] }) { index, row in
      newest[index] = CollapseOrder(row.bytes(0))
    }
    return newest
  }

  func purgeWaiting(before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(.allNotes) { () throws(RegistryError) in
      try session.run(SQL.purgeWaiting, [.int(before), .int(Int64(limit))])
    }
  }
}

extension SQL {
  static let noteWaiting = Statement(
    """
    INSERT INTO waiting (place, newest, until) VALUES (?1, ?2, ?3) ON CONFLICT (place) DO UPDATE SET
      newest = CASE WHEN excluded.newest > waiting.newest THEN excluded.newest ELSE waiting.newest END,
      until = CASE WHEN excluded.until > waiting.until THEN excluded.until ELSE waiting.until END
    """)
  static let newestWaiting = Statement("SELECT newest FROM waiting WHERE place = ?1")
  static let purgeWaiting = Statement(
    "DELETE FROM waiting WHERE place IN (SELECT place FROM waiting WHERE until < ?1 ORDER BY until LIMIT ?2)")
}
