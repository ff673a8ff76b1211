import PushCore

/// Registering a device: by its token, or by its installation where the caller names one.
extension SQLStore {
  func register(_ registration: Registration, _ now: Int64) throws(RegistryError) -> ChangeAnswer {
    let app = try makeApp(registration.app)
    let owner = try found(.token(registration.platform, registration.token), app).first
    let kind = registration.kind ?? owner?.kind ?? .alert
    let activity = kind == .liveActivity ? registration.activity ?? owner?.activity ?? [] : []
    var registration = registration
    // What becomes of another kind, or another activity's, may be for what its installation has a token already: that one is replaced.
    if let owner, registration.installation == nil, owner.kind != kind || owner.activity != activity {
      try session.run(SQL.installation, [.int(owner.id)]) { row in registration.installation = row.optionalBytes(0) }
    }
    var holder: Found?
    var relatives: [Found] = []
    var others: [Found] = []
    if let installation = registration.installation {
      let devices = try found(.installation(installation), app)
      others = devices.filter { $0.id != owner?.id }
      let alike = devices.filter { $0.kind == kind && $0.activity == activity }
      // Where the caller names no sender, the token keeps its own.
      holder =
        alike.first { $0.sender == registration.sender ?? [] }
        ?? (registration.sender == nil ? owner.flatMap { owner in alike.first { $0.sender == owner.sender } } : nil)
      relatives = devices.filter { $0.kind != kind && $0.id != owner?.id }
      if kind == .liveActivity, holder == nil { try makeRoom(among: devices.filter { $0.id != owner?.id }) }
      let others = alike.count { $0.id != owner?.id }
      guard holder != nil || others < limits.sendersPerInstallation else {
        return .refused(
          .tooManySenders, reason: "installation: it has \(others) senders, at most \(limits.sendersPerInstallation) allowed")
      }
    }
    if let holder, Self.isStale(registration, holder, owner) {
      return .registration(RegistryKey(id: holder.id, salt: holder.salt).registration)
    }
    let existing = holder ?? owner
    if let refusal = try topicRefusal(registration, existing, app) { return refusal }

    var user: Int64?
    if let name = registration.user {
      let (known, devices) = try knownUser(name, app)
      if let known, known != existing?.user || existing?.state == .gone, devices >= limits.devicesPerUser,
        kind == .alert
      {
        return .refused(.tooManyDevices, reason: "user: at most \(limits.devicesPerUser) devices for a user")
      }
      let bound = try makeUser(name, registration.name, app, known: known)
      try startOver(Set((others + [holder, owner].compactMap(\.self)).map(\.counter)), for: bound)
      user = bound
    }

    let key: RegistryKey
    var replaced: [ReplacedToken] = []
    if let holder, holder.id != owner?.id {
      key = try replaceToken(of: holder, by: owner, registration, user, now)
      replaced = try replacedToken(SQL.replacedToken, [.int(holder.id), .int(holder.salt)])
    } else if let owner {
      key = try refresh(owner, registration, user, kind, activity, now)
    } else {
      key = try insert(registration, app, user, kind, activity, now)
    }
    if !registration.topics.isEmpty {
      var sets: [[SQLValue]] = []
      for topic in registration.topics { sets.append([.int(try makeTopic(topic, app)), .int(key.id)]) }
      try session.runEach(SQL.insertMember, sets) { _, _ in }
    }
    let sender = registration.sender ?? existing?.sender ?? []
    try share(key.id, kind, hasUser: user != nil, with: relatives.filter { $0.sender == sender })
    // A new token alone changes no counter.
    if let installation = registration.installation, holder == nil || owner != nil {
      try settleCounter(owner, others, installation, app)
    }
    return replaced.isEmpty ? .registration(key.registration) : .moved(key.registration, replaced)
  }

  /// For one more live activity of an installation.
  private func makeRoom(among devices: [Found]) throws(RegistryError) {
    let activities = devices.filter { $0.kind == .liveActivity }.sorted { $0.registeredAt < $1.registeredAt }
    for device in activities.dropLast(max(limits.activitiesPerInstallation - 1, 0)) { try removeDevice(device.id) }
  }

  /// The topics and the user of an installation's alert token are those of its other tokens as well.
  private func share(_ id: Int64, _ kind: TokenKind, hasUser: Bool, with relatives: [Found]) throws(RegistryError) {
    if kind == .alert {
      for other in relatives {
        try session.run(SQL.takeOverTopics, [.int(id), .int(other.id)])
        if hasUser { try session.run(SQL.takeOverUser, [.int(id), .int(other.id)]) }
      }
    } else if let alert = relatives.first(where: { $0.kind == .alert }) {
      try session.run(SQL.takeOverTopics, [.int(alert.id), .int(id)])
      if !hasUser { try session.run(SQL.takeOverUser, [.int(alert.id), .int(id)]) }
    }
  }

  /// What a device's token has replaced.
  private func replacedToken(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> [ReplacedToken] {
    var replaced: [ReplacedToken] = []
    try session.run(statement, values) { row in
      let sender = row.bytes(4)
      replaced.append(
        ReplacedToken(
          platform: Platform(rawValue: UInt8(truncatingIfNeeded: row.int(0))) ?? .apns, token: row.bytes(1),
          newToken: row.bytes(2),
          environment: DeviceEnvironment(rawValue: UInt8(truncatingIfNeeded: row.int(3))) ?? .unspecified,
          sender: sender.isEmpty ? nil : sender, installation: row.optionalBytes(5), user: row.optionalBytes(6),
          kind: TokenKind(rawValue: UInt8(truncatingIfNeeded: row.int(7))) ?? .alert))
    }
    return replaced
  }

  /// The tokens that a device's has replaced when it was registered before, each once, in this order.
  /// - Parameter other: one that is known to have been replaced; empty for none.
  func replacedBefore(
    by token: [UInt8], of registration: [UInt8], besides other: [UInt8]
  ) throws(RegistryError) -> [ReplacedToken] {
    guard let key = RegistryKey(registration, .registration) else { return [] }
    var seen: Set<[UInt8]> = []
    let latest = try replacedToken(SQL.replacedBefore, [.int(key.id), .blob(token), .blob(other)])
    return latest.filter { seen.insert($0.token).inserted }.reversed()
  }

  /// Whether a registration says of itself that the installation's token is a newer one, or that its own died since.
  private static func isStale(_ registration: Registration, _ holder: Found, _ owner: Found?) -> Bool {
    guard holder.id != owner?.id, let time = registration.registeredAt else { return false }
    return time < holder.registeredAt || (owner?.goneAt).map { $0 > time } ?? false
  }

  /// Whether the device would have more topics than it may. Those it has already aren't distinguished from new ones unless the sum comes
  /// near the limit.
  private func topicRefusal(
    _ registration: Registration, _ existing: Found?, _ app: Int64
  ) throws(RegistryError) -> ChangeAnswer? {
    guard !registration.topics.isEmpty else { return nil }
    var count = registration.topics.count
    if let existing {
      count += Int(try session.firstInt(SQL.countTopics, [.int(existing.id), .int(Int64(limits.topicsPerDevice))]) ?? 0)
      if count > limits.topicsPerDevice {
        for topic in registration.topics {
          guard let id = try knownTopic(topic, app) else { continue }
          if try session.firstInt(SQL.isMember, [.int(id), .int(existing.id)]) != nil { count -= 1 }
        }
      }
    }
    guard count > limits.topicsPerDevice else { return nil }
    return .refused(.tooManyTopics, reason: "topics: at most \(limits.topicsPerDevice) for a device")
  }

  /// A user's number, and how many devices it has, counted up to the limit.
  private func knownUser(_ name: [UInt8], _ app: Int64) throws(RegistryError) -> (id: Int64?, devices: Int) {
    var id: Int64?
    var devices = 0
    try session.run(SQL.userAndDevices, [.int(app), .text(name), .int(Int64(limits.devicesPerUser))]) { row in
      id = row.int(0)
      devices = Int(row.int(1))
    }
    return (id, devices)
  }

  /// The user's number, made or renamed where need be.
  func makeUser(_ name: [UInt8], _ display: [UInt8]?, _ app: Int64, known: Int64?) throws(RegistryError) -> Int64 {
    var known = known
    if known == nil { known = try session.firstInt(SQL.userByName, [.int(app), .text(name)]) }
    guard let id = known else {
      return try session.insert(SQL.insertUser, [.int(app), .text(name), .text(display)])
    }
    if let display { try session.run(SQL.renameUser, [.int(id), .text(display)]) }
    return id
  }

  private func insert(
    _ registration: Registration, _ app: Int64, _ user: Int64?, _ kind: TokenKind, _ activity: [UInt8], _ now: Int64
  ) throws(RegistryError) -> RegistryKey {
    let salt = makeSalt()
    let id = try session.insert(
      SQL.insertDevice,
      [
        .int(app), .int(Int64(registration.platform.rawValue)), .blob(registration.token), .int(salt),
        .int(Int64((registration.environment ?? .unspecified).rawValue)), .text(registration.sender ?? []), .int(now),
        .int(user), .text(registration.installation), .text(registration.locale), .text(registration.timeZone),
        .text(registration.appVersion), .int(registration.registered(by: now)), .int(Int64(kind.rawValue)), .text(activity),
      ])
    return RegistryKey(id: id, salt: salt)
  }

  /// The same token again: given fields overwrite, absent ones stay. A registration older than `gone_at` doesn't reactivate the device;
  /// one that doesn't say when it was made is the latest, whatever the clock of the worker that noted `gone_at`.
  private func refresh(
    _ device: Found, _ registration: Registration, _ user: Int64?, _ kind: TokenKind, _ activity: [UInt8], _ now: Int64
  ) throws(RegistryError) -> RegistryKey {
    let latest = max(now, device.goneAt ?? now)
    try session.run(
      SQL.refreshDevice,
      [
        .int(device.id), .int(registration.environment.map { Int64($0.rawValue) }), .text(registration.sender), .int(now),
        .int(user), .text(registration.installation), .text(registration.locale), .text(registration.timeZone),
        .text(registration.appVersion), .int(registration.registered(by: latest)),
        .int(Int64(kind.rawValue)), .text(activity),
      ])
    return RegistryKey(id: device.id, salt: device.salt)
  }

  /// A new token for an installation: the device keeps its number, and with it topics, groups and user; it gets a new registration,
  /// and the old one goes on as another name of the same device. Where the new token was registered by itself, that registration
  /// becomes another name too, and its topics are taken over unless they are another installation's.
  private func replaceToken(
    of device: Found, by owner: Found?, _ registration: Registration, _ user: Int64?, _ now: Int64
  ) throws(RegistryError) -> RegistryKey {
    if let owner {
      let isFree = try session.firstInt(SQL.isWithoutInstallation, [.int(owner.id)]) != nil
      if isFree {
        try session.run(SQL.takeOverTopics, [.int(owner.id), .int(device.id)])
        try session.run(SQL.takeOverGroups, [.int(owner.id), .int(device.id)])
      }
      try session.run(SQL.redirectAliases, [.int(owner.id), .int(device.id)])
      try session.run(SQL.insertAlias, [.int(owner.id), .int(owner.salt), .int(device.id)])
      try session.run(SQL.leaveTopics, [.int(owner.id)])
      try leaveGroups(owner.id)
      try session.run(SQL.deleteDevice, [.int(owner.id)])
    }
    let salt = makeSalt()
    try session.run(SQL.keepReplaced, [.int(device.id), .int(now), .blob(registration.token)])
    try session.run(
      SQL.replaceToken,
      [
        .int(device.id), .int(Int64(registration.platform.rawValue)), .blob(registration.token), .int(salt),
        .int(registration.environment.map { Int64($0.rawValue) }), .int(now), .int(user), .text(registration.locale),
        .text(registration.timeZone), .text(registration.appVersion), .int(registration.registered(by: now)),
      ])
    return RegistryKey(id: device.id, salt: salt)
  }
}

extension SQL {
  static let countTopics = Statement("SELECT count(*) FROM (SELECT 1 FROM members WHERE device = ?1 LIMIT ?2) m")
  static let isMember = Statement("SELECT device FROM members WHERE topic = ?1 AND device = ?2")
  static let userByName = Statement("SELECT id FROM users WHERE app = ?1 AND name = ?2")
  static let userAndDevices = Statement(
    """
    SELECT u.id, (SELECT count(*) FROM (SELECT 1 FROM devices d WHERE d.user_id = u.id AND d.state <> 2 AND d.kind = 0 LIMIT ?3) x)
    FROM users u WHERE u.app = ?1 AND u.name = ?2
    """)
  static let insertUser = Statement(insert: "INSERT INTO users (app, name, display) VALUES (?1, ?2, ?3)")
  static let renameUser = Statement("UPDATE users SET display = ?2 WHERE id = ?1")
  /// SQLite by itself would give the number of the last device out again once its row is removed; the removed one's is among the aliases.
  static let insertDevice = Statement(
    """
    INSERT INTO devices (id, \(insertedColumns))
    VALUES (1 + max(COALESCE((SELECT max(id) FROM devices), 0), COALESCE((SELECT max(id) FROM aliases), 0)), \(insertedValues))
    """,
    postgres: "INSERT INTO devices (\(insertedColumns)) VALUES (\(insertedValues)) RETURNING id")
  private static let insertedColumns =
    """
    app, platform, token, salt, environment, sender, state, registered_at, last_seen, user_id, installation, locale, time_zone,
    app_version, kind, activity
    """
  private static let insertedValues = "?1, ?2, ?3, ?4, ?5, ?6, 0, ?13, ?7, ?8, ?9, ?10, ?11, ?12, ?14, ?15"
  /// A token keeps its sender where it belongs to an installation and the caller names none: the sender is part of that key.
  static let refreshDevice = Statement(
    """
    UPDATE devices SET environment = COALESCE(?2, environment),
      sender = CASE WHEN CAST(?6 AS TEXT) IS NULL AND installation IS NOT NULL THEN sender ELSE COALESCE(?3, sender) END,
      state = CASE WHEN gone_at > ?10 THEN state ELSE 0 END, reason = CASE WHEN gone_at > ?10 THEN reason END,
      gone_at = CASE WHEN gone_at > ?10 THEN gone_at END,
      registered_at = CASE WHEN registered_at > ?10 THEN registered_at ELSE ?10 END, last_seen = ?4, user_id = COALESCE(?5, user_id),
      installation = COALESCE(?6, installation), locale = COALESCE(?7, locale), time_zone = COALESCE(?8, time_zone),
      app_version = COALESCE(?9, app_version), kind = ?11, activity = ?12, marked_at = NULL, stale_claim = NULL
    WHERE id = ?1
    """)
  static let installation = Statement("SELECT installation FROM devices WHERE id = ?1")
  static let insertMember = Statement("INSERT INTO members (topic, device) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
  static let isWithoutInstallation = Statement("SELECT id FROM devices WHERE id = ?1 AND installation IS NULL")
  static let takeOverTopics = Statement(
    """
    INSERT INTO members (topic, device) SELECT topic, CAST(?2 AS BIGINT) FROM members WHERE device = ?1 ON CONFLICT DO NOTHING
    """)
  static let takeOverGroups = Statement(
    """
    INSERT INTO group_members (group_id, kind, member)
    SELECT group_id, 0, CAST(?2 AS BIGINT) FROM group_members WHERE kind = 0 AND member = ?1 ON CONFLICT DO NOTHING
    """)
  static let takeOverUser = Statement(
    "UPDATE devices SET user_id = (SELECT o.user_id FROM devices o WHERE o.id = ?1) WHERE id = ?2")
  private static let replacedQuery =
    """
    SELECT a.platform, a.token, COALESCE(a.new_token, d.token), d.environment, d.sender, d.installation, u.name, d.kind
    FROM aliases a JOIN devices d ON d.id = a.device LEFT JOIN users u ON u.id = d.user_id
    """
  static let replacedToken = Statement("\(replacedQuery) WHERE a.id = ?1 AND a.salt = ?2")
  static let replacedBefore = Statement(
    """
    \(replacedQuery) WHERE a.device = ?1 AND a.token <> ?2 AND a.token <> ?3 AND COALESCE(a.new_token, d.token) = ?2
    ORDER BY a.replaced_at DESC LIMIT 20
    """)
  static let redirectAliases = Statement("UPDATE aliases SET device = ?2 WHERE device = ?1")
  static let insertAlias = Statement(
    "INSERT INTO aliases (id, salt, device) VALUES (?1, ?2, ?3) ON CONFLICT (id, salt) DO UPDATE SET device = excluded.device")
  static let keepReplaced = Statement(keepReplaced("BLOB"), postgres: keepReplaced("BYTEA"))
  private static func keepReplaced(_ bytes: String) -> String {
    """
    INSERT INTO aliases (id, salt, device, platform, token, replaced_at, new_token)
    SELECT id, salt, id, platform, token, CAST(?2 AS BIGINT), CAST(?3 AS \(bytes)) FROM devices WHERE id = ?1
    """
  }
  static let deleteDevice = Statement("DELETE FROM devices WHERE id = ?1")
  static let replaceToken = Statement(
    """
    UPDATE devices SET platform = ?2, token = ?3, salt = ?4, environment = COALESCE(?5, environment), state = 0, reason = NULL,
      gone_at = NULL, registered_at = ?11, last_seen = ?6, user_id = COALESCE(?7, user_id), locale = COALESCE(?8, locale),
      time_zone = COALESCE(?9, time_zone), app_version = COALESCE(?10, app_version), marked_at = NULL,
      stale_claim = NULL
    WHERE id = ?1
    """)
}
