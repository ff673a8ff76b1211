import PushCore

/// Marks devices according to providers' answers. A mark older than the registration has no effect.
extension DeviceStore {
  /// Marks tokens according to their provider's answers. Never waits for another writer of a device: such a device is `busy`.
  public func mark(_ marks: [DeviceMark], now: Int64) throws(RegistryError) -> [MarkOutcome] {
    guard !marks.isEmpty else { return [] }
    if session is PostgresConnection { return try markTogether(marks, now) }
    // One by one, which costs little if the database is a file.
    return try transaction(.devices) { () throws(RegistryError) in
      try marks.map { mark throws(RegistryError) in try apply(mark, now) }
    }
  }

  private func apply(_ mark: DeviceMark, _ now: Int64) throws(RegistryError) -> MarkOutcome {
    guard let app = try knownApp(mark.app) else { return .unknown }
    guard let found = try found(.token(mark.platform, mark.token), app).first, found.kind.isForActivity == mark.isForActivity
    else { return .unknown }
    let registration = found.key.registration
    switch mark.verdict {
    case .gone(let since):
      guard found.state != .gone else { return .unchanged(registration: registration) }
      guard since > found.registeredAt else { return .registeredSince(registration: registration) }
      try session.run(SQL.markGone, [.int(found.id), .text(mark.reason), .int(now)])
    case .suspect:
      guard found.state == .active else { return .unchanged(registration: registration) }
      try session.run(SQL.markSuspect, [.int(found.id), .text(mark.reason), .int(now)])
    }
    return .marked(registration: registration)
  }

  /// Marks with one statement, because workers must not wait for each other's marks or for registrations.
  private func markTogether(_ marks: [DeviceMark], _ now: Int64) throws(RegistryError) -> [MarkOutcome] {
    var outcomes = [MarkOutcome](repeating: .unknown, count: marks.count)
    var places: [Int] = []
    var keys: [TokenKey] = []
    for (place, mark) in marks.enumerated() {
      guard let app = try knownApp(mark.app) else { continue }
      places.append(place)
      keys.append(TokenKey(app: app, platform: mark.platform, token: mark.token))
    }
    var rest = zip(places, try stored(keys)).map { (place: $0, key: $1) }
    while !rest.isEmpty {
      // A statement changes a row only once, so a repeated token needs another statement.
      var tokens: Set<TokenKey> = []
      let batch = rest.filter { tokens.insert($0.key).inserted }
      let begun = Set(batch.map(\.place))
      rest.removeAll { begun.contains($0.place) }
      let sets = batch.flatMap { place, key -> [SQLValue] in
        let mark = marks[place]
        let reason = mark.reason.filter { $0 != 0 }
        return key.values + [.int(mark.goneSince), .text(reason), .int(now), .int(mark.isForActivity ? 1 : 0)]
      }
      try session.runEach(SQL.markAll, sets) { index, row in
        let registration = row.key().registration
        outcomes[batch[index].place] =
          switch row.int(2) {
          case 0: .marked(registration: registration)
          case 1: .busy
          case 2: .registeredSince(registration: registration)
          default: .unchanged(registration: registration)
          }
      }
    }
    return outcomes
  }
}

extension SQL {
  static let markGone = Statement("UPDATE devices SET state = 2, reason = ?2, gone_at = ?3 WHERE id = ?1")
  static let markSuspect = Statement("UPDATE devices SET state = 1, reason = ?2, marked_at = ?3 WHERE id = ?1")
  /// Skips rows that another transaction holds, so it never waits or deadlocks. Compares the token again once a row is locked.
  static let markAll = Statement(
    """
    WITH known AS (
      SELECT a.n, d.id, d.salt, a.token, a.since, a.reason, a.now
      FROM unnest(?1::bigint[], ?2::bigint[], ?3::bytea[], ?4::bigint[], ?5::text[], ?6::bigint[], ?7::bigint[])
        WITH ORDINALITY AS a (app, platform, token, since, reason, now, activity, n)
      JOIN devices d ON d.app = a.app AND d.platform = a.platform AND d.token = a.token AND (d.kind IN (2, 3)) = (a.activity = 1)
    ), held AS (
      SELECT id, registered_at, state FROM devices WHERE id IN (SELECT id FROM known) ORDER BY id FOR UPDATE SKIP LOCKED
    ), marked AS (
      UPDATE devices d SET state = CASE WHEN k.since IS NULL THEN 1 ELSE 2 END, reason = k.reason,
        gone_at = CASE WHEN k.since IS NULL THEN d.gone_at ELSE k.now END,
        marked_at = CASE WHEN k.since IS NULL THEN k.now ELSE d.marked_at END
      FROM known k JOIN held h ON h.id = k.id
      WHERE d.id = h.id AND d.token = k.token
        AND CASE WHEN k.since IS NULL THEN h.state = 0 ELSE h.state <> 2 AND k.since > h.registered_at END
      RETURNING d.id
    )
    SELECT k.id, k.salt, CASE WHEN m.id IS NOT NULL THEN 0 WHEN h.id IS NULL THEN 1
      WHEN k.since IS NOT NULL AND h.state <> 2 THEN 2 ELSE 3 END, k.n
    FROM known k LEFT JOIN held h ON h.id = k.id LEFT JOIN marked m ON m.id = k.id
    """, columns: [.int, .int, .blob, .int, .text, .int, .int])
}
