import PushCore
import Wire

extension DeviceStore {
  /// Stores many registrations at once. The answers are the same as those of ``apply(_:fence:now:)`` for each.
  public func load(_ registrations: [Registration], now: Int64) throws(RegistryError) -> [ChangeAnswer] {
    // With fewer rows, the set-up costs more than it saves.
    if let session = session as? PostgresConnection, registrations.count >= 32 {
      do throws(RegistryError) {
        return try PostgresLoad(self, session, registrations, now).run()
      } catch .refused {
        // The database refused a value of one row. One by one, only that row fails.
      }
    }
    return try apply(registrations.map { .register($0) }, now: now)
  }
}

/// A bulk load. COPY writes the rows to a temporary table; set operations then move them to their tables. Some rows need single
/// registrations: several rows of one token or installation, a new token for an installation, rows that may exceed a limit, and
/// rows of devices that ended after the load's time. The order of the rows is kept, so the outcome equals that of single
/// registrations in order.
private struct PostgresLoad {
  private let store: DeviceStore
  private let session: PostgresConnection
  private let registrations: [Registration]
  private let now: Int64
  private var answers: [ChangeAnswer]
  private var isSingle: [Bool]

  init(_ store: DeviceStore, _ session: PostgresConnection, _ registrations: [Registration], _ now: Int64) {
    self.store = store
    self.session = session
    self.registrations = registrations
    self.now = now
    answers = [ChangeAnswer](repeating: .done, count: registrations.count)
    isSingle = [Bool](repeating: false, count: registrations.count)
  }

  func run() throws(RegistryError) -> [ChangeAnswer] {
    var load = self
    return try store.transaction(.devices) { () throws(RegistryError) in
      try load.stage()
      try load.findSingles()
      try load.stageTopics()
      try load.move()
      return load.answers
    }
  }

  // MARK: Staging

  private struct Key: Hashable {
    let app: [UInt8]
    let platform: Platform?
    let name: [UInt8]
  }

  private mutating func stage() throws(RegistryError) {
    // Until a table has statistics, the planner takes an application for as selective as a token.
    if try session.firstInt(SQL.devicesInStatistics, []) ?? 0 <= 0 { try session.execute("ANALYZE devices") }
    // Index joins, because the planner's estimates for the tables may be too small.
    try session.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS load_devices (
        n BIGINT PRIMARY KEY, app BIGINT NOT NULL, platform BIGINT NOT NULL, token BYTEA NOT NULL, salt BIGINT NOT NULL,
        environment BIGINT NOT NULL, sender TEXT COLLATE "C" NOT NULL, user_name TEXT COLLATE "C", display TEXT,
        installation TEXT COLLATE "C", locale TEXT, time_zone TEXT, app_version TEXT, topics BIGINT NOT NULL,
        user_rows BIGINT NOT NULL, registered_at BIGINT NOT NULL,
        kind BIGINT, activity TEXT COLLATE "C", endpoint BYTEA) ON COMMIT DELETE ROWS;
      CREATE TEMP TABLE IF NOT EXISTS load_topics (n BIGINT NOT NULL, topic BIGINT NOT NULL) ON COMMIT DELETE ROWS;
      SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off
      """)
    var userRows: [Key: Int64] = [:]
    for registration in registrations {
      if let user = registration.user { userRows[Key(app: registration.app, platform: nil, name: user), default: 0] += 1 }
    }
    var rows = CopyRows()
    for (index, registration) in registrations.enumerated() {
      let users = registration.user.flatMap { userRows[Key(app: registration.app, platform: nil, name: $0)] } ?? 0
      rows.append([
        .int(index), .int(try store.makeApp(registration.app)), .int(registration.platform), .blob(registration.token()),
        .int(store.makeSalt()), .int(registration.environment ?? .unspecified), .text(registration.sender ?? []),
        .text(registration.user), .text(registration.name), .text(registration.installation), .text(registration.locale),
        .text(registration.timeZone), .text(registration.appVersion), .int(registration.topics.count), .int(users),
        .int(registration.registered(by: now)), .int(registration.kind), .text(registration.activity),
        .blob(registration.platform == .webpush ? registration.identity : nil),
      ])
    }
    try session.copy("COPY load_devices FROM STDIN (FORMAT binary)", rows.finished())
  }

  private mutating func findSingles() throws(RegistryError) {
    var places: [Key: Int] = [:]
    for (index, registration) in registrations.enumerated() {
      if registration.topics.count > store.limits.topicsPerDevice { isSingle[index] = true }
      let token = Key(app: registration.app, platform: registration.platform, name: registration.identity)
      let installation = registration.installation.map { Key(app: registration.app, platform: nil, name: $0) }
      for key in [token, installation].compactMap(\.self) {
        guard let other = places.updateValue(index, forKey: key) else { continue }
        isSingle[other] = true
        isSingle[index] = true
      }
    }
    let found = try session.ints(
      SQL.loadSingles, [.int(store.limits.topicsPerDevice), .int(store.limits.devicesPerUser), .int(now)])
    for index in found { isSingle[Int(index)] = true }
  }

  private func stageTopics() throws(RegistryError) {
    var rows = CopyRows()
    var isEmpty = true
    for (index, registration) in registrations.enumerated() where !isSingle[index] {
      guard !registration.topics.isEmpty else { continue }
      let app = try store.makeApp(registration.app)
      for topic in registration.topics {
        isEmpty = false
        rows.append([.int(index), .int(try store.makeTopic(topic, app))])
      }
    }
    if !isEmpty { try session.copy("COPY load_topics FROM STDIN (FORMAT binary)", rows.finished()) }
  }

  // MARK: Moving

  private mutating func move() throws(RegistryError) {
    var start = 0
    while start < registrations.count {
      var end = start
      while end < registrations.count, !isSingle[end] { end += 1 }
      if end - start >= Self.fewestInSet {
        try moveSet(start, end)
      } else {
        for index in start..<end { answers[index] = try store.register(registrations[index], now) }
      }
      if end < registrations.count { answers[end] = try store.register(registrations[end], now) }
      start = end + 1
    }
  }

  /// With fewer successive rows, single registrations are as fast.
  private static let fewestInSet = 8

  private mutating func moveSet(_ start: Int, _ end: Int) throws(RegistryError) {
    let range = [SQLValue.int(start), .int(end)]
    try session.run(SQL.loadUsers, range)
    try session.run(SQL.loadDevices, range + [.int(now)])
    try session.run(SQL.loadMembers, range)
    let keys = try session.all(SQL.loadedKeys, range) { (Int($0.int(0)), $0.key(1)) }
    guard keys.count == end - start else { throw .unusable(.broken, "a bulk load lost rows") }
    for (index, key) in keys { answers[index] = .registration(key.registration) }
  }
}

/// Rows in COPY's binary form (postgresql.org/docs/current/sql-copy.html, "Binary Format").
private struct CopyRows {
  private var bytes: [UInt8] = Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0] + [UInt8](repeating: 0, count: 8)

  mutating func append(_ row: [SQLValue]) {
    bytes.appendBigEndian(Int16(row.count))
    for value in row { PostgresBytes.append(value, to: &bytes) }
  }

  func finished() -> [UInt8] { bytes + [0xFF, 0xFF] }
}

extension SQL {
  /// The number of devices when the table was analysed; not above 0 before.
  static let devicesInStatistics = Statement("SELECT reltuples::bigint FROM pg_class WHERE oid = 'devices'::regclass")
  private static let ofToken = "d.app = l.app AND d.platform = l.platform AND d.token = l.token"

  /// Rows that need a single registration. `user_rows` is the number of rows in the load with the same user.
  static let loadSingles = Statement(
    """
    SELECT l.n FROM load_devices l WHERE
      (l.installation IS NOT NULL AND EXISTS (
        SELECT 1 FROM devices d WHERE d.app = l.app AND d.installation = l.installation
          AND (d.sender <> l.sender OR d.platform <> l.platform OR d.token <> l.token)))
      OR (l.installation IS NOT NULL AND EXISTS (
        SELECT 1 FROM devices d WHERE \(ofToken) AND d.installation <> l.installation))
      OR (l.user_name IS NOT NULL AND EXISTS (
        SELECT 1 FROM devices d JOIN badges b ON b.device = \(counterOfDevice) AND b.badge <> 0
        LEFT JOIN users u ON u.id = d.user_id WHERE \(ofToken) AND (u.name IS NULL OR u.name <> l.user_name)))
      OR EXISTS (
        SELECT 1 FROM devices d WHERE d.app = l.app AND d.platform = l.platform AND d.token <> l.token
          AND d.token >= l.endpoint || '\\x00'::bytea AND d.token < l.endpoint || '\\x01'::bytea)
      OR EXISTS (
        SELECT 1 FROM aliases a WHERE a.platform = l.platform
          AND a.token >= l.endpoint || '\\x00'::bytea AND a.token < l.endpoint || '\\x01'::bytea)
      OR (l.kind IS NOT NULL AND EXISTS (SELECT 1 FROM devices d WHERE \(ofToken) AND d.kind <> l.kind))
      OR (l.topics > 0 AND EXISTS (
        SELECT 1 FROM devices d WHERE \(ofToken)
          AND (SELECT count(*) FROM members m WHERE m.device = d.id) + l.topics > CAST(?1 AS BIGINT)))
      OR (l.user_name IS NOT NULL AND l.user_rows + (
        SELECT count(*) FROM users u JOIN devices d ON d.user_id = u.id WHERE u.app = l.app AND u.name = l.user_name
      ) > CAST(?2 AS BIGINT))
      OR EXISTS (SELECT 1 FROM devices d WHERE \(ofToken) AND d.gone_at > CAST(?3 AS BIGINT))
    """)
  /// If rows give several names for a user, the last one wins.
  static let loadUsers = Statement(
    """
    INSERT INTO users (app, name, display)
    SELECT DISTINCT ON (l.app, l.user_name) l.app, l.user_name, l.display FROM load_devices l
    WHERE l.n >= ?1 AND l.n < ?2 AND l.user_name IS NOT NULL
    ORDER BY l.app, l.user_name, (l.display IS NULL), l.n DESC
    ON CONFLICT (app, name) DO UPDATE SET display = excluded.display WHERE excluded.display IS NOT NULL
    """)
  /// 0 and empty texts mean "not given" and keep the earlier value.
  static let loadDevices = Statement(
    """
    INSERT INTO devices (app, platform, token, salt, environment, sender, state, registered_at, last_seen, user_id, installation,
      locale, time_zone, app_version, kind, activity)
    SELECT l.app, l.platform, l.token, l.salt, l.environment, l.sender, 0, l.registered_at, CAST(?3 AS BIGINT), u.id,
      l.installation, l.locale, l.time_zone, l.app_version, COALESCE(l.kind, 0), COALESCE(l.activity, '')
    FROM load_devices l LEFT JOIN users u ON u.app = l.app AND u.name = l.user_name
    WHERE l.n >= ?1 AND l.n < ?2 ORDER BY l.n
    ON CONFLICT (app, platform, token) DO UPDATE SET
      environment = CASE WHEN excluded.environment = 0 THEN devices.environment ELSE excluded.environment END,
      sender = CASE
        WHEN excluded.sender = '' OR (excluded.installation IS NULL AND devices.installation IS NOT NULL) THEN devices.sender
        ELSE excluded.sender END,
      state = CASE WHEN devices.gone_at > excluded.registered_at THEN devices.state ELSE 0 END,
      reason = CASE WHEN devices.gone_at > excluded.registered_at THEN devices.reason END,
      gone_at = CASE WHEN devices.gone_at > excluded.registered_at THEN devices.gone_at END,
      registered_at = GREATEST(devices.registered_at, excluded.registered_at), last_seen = excluded.last_seen,
      user_id = COALESCE(excluded.user_id, devices.user_id),
      installation = COALESCE(excluded.installation, devices.installation),
      locale = COALESCE(excluded.locale, devices.locale), time_zone = COALESCE(excluded.time_zone, devices.time_zone),
      app_version = COALESCE(excluded.app_version, devices.app_version),
      activity = CASE WHEN excluded.activity = '' THEN devices.activity ELSE excluded.activity END, marked_at = NULL, stale_claim = NULL
    """)
  static let loadMembers = Statement(
    """
    INSERT INTO members (topic, device)
    SELECT t.topic, d.id FROM load_topics t JOIN load_devices l ON l.n = t.n JOIN devices d ON \(ofToken)
    WHERE t.n >= ?1 AND t.n < ?2 ON CONFLICT DO NOTHING
    """)
  static let loadedKeys = Statement(
    "SELECT l.n, d.id, d.salt FROM load_devices l JOIN devices d ON \(ofToken) WHERE l.n >= ?1 AND l.n < ?2")
}
