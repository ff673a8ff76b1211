import PushCore

extension DeviceStore {
  /// Records waiting requests. The newest one in each place wins, regardless of the order of calls. Each place at most once.
  public func noteWaiting(_ notes: [CollapseNote]) throws(RegistryError) {
    guard !notes.isEmpty else { return }
    let sorted = notes.sorted { $0.place.bytes.lexicographicallyPrecedes($1.place.bytes) }
    let values: [[SQLValue]] = sorted.map { [.blob($0.place.bytes), .blob($0.order.bytes), .int($0.until)] }
    try transaction(.notes(of: [])) { () throws(RegistryError) in try session.runEach(SQL.noteWaiting, values) }
  }

  /// The newest requests in the order of the places; nil if none is recorded.
  public func newestWaiting(in places: [CollapsePlace]) throws(RegistryError) -> [CollapseOrder?] {
    try session.ofEach(SQL.newestWaiting, places.map { [.blob($0.bytes)] }) { CollapseOrder($0.bytes(0)) }
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
}
