import PushCore

extension DeviceStore {
  /// The members for a token kind: at most `limit`, with numbers above `cursor` (0 at first) and up to `highWater`. A device
  /// that stays a member is on exactly one page, even if others join or leave.
  /// - Parameter goneSince: devices that are gone since this time are included, in Unix milliseconds; nil for none. An earlier attempt
  ///   may have sent to them.
  public func page(
    of audience: Audience, kind: TokenKind, app: [UInt8], after cursor: Int64, upTo highWater: Int64, limit: Int,
    goneSince: Int64? = nil
  ) throws(RegistryError) -> AudiencePage {
    try session.reading { () throws(RegistryError) in
      let none = AudiencePage(devices: DeviceRows(), next: cursor, isLast: true)
      guard let app = try knownApp(app), limit > 0 else { return none }
      if case .condition(let condition) = audience {
        return try readCondition(condition, kind, app, cursor, highWater, limit, goneSince)
      }
      guard let scope = try scope(of: audience, app) else { return none }
      return try read(scope, kind, cursor, highWater, limit, goneSince)
    }
  }

  /// The devices that an audience selects by one number, and the statements for them.
  struct Scope {
    /// The number of the topic, user, group or application.
    let owner: Int64
    let page: Statement
    let sample: Statement
    let isReached: Statement
    /// True for a user or group. Its pages select the kind, so that unwanted devices don't count towards the limit, and have stale
    /// devices too.
    var isOfFew = false
  }

  /// Nil if the topic, user or group is unknown, and for a condition.
  func scope(of audience: Audience, _ app: Int64) throws(RegistryError) -> Scope? {
    switch audience {
    case .all: return Scope(owner: app, page: SQL.appPage, sample: SQL.sampleApp, isReached: SQL.isReached)
    case .topic(let name):
      guard let topic = try knownTopic(name, app) else { return nil }
      return Scope(owner: topic, page: SQL.topicPage, sample: SQL.sampleMembers, isReached: SQL.isReachedByTopic)
    case .user(let name):
      guard let user = try knownUser(name, app) else { return nil }
      return Scope(owner: user, page: SQL.userPage, sample: SQL.sampleUser, isReached: SQL.isReachedByUser, isOfFew: true)
    case .group(let key):
      guard let id = try readGroup(.key(key), app)?.key.id else { return nil }
      return Scope(owner: id, page: SQL.groupPage, sample: SQL.sampleGroup, isReached: SQL.isReachedByGroup, isOfFew: true)
    case .condition: return nil
    }
  }

  /// Reads one device more than the limit, which shows whether the page is the last.
  private func read(
    _ scope: Scope, _ kind: TokenKind, _ cursor: Int64, _ highWater: Int64, _ limit: Int, _ goneSince: Int64?
  ) throws(RegistryError) -> AudiencePage {
    var devices = DeviceRows()
    devices.reserve(limit)
    var visited = 0
    var last = cursor
    let values: [SQLValue] = [.int(scope.owner), .int(cursor), .int(highWater), .int(limit + 1)]
    let ofFew: [SQLValue] = scope.isOfFew ? [.int(kind), .int(goneSince ?? .max)] : []
    try session.run(scope.page, values + ofFew) { row in
      visited += 1
      guard visited <= limit else { return }
      last = row.int(0)
      devices.append(row, onlyFor: scope.isOfFew ? nil : kind, goneSince: goneSince)
    }
    return AudiencePage(devices: devices, next: last, isLast: visited <= limit)
  }

  /// Merges the topics' members by number, and evaluates each device once, by the set of its topics. If the condition includes
  /// devices without these topics, all devices of the app are merged too.
  private func readCondition(
    _ condition: Condition, _ kind: TokenKind, _ app: Int64, _ cursor: Int64, _ highWater: Int64, _ limit: Int,
    _ goneSince: Int64?
  ) throws(RegistryError) -> AudiencePage {
    var streams: [IDStream] = []
    for (index, name) in condition.topics.enumerated() {
      guard let topic = try knownTopic(name, app) else { continue }
      streams.append(IDStream(statement: SQL.memberIDs, owner: topic, bit: 1 << UInt32(index), cursor: cursor))
    }
    if condition.matches(0) { streams.append(IDStream(statement: SQL.appDeviceIDs, owner: app, bit: 0, cursor: cursor)) }

    var ids: [Int64] = []
    ids.reserveCapacity(limit)
    var examined = 0
    var last = cursor
    var isLast = false
    while ids.count < limit, examined < Self.examinedPerPage {
      var lowest = Int64.max
      for index in streams.indices {
        if streams[index].isDrained { try refill(&streams[index], highWater, limit) }
        if let id = streams[index].first { lowest = min(lowest, id) }
      }
      guard lowest != .max else {
        isLast = true
        break
      }
      var subscribed: UInt32 = 0
      for index in streams.indices where streams[index].first == lowest {
        subscribed |= streams[index].bit
        streams[index].at += 1
      }
      if condition.matches(subscribed) { ids.append(lowest) }
      last = lowest
      examined += 1
    }

    var devices = DeviceRows()
    devices.reserve(ids.count)
    try session.runEach(SQL.devicesByID, ids.map { .int($0) }) { _, row in
      devices.append(row, onlyFor: kind, goneSince: goneSince)
    }
    return AudiencePage(devices: devices, next: last, isLast: isLast)
  }

  private func refill(_ stream: inout IDStream, _ highWater: Int64, _ limit: Int) throws(RegistryError) {
    guard !stream.isEnded else { return }
    let wanted = max(64, min(limit, 4096))
    stream.ids = try session.ints(
      stream.statement, [.int(stream.owner), .int(stream.cursor), .int(highWater), .int(wanted)])
    stream.at = 0
    stream.isEnded = stream.ids.count < wanted
    stream.cursor = stream.ids.last ?? stream.cursor
  }

  /// Maximum devices to evaluate per page. Limits the time of a condition that few devices meet.
  private static let examinedPerPage = 50_000

  // MARK: Estimate

  public func survey(_ audience: Audience, app: [UInt8]) throws(RegistryError) -> AudienceEstimate {
    var survey = AudienceEstimate(exists: false, estimate: 0)
    guard let app = try knownApp(app) else { return survey }
    if let (lowest, highest) = try session.first(SQL.deviceRange, [.int(app)], { ($0.int(0), $0.int(1)) }) {
      (survey.lowWater, survey.highWater) = (max(lowest - 1, 0), highest)
    }
    if case .condition(let condition) = audience {
      var counts: [Int64] = []
      var known = 0
      for name in condition.topics {
        guard let topic = try knownTopic(name, app) else {
          counts.append(0)
          continue
        }
        known += 1
        counts.append(try count(SQL.sampleMembers, topic, survey))
      }
      // If devices without any of these topics match, the audience exists even if no topic does.
      guard known > 0 || condition.matches(0) else { return survey }
      let all = condition.matches(0) ? try count(SQL.sampleApp, app, survey) : Int64.max
      survey.estimate = Self.bound(condition.expression, counts, all)
    } else {
      guard let scope = try scope(of: audience, app) else { return survey }
      survey.estimate = try count(scope.sample, scope.owner, survey)
      guard audience != .all || survey.estimate > 0 else { return survey }
    }
    survey.exists = true
    return survey
  }

  /// An upper bound of the number of devices that meet an expression.
  private static func bound(_ expression: Condition.Expression, _ counts: [Int64], _ all: Int64) -> Int64 {
    switch expression {
    case .topic(let index): min(counts[index], all)
    case .not(.topic(let index)): all == .max ? all : max(0, all - counts[index])
    case .not: all
    case .and(let left, let right): min(bound(left, counts, all), bound(right, counts, all))
    case .or(let left, let right):
      {
        let (sum, overflow) = bound(left, counts, all).addingReportingOverflow(bound(right, counts, all))
        return overflow ? all : min(sum, all)
      }()
    }
  }

  /// Counts the first members. If there are more, it assumes the same density among the higher device numbers.
  private func count(_ statement: Statement, _ owner: Int64, _ survey: AudienceEstimate) throws(RegistryError) -> Int64 {
    let (counted, reached) =
      try session.first(statement, [.int(owner), .int(Self.sampleSize)]) { ($0.int(0), $0.int(1)) } ?? (0, 0)
    guard counted >= Self.sampleSize, survey.lowWater < reached, reached < survey.highWater else { return counted }
    return Int64(Double(counted) * Double(survey.highWater - survey.lowWater) / Double(reached - survey.lowWater))
  }

  private static let sampleSize: Int64 = 100_000
}

/// The numbers of one topic's members, or of all devices, read in portions.
private struct IDStream {
  let statement: Statement
  let owner: Int64
  /// The topic's bit in the condition's mask; 0 for the stream of all devices.
  let bit: UInt32
  var cursor: Int64
  var ids: [Int64] = []
  var at = 0
  var isEnded = false

  var isDrained: Bool { at == ids.count }
  var first: Int64? { at < ids.count ? ids[at] : nil }
}

extension SQL {
  /// The first columns of every statement that reads ``DeviceRows``.
  static let deviceColumns =
    "d.id, d.salt, d.registered_at, d.platform, d.environment, d.state, d.token, d.sender, d.kind, d.gone_at"
  /// `CROSS JOIN` fixes SQLite's join order: members in order, each with a seek to the neighbouring device.
  static let topicPage = Statement(
    """
    SELECT \(deviceColumns) FROM members m CROSS JOIN devices d ON d.id = m.device
    WHERE m.topic = ?1 AND m.device > ?2 AND m.device <= ?3 ORDER BY m.device LIMIT ?4
    """,
    postgres: """
      SELECT \(deviceColumns)
      FROM (SELECT device FROM members WHERE topic = ?1 AND device > ?2 AND device <= ?3 ORDER BY device LIMIT ?4) m
      JOIN devices d ON d.id = m.device ORDER BY d.id
      """)
  static let appPage = Statement(
    "SELECT \(deviceColumns) FROM devices d WHERE d.app = ?1 AND d.id > ?2 AND d.id <= ?3 ORDER BY d.id LIMIT ?4")
  static let userPage = Statement(
    """
    SELECT \(deviceColumns) FROM devices d WHERE d.user_id = ?1 AND d.id > ?2 AND d.id <= ?3 AND \(isWantedOfFew)
    ORDER BY d.id LIMIT ?4
    """)
  private static let isWantedOfFew =
    "(d.state <> 2 OR d.gone_at > ?6) AND (d.kind = ?5 OR d.platform <> \(Platform.apns.rawValue))"
  static let groupPage = Statement(
    """
    SELECT \(deviceColumns) FROM devices d WHERE d.id > ?2 AND d.id <= ?3 AND \(isWantedOfFew) AND d.id IN (
      SELECT g.member FROM group_members g WHERE g.group_id = ?1 AND g.kind = 0
      UNION SELECT s.id FROM group_members g JOIN devices o ON o.id = g.member JOIN devices s ON s.app = o.app
        AND s.installation = o.installation AND s.sender = o.sender AND s.kind <> 0
      WHERE g.group_id = ?1 AND g.kind = 0
      UNION SELECT u.id FROM group_members g JOIN devices u ON u.user_id = g.member WHERE g.group_id = ?1 AND g.kind = 1)
    ORDER BY d.id LIMIT ?4
    """)
  static let memberIDs = Statement(
    "SELECT device FROM members WHERE topic = ?1 AND device > ?2 AND device <= ?3 ORDER BY device LIMIT ?4")
  static let appDeviceIDs = Statement(
    "SELECT id FROM devices WHERE app = ?1 AND id > ?2 AND id <= ?3 ORDER BY id LIMIT ?4")
  static let devicesByID = Statement(rows: deviceColumns, from: "devices d WHERE d.id = ?1", .int)
  /// The lowest and the highest number of an application's devices; null if it has none.
  static let deviceRange = Statement(
    """
    SELECT (SELECT id FROM devices WHERE app = ?1 ORDER BY id LIMIT 1), (SELECT id FROM devices WHERE app = ?1 ORDER BY id DESC LIMIT 1)
    """)
  static let sampleMembers = Statement(
    "SELECT count(*), max(device) FROM (SELECT device FROM members WHERE topic = ?1 ORDER BY device LIMIT ?2) m")
  static let sampleApp = Statement(
    "SELECT count(*), max(id) FROM (SELECT id FROM devices WHERE app = ?1 ORDER BY id LIMIT ?2) d")
  static let sampleUser = Statement(
    "SELECT count(*), 0 FROM (SELECT id FROM devices WHERE user_id = ?1 AND state <> 2 LIMIT ?2) d")
  static let sampleGroup = Statement(
    """
    SELECT count(*), 0 FROM (
      SELECT g.member FROM group_members g WHERE g.group_id = ?1 AND g.kind = 0
      UNION SELECT u.id FROM group_members g JOIN devices u ON u.user_id = g.member WHERE g.group_id = ?1 AND g.kind = 1
      LIMIT ?2) d
    """)
}
