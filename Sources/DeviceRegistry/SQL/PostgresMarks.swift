import PushCore

extension PostgresConnection {
  /// One statement for all of them: every worker of the fleet marks, and none may wait for another, or for whoever registers devices.
  static func mark(_ marks: [DeviceMark], in store: PostgresStore, now: Int64) throws(RegistryError) -> [MarkOutcome] {
    var outcomes = [MarkOutcome](repeating: .unknown, count: marks.count)
    var rest: [Int] = []
    for index in marks.indices where try store.knownApp(marks[index].app) != nil { rest.append(index) }
    while !rest.isEmpty {
      // A token that stands there twice is marked by a statement of its own: one changes a row once.
      var tokens: Set<Token> = []
      let batch = rest.filter { tokens.insert(Token(marks[$0])).inserted }
      rest = batch.count == rest.count ? [] : rest.filter { !batch.contains($0) }
      try markOnce(batch, marks, store, now, &outcomes)
    }
    return outcomes
  }

  private struct Token: Hashable {
    let app: [UInt8]
    let platform: Platform
    let token: [UInt8]

    init(_ mark: DeviceMark) {
      app = mark.app
      platform = mark.platform
      token = mark.token
    }
  }

  private static func markOnce(
    _ batch: [Int], _ marks: [DeviceMark], _ store: PostgresStore, _ now: Int64, _ outcomes: inout [MarkOutcome]
  ) throws(RegistryError) {
    var apps: [Int64] = []
    for index in batch { apps.append(try store.knownApp(marks[index].app) ?? 0) }
    let times: [Int64?] = batch.map { if case .gone(let since) = marks[$0].verdict { since } else { nil } }
    let activities: [Int64] = batch.map { marks[$0].isForActivity ? 1 : 0 }
    let values: [SQLValue] = [
      .blob(PostgresBytes.array(apps)), .blob(PostgresBytes.array(batch.map { Int64(marks[$0].platform.rawValue) })),
      .blob(PostgresBytes.array(batch.map { marks[$0].token }, type: PostgresBytes.bytea)),
      .blob(PostgresBytes.array(times)),
      .blob(PostgresBytes.array(batch.map { marks[$0].reason.filter { $0 != 0 } }, type: PostgresBytes.text)), .int(now),
      .blob(PostgresBytes.array(activities)),
    ]
    try store.session.run(SQL.markAll, values) { row in
      let index = batch[Int(row.int(0)) - 1]
      let registration = RegistryKey(id: row.int(1), salt: row.int(2)).registration
      outcomes[index] =
        switch row.int(3) {
        case 0: .marked(registration: registration)
        case 1: .busy
        case 2: .registeredSince(registration: registration)
        default: .unchanged(registration: registration)
        }
    }
  }
}

extension SQL {
  /// Rows that somebody else holds are left out, so that it never waits and can't deadlock; the token is compared again with the row as it
  /// is once it is held.
  static let markAll = Statement(
    """
    WITH known AS (
      SELECT a.n, d.id, d.salt, a.token, a.since, a.reason
      FROM unnest(?1::bigint[], ?2::bigint[], ?3::bytea[], ?4::bigint[], ?5::text[], ?7::bigint[]) WITH ORDINALITY
        AS a (app, platform, token, since, reason, activity, n)
      JOIN devices d ON d.app = a.app AND d.platform = a.platform AND d.token = a.token AND (d.kind IN (2, 3)) = (a.activity = 1)
    ), held AS (
      SELECT id, registered_at, state FROM devices WHERE id IN (SELECT id FROM known) ORDER BY id FOR UPDATE SKIP LOCKED
    ), marked AS (
      UPDATE devices d SET state = CASE WHEN k.since IS NULL THEN 1 ELSE 2 END, reason = k.reason,
        gone_at = CASE WHEN k.since IS NULL THEN d.gone_at ELSE ?6::bigint END,
        marked_at = CASE WHEN k.since IS NULL THEN ?6::bigint ELSE d.marked_at END
      FROM known k JOIN held h ON h.id = k.id
      WHERE d.id = h.id AND d.token = k.token
        AND CASE WHEN k.since IS NULL THEN h.state = 0 ELSE h.state <> 2 AND k.since > h.registered_at END
      RETURNING d.id
    )
    SELECT k.n, k.id, k.salt, CASE WHEN m.id IS NOT NULL THEN 0 WHEN h.id IS NULL THEN 1
      WHEN k.since IS NOT NULL AND h.state <> 2 THEN 2 ELSE 3 END
    FROM known k LEFT JOIN held h ON h.id = k.id LEFT JOIN marked m ON m.id = k.id
    """)
}
