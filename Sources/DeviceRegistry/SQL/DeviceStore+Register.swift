import PushCore

/// Registers devices: by token, or by installation if the caller names one.
extension DeviceStore {
  func register(_ registration: Registration, _ now: Int64) throws(RegistryError) -> ChangeAnswer {
    let app = try makeApp(registration.app)
    let former = try stored([TokenKey(app: app, platform: registration.platform, token: registration.token)])[0]
    let owner = try found(.token(former.platform, former.token), app).first
    let kind = registration.kind ?? owner?.kind ?? .alert
    let activity = kind == .liveActivity ? registration.activity ?? owner?.activity ?? [] : []
    var registration = registration
    registration.token = registration.token(after: former.token)
    // If kind or activity changes, the installation may already have a token for the new one. That token is replaced.
    if let owner, registration.installation == nil, owner.kind != kind || owner.activity != activity {
      registration.installation = owner.installation
    }
    var holder: Found?
    var relatives: [Found] = []
    var others: [Found] = []
    if let installation = registration.installation {
      let devices = try found(.installation(installation), app)
      others = devices.filter { $0.id != owner?.id }
      let alike = devices.filter { $0.kind == kind && $0.activity == activity }
      // If the caller names no sender, the token keeps its sender.
      holder =
        alike.first { $0.sender == registration.sender ?? [] }
        ?? (registration.sender == nil ? owner.flatMap { owner in alike.first { $0.sender == owner.sender } } : nil)
      relatives = others.filter { $0.kind != kind }
      if kind == .liveActivity, holder == nil { try makeRoom(among: others) }
      let others = alike.count { $0.id != owner?.id }
      guard holder != nil || others < limits.sendersPerInstallation else {
        return .refused(
          .tooManySenders, reason: "installation: it has \(others) senders, at most \(limits.sendersPerInstallation) allowed")
      }
    }
    if let holder, Self.isStale(registration, holder, owner) {
      return .registration(holder.key.registration)
    }
    let existing = holder ?? owner
    if let refusal = try topicRefusal(registration, existing, app) { return refusal }

    var user: Int64?
    if let name = registration.user {
      let known = try session.first(SQL.userAndDevices, [.int(app), .text(name), .int(limits.devicesPerUser)]) { row in
        (id: row.int(0), devices: row.int(1))
      }
      if let known, known.id != existing?.user || existing?.state == .gone, known.devices >= limits.devicesPerUser,
        kind == .alert
      {
        return .refused(.tooManyDevices, reason: "user: at most \(limits.devicesPerUser) devices for a user")
      }
      let bound = try makeUser(name, registration.name, app, known: known?.id)
      try startOver(Set((others + [holder, owner].compactMap(\.self)).map(\.counter)), for: bound)
      user = bound
    }

    /// The last values of an insert or a refresh.
    func rest(latest: Int64) -> [SQLValue] {
      [
        .int(now), .int(user), .text(registration.installation), .text(registration.locale), .text(registration.timeZone),
        .text(registration.appVersion), .int(registration.registered(by: latest)), .int(kind), .text(activity),
      ]
    }

    let key: RegistryKey
    var replaced: [ReplacedToken] = []
    if let holder, holder.id != owner?.id {
      key = try replaceToken(of: holder, by: owner, registration, now)
      try refresh(holder, registration, rest(latest: now))
      replaced = try replacedToken(SQL.replacedToken, [.int(holder.id), .int(holder.key.salt)])
    } else if let owner {
      key = owner.key
      // A registration without a time counts as the latest, whatever clock set `gone_at`.
      try refresh(owner, registration, rest(latest: max(now, owner.goneAt ?? now)))
      // The subscription may have other keys now.
      if former.token != registration.token {
        try session.run(SQL.renewToken, [.int(owner.id), .blob(registration.token)])
      }
    } else {
      key = try insert(registration, app, rest(latest: now))
    }
    if !registration.topics.isEmpty {
      var sets: [SQLValue] = []
      for topic in registration.topics { sets += [.int(try makeTopic(topic, app)), .int(key.id)] }
      try session.runEach(SQL.insertMember, sets)
    }
    let sender = registration.sender ?? existing?.sender ?? []
    try share(key.id, kind, hasUser: user != nil, with: relatives.filter { $0.sender == sender })
    // A new token alone changes no counter.
    if let installation = registration.installation, holder == nil || owner != nil {
      try settleCounter(owner, others, installation, app)
    }
    return replaced.isEmpty ? .registration(key.registration) : .moved(key.registration, replaced)
  }

  /// Removes the oldest live activities of an installation, to make room for one more.
  private func makeRoom(among devices: [Found]) throws(RegistryError) {
    let activities = devices.filter { $0.kind == .liveActivity }.sorted { $0.registeredAt < $1.registeredAt }
    for device in activities.dropLast(max(limits.activitiesPerInstallation - 1, 0)) { try removeDevice(device.id) }
  }

  /// The other tokens of an installation share the topics and the user of its alert token.
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

  private func replacedToken(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> [ReplacedToken] {
    try session.all(statement, values) { row in
      let sender = row.bytes(4)
      return ReplacedToken(
        platform: row.platform(0), token: row.bytes(1), newToken: row.bytes(2), environment: row.environment(3),
        sender: sender.isEmpty ? nil : sender, installation: row.optionalBytes(5), user: row.optionalBytes(6),
        kind: row.kind(7))
    }
  }

  /// The tokens that a device's token replaced in earlier registrations, each once, in order.
  /// - Parameters:
  ///   - asked: has the device's token.
  ///   - other: a token that is known to be replaced; empty for none.
  func replacedBefore(
    by asked: Registration, _ registration: [UInt8], besides other: [UInt8]
  ) throws(RegistryError) -> [ReplacedToken] {
    guard let key = RegistryKey(registration, .registration), let app = try knownApp(asked.app) else { return [] }
    let token = try stored([TokenKey(app: app, platform: asked.platform, token: asked.token)])[0].token
    var seen: Set<[UInt8]> = []
    let latest = try replacedToken(SQL.replacedBefore, [.int(key.id), .blob(token), .blob(other)])
    return latest.filter { seen.insert($0.token).inserted }.reversed()
  }

  /// True if the registration's own time is before that of the installation's token, or before the death of its own token.
  private static func isStale(_ registration: Registration, _ holder: Found, _ owner: Found?) -> Bool {
    guard holder.id != owner?.id, let time = registration.registeredAt else { return false }
    return time < holder.registeredAt || (owner?.goneAt).map { $0 > time } ?? false
  }

  /// The refusal if the device would exceed its topic limit. Existing and new topics are only distinguished near the limit.
  private func topicRefusal(
    _ registration: Registration, _ existing: Found?, _ app: Int64
  ) throws(RegistryError) -> ChangeAnswer? {
    guard !registration.topics.isEmpty else { return nil }
    var count = registration.topics.count
    if let existing {
      count += Int(try session.firstInt(SQL.countTopics, [.int(existing.id), .int(limits.topicsPerDevice)]) ?? 0)
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

  /// The user's number. Creates or renames the user if needed.
  func makeUser(_ name: [UInt8], _ display: [UInt8]?, _ app: Int64, known: Int64?) throws(RegistryError) -> Int64 {
    var known = known
    if known == nil { known = try knownUser(name, app) }
    guard let id = known else {
      return try session.insert(SQL.insertUser, [.int(app), .text(name), .text(display)])
    }
    if let display { try session.run(SQL.renameUser, [.int(id), .text(display)]) }
    return id
  }

  private func insert(_ registration: Registration, _ app: Int64, _ rest: [SQLValue]) throws(RegistryError) -> RegistryKey {
    let salt = makeSalt()
    let values: [SQLValue] = [
      .int(app), .int(registration.platform), .blob(registration.token), .int(salt),
      .int(registration.environment ?? .unspecified), .text(registration.sender ?? []),
    ]
    return RegistryKey(id: try session.insert(SQL.insertDevice, values + rest), salt: salt)
  }

  /// Registers the device again: given fields overwrite, others stay. A registration older than `gone_at` doesn't reactivate the
  /// device.
  private func refresh(_ device: Found, _ registration: Registration, _ rest: [SQLValue]) throws(RegistryError) {
    let values: [SQLValue] = [.int(device.id), .int(registration.environment), .text(registration.sender)]
    try session.run(SQL.refreshDevice, values + rest)
  }

  /// Gives an installation a new token. The device keeps its number, topics, groups and user. It gets a new registration, and
  /// the old registration becomes an alias. If the new token was registered separately, that registration becomes an alias too.
  /// Its topics and groups move to the device, unless they belong to another installation.
  private func replaceToken(
    of device: Found, by owner: Found?, _ registration: Registration, _ now: Int64
  ) throws(RegistryError) -> RegistryKey {
    if let owner {
      if owner.installation == nil {
        try session.run(SQL.takeOverTopics, [.int(owner.id), .int(device.id)])
        try session.run(SQL.takeOverGroups, [.int(owner.id), .int(device.id)])
      }
      try session.run(SQL.redirectAliases, [.int(owner.id), .int(device.id)])
      try session.run(SQL.insertAlias, [.int(owner.id), .int(owner.key.salt), .int(device.id)])
      try session.run(SQL.leaveTopics, [.int(owner.id)])
      try leaveGroups(owner.id)
      try session.run(SQL.deleteDevice, [.int(owner.id)])
    }
    let salt = makeSalt()
    try session.run(SQL.keepReplaced, [.int(device.id), .int(now), .blob(registration.token)])
    try session.run(
      SQL.replaceToken, [.int(device.id), .int(registration.platform), .blob(registration.token), .int(salt)])
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
  /// SQLite alone would reuse the number of the last device after its removal. Removed numbers are in `aliases`.
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
  /// A token of an installation keeps its sender if the caller names no installation, because the sender is part of the key.
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
  static let insertMember = Statement("INSERT INTO members (topic, device) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
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
  /// The new token begins as an active one. `refreshDevice` follows.
  static let replaceToken = Statement(
    "UPDATE devices SET platform = ?2, token = ?3, salt = ?4, gone_at = NULL, registered_at = 0 WHERE id = ?1")
}
