import PushCore

/// Registering a device: by its token, or by its installation where the caller names one.
extension SQLStore {
  func register(_ registration: Registration, _ now: Int64) throws(StoreError) -> ChangeAnswer {
    let app = try makeApp(registration.app)
    let platform = SQLValue.int(Int64(registration.platform.rawValue))
    var holder: Found?
    var tokenOwner: Found?
    let isPlain = registration.installation == nil && registration.user == nil && registration.topics.isEmpty
    if !isPlain {
      tokenOwner = try found(.token(registration.platform, registration.token), app).first
    }
    if let installation = registration.installation {
      holder = try read(
        SQL.deviceBySender, [.int(app), .text(installation), .text(registration.sender ?? [])])
      if holder == nil {
        let senders = try session.firstInt(SQL.countSenders, [.int(app), .text(installation), .int(tokenOwner?.id ?? 0)]) ?? 0
        guard senders < Int64(limits.sendersPerInstallation) else {
          return .refused(
            .tooManySenders, reason: "installation: it has \(senders) senders, at most \(limits.sendersPerInstallation) allowed"
          )
        }
      }
    }
    let existing = holder ?? tokenOwner
    if let refusal = try refusal(registration, existing, app) { return refusal }

    let user: Int64? =
      if let name = registration.user {
        try session.firstInt(SQL.upsertUser, [.int(app), .text(name), .text(registration.name)])
      } else { nil }

    let key: RegistryKey
    if let holder, holder.id != tokenOwner?.id {
      key = try replaceToken(of: holder, by: tokenOwner, registration, platform, user, now)
    } else {
      key = try upsert(registration, app, platform, user, now)
    }
    if !registration.topics.isEmpty {
      var sets: [[SQLValue]] = []
      for topic in registration.topics { sets.append([.int(try makeTopic(topic, app)), .int(key.id)]) }
      try session.runEach(SQL.insertMember, sets) { _, _ in }
    }
    return .registration(key.registration)
  }

  /// A limit that the registration would break.
  private func refusal(
    _ registration: Registration, _ existing: Found?, _ app: Int64
  ) throws(StoreError) -> ChangeAnswer? {
    if registration.topics.count > limits.topicsPerDevice || (existing != nil && !registration.topics.isEmpty) {
      let before =
        try existing.map { device throws(StoreError) in
          try session.firstInt(SQL.countTopics, [.int(device.id), .int(Int64(limits.topicsPerDevice) + 1)]) ?? 0
        } ?? 0
      // Those it has already aren't told apart unless the sum comes near the limit.
      var after = before + Int64(registration.topics.count)
      if after > Int64(limits.topicsPerDevice), let existing {
        for topic in registration.topics {
          guard let id = try knownTopic(topic, app) else { continue }
          if try session.firstInt(SQL.isMember, [.int(id), .int(existing.id)]) != nil { after -= 1 }
        }
      }
      guard after <= Int64(limits.topicsPerDevice) else {
        return .refused(.tooManyTopics, reason: "topics: at most \(limits.topicsPerDevice) for a device")
      }
    }
    guard let name = registration.user else { return nil }
    guard let user = try session.firstInt(SQL.userByName, [.int(app), .text(name)]), user != existing?.user else { return nil }
    let devices = try session.firstInt(SQL.countUserDevices, [.int(user), .int(Int64(limits.devicesPerUser))]) ?? 0
    guard devices < Int64(limits.devicesPerUser) else {
      return .refused(.tooManyDevices, reason: "user: at most \(limits.devicesPerUser) devices for a user")
    }
    return nil
  }

  private func upsert(
    _ registration: Registration, _ app: Int64, _ platform: SQLValue, _ user: Int64?, _ now: Int64
  ) throws(StoreError) -> RegistryKey {
    var key: RegistryKey?
    try session.run(
      SQL.upsertDevice,
      [
        .int(app), platform, .blob(registration.token), .int(RegistryKey.makeSalt()),
        .int(registration.environment.map { Int64($0.rawValue) }), .text(registration.sender), .int(now), .int(user),
        .text(registration.installation), .text(registration.locale), .text(registration.timeZone),
        .text(registration.appVersion),
      ]
    ) { row in key = RegistryKey(id: row.int(0), salt: row.int(1)) }
    guard let key else { throw Self.noRow }
    return key
  }

  /// A new token for an installation: the device keeps its number, and with it topics, groups and user; it gets a new registration,
  /// and the old one goes on as another name of the same device. Where the new token was registered by itself, that registration
  /// becomes another name too, and its topics are taken over unless they are another installation's.
  private func replaceToken(
    of device: Found, by owner: Found?, _ registration: Registration, _ platform: SQLValue, _ user: Int64?, _ now: Int64
  ) throws(StoreError) -> RegistryKey {
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
    let salt = RegistryKey.makeSalt()
    try session.run(SQL.insertAlias, [.int(device.id), .int(device.salt), .int(device.id)])
    try session.run(
      SQL.replaceToken,
      [
        .int(device.id), platform, .blob(registration.token), .int(salt),
        .int(registration.environment.map { Int64($0.rawValue) }), .int(now), .int(user), .text(registration.locale),
        .text(registration.timeZone), .text(registration.appVersion),
      ])
    return RegistryKey(id: device.id, salt: salt)
  }

  private func read(_ statement: Statement, _ values: [SQLValue]) throws(StoreError) -> Found? {
    var result: Found?
    try session.run(statement, values) { row in
      result = Found(
        id: row.int(0), salt: row.int(1), user: row.optionalInt(2),
        state: DeviceState(rawValue: UInt8(truncatingIfNeeded: row.int(3))) ?? .gone)
    }
    return result
  }
}

extension SQL {
  static let deviceBySender = Statement(
    "SELECT id, salt, user_id, state FROM devices WHERE app = ?1 AND installation = ?2 AND sender = ?3")
  static let countSenders = Statement("SELECT count(*) FROM devices WHERE app = ?1 AND installation = ?2 AND id <> ?3")
  static let countTopics = Statement("SELECT count(*) FROM (SELECT 1 FROM members WHERE device = ?1 LIMIT ?2) m")
  static let isMember = Statement("SELECT device FROM members WHERE topic = ?1 AND device = ?2")
  static let userByName = Statement("SELECT id FROM users WHERE app = ?1 AND name = ?2")
  static let countUserDevices = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM devices WHERE user_id = ?1 AND state <> 2 LIMIT ?2) d")
  static let upsertUser = Statement(
    """
    INSERT INTO users (app, name, display) VALUES (?1, ?2, ?3)
    ON CONFLICT (app, name) DO UPDATE SET display = COALESCE(excluded.display, users.display) RETURNING id
    """)
  /// A token keeps its sender where it belongs to an installation and the caller names none: the sender is part of that key.
  static let upsertDevice = Statement(
    """
    INSERT INTO devices (app, platform, token, salt, environment, sender, state, registered_at, last_seen, user_id, installation,
      locale, time_zone, app_version)
    VALUES (?1, ?2, ?3, ?4, COALESCE(?5, 0), COALESCE(?6, ''), 0, ?7, ?7, ?8, ?9, ?10, ?11, ?12)
    ON CONFLICT (app, platform, token) DO UPDATE SET
      environment = COALESCE(?5, devices.environment),
      sender = CASE WHEN ?9 IS NULL AND devices.installation IS NOT NULL THEN devices.sender
        ELSE COALESCE(?6, devices.sender) END,
      state = 0, reason = NULL, gone_at = NULL, registered_at = excluded.registered_at, last_seen = excluded.last_seen,
      user_id = COALESCE(excluded.user_id, devices.user_id),
      installation = COALESCE(excluded.installation, devices.installation),
      locale = COALESCE(excluded.locale, devices.locale), time_zone = COALESCE(excluded.time_zone, devices.time_zone),
      app_version = COALESCE(excluded.app_version, devices.app_version)
    RETURNING id, salt
    """,
    postgres: """
      INSERT INTO devices (app, platform, token, salt, environment, sender, state, registered_at, last_seen, user_id, installation,
        locale, time_zone, app_version)
      VALUES (?1, ?2, ?3, ?4, COALESCE(?5::bigint, 0), COALESCE(?6::text, ''), 0, ?7, ?7, ?8, ?9::text, ?10, ?11, ?12)
      ON CONFLICT (app, platform, token) DO UPDATE SET
        environment = COALESCE(?5::bigint, devices.environment),
        sender = CASE WHEN ?9::text IS NULL AND devices.installation IS NOT NULL THEN devices.sender
          ELSE COALESCE(?6::text, devices.sender) END,
        state = 0, reason = NULL, gone_at = NULL, registered_at = excluded.registered_at, last_seen = excluded.last_seen,
        user_id = COALESCE(excluded.user_id, devices.user_id),
        installation = COALESCE(excluded.installation, devices.installation),
        locale = COALESCE(excluded.locale, devices.locale), time_zone = COALESCE(excluded.time_zone, devices.time_zone),
        app_version = COALESCE(excluded.app_version, devices.app_version)
      RETURNING id, salt
      """)
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
  static let redirectAliases = Statement("UPDATE aliases SET device = ?2 WHERE device = ?1")
  static let insertAlias = Statement(
    "INSERT INTO aliases (id, salt, device) VALUES (?1, ?2, ?3) ON CONFLICT (id, salt) DO UPDATE SET device = excluded.device")
  static let deleteDevice = Statement("DELETE FROM devices WHERE id = ?1")
  static let replaceToken = Statement(
    """
    UPDATE devices SET platform = ?2, token = ?3, salt = ?4, environment = COALESCE(?5, environment), state = 0, reason = NULL,
      gone_at = NULL, registered_at = ?6, last_seen = ?6, user_id = COALESCE(?7, user_id), locale = COALESCE(?8, locale),
      time_zone = COALESCE(?9, time_zone), app_version = COALESCE(?10, app_version)
    WHERE id = ?1
    """)
}
