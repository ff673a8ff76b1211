import PushCore

extension DeviceStore {
  public func device(_ reference: DeviceReference, app: [UInt8]) throws(RegistryError) -> [DeviceRecord] {
    guard let app = try knownApp(app) else { return [] }
    return try records(of: found(reference, app).map(\.id))
  }

  /// Devices by ascending number, of one app or of all.
  public func devices(app: [UInt8]?, after id: Int64, limit: Int) throws(RegistryError) -> [DeviceRecord] {
    guard let app else { return try records(SQL.records, [.int(id), .int(limit)]) }
    guard let number = try knownApp(app) else { return [] }
    return try records(SQL.recordsOfApp, [.int(id), .int(limit), .int(number)])
  }

  /// Devices of one app in one state other than active, in that state since `since` or later.
  public func devices(
    app: [UInt8], in state: DeviceState, since: Int64, after id: Int64, limit: Int
  ) throws(RegistryError) -> [DeviceRecord] {
    guard let number = try knownApp(app) else { return [] }
    return try records(SQL.recordsInState, [.int(id), .int(limit), .int(number), .int(state), .int(since)])
  }

  public func deviceCounts(app: [UInt8]?) throws(RegistryError) -> [DeviceCount] {
    try session.all(SQL.deviceCounts, []) { row in
      DeviceCount(
        app: row.bytes(0), platform: row.platform(1), kind: row.kind(2), state: row.state(3), count: row.int(4))
    }
    .filter { app == nil || $0.app == app }
  }

  func records(of ids: [Int64]) throws(RegistryError) -> [DeviceRecord] {
    var records: [DeviceRecord] = []
    for id in ids { records += try self.records(SQL.recordByID, [.int(id)]) }
    return records
  }

  func records(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> [DeviceRecord] {
    var records = try session.all(statement, values) { row in
      var device = Registration(app: row.bytes(10), platform: row.platform(3), token: row.bytes(6))
      device.environment = row.environment(4) == .unspecified ? nil : row.environment(4)
      let sender = row.bytes(7)
      device.sender = sender.isEmpty ? nil : sender
      device.installation = row.optionalBytes(11)
      device.user = row.optionalBytes(12)
      device.name = row.optionalBytes(13)
      device.locale = row.optionalBytes(14)
      device.timeZone = row.optionalBytes(15)
      device.appVersion = row.optionalBytes(16)
      device.registeredAt = row.int(2)
      let kind = row.kind(8)
      device.kind = kind == .alert ? nil : kind
      device.activity = kind == .liveActivity ? row.bytes(19) : nil
      return DeviceRecord(
        id: row.int(0), registration: row.key().registration, device: device, state: row.state(5),
        reason: row.optionalBytes(17), registeredAt: row.int(2), lastSeen: row.int(18), markedAt: row.optionalInt(20),
        badge: row.optionalInt(21))
    }
    try session.runEach(SQL.topicsOfDevice, records.map { .int($0.id) }) { index, row in
      records[index].device.topics.append(row.bytes(0))
    }
    return records
  }

  public func analyze() throws(RegistryError) { try session.run(SQL.analyze, []) }

  public func devices(ofUser user: [UInt8], app: [UInt8], limit: Int) throws(RegistryError) -> [DeviceRecord] {
    guard let app = try knownApp(app), let user = try knownUser(user, app) else { return [] }
    return try records(SQL.recordsOfUser, [.int(user), .int(limit)])
  }

  /// The page of a campaign that contains a device, by number; nil if no page has reached it yet.
  public func page(of campaign: CampaignDescription, reaching device: Int64) throws(RegistryError) -> CampaignPage? {
    let chain = campaign.chain(of: device)
    return try session.first(SQL.pageReaching, [.blob(campaign.id), .int(device), .int(chain)]) { row in
      CampaignPage(number: row.int(0), isDone: row.int(1) == 1, sent: row.int(2), failed: row.int(3))
    }
  }

  /// When a device acknowledged messages, in the order of their ids.
  public func acknowledgements(of messages: [[UInt8]], by device: Int64) throws(RegistryError) -> [AcknowledgementTimes] {
    let counter = try counter(ofDevice: device)
    return try times(of: messages.flatMap { [.int(MessageKey.of($0)), .int(counter)] })
  }
}

extension SQL {
  private static let recordQuery =
    """
    SELECT \(deviceColumns), (SELECT a.name FROM apps a WHERE a.id = d.app), d.installation, u.name, u.display, d.locale,
      d.time_zone, d.app_version, d.reason, d.last_seen, d.activity,
      CASE d.state WHEN 0 THEN NULL WHEN 2 THEN d.gone_at ELSE COALESCE(d.marked_at, d.last_seen) END,
      (SELECT b.badge FROM badges b WHERE b.device = \(counterOfDevice))
    FROM devices d LEFT JOIN users u ON u.id = d.user_id
    """
  static let recordByID = Statement("\(recordQuery) WHERE d.id = ?1")
  static let recordsOfUser = Statement("\(recordQuery) WHERE d.user_id = ?1 ORDER BY d.id LIMIT ?2")
  static let records = Statement("\(recordQuery) WHERE d.id > ?1 ORDER BY d.id LIMIT ?2")
  static let recordsOfApp = Statement("\(recordQuery) WHERE d.id > ?1 AND d.app = ?3 ORDER BY d.id LIMIT ?2")
  static let recordsInState = Statement(
    """
    \(recordQuery) WHERE d.id > ?1 AND d.app = ?3 AND d.state <> 0 AND d.state = ?4
      AND COALESCE(CASE WHEN d.state = 2 THEN d.gone_at ELSE d.marked_at END, d.last_seen) >= ?5
    ORDER BY d.id LIMIT ?2
    """)
  static let deviceCounts = Statement(
    """
    SELECT a.name, d.platform, d.kind, d.state, count(*) FROM devices d JOIN apps a ON a.id = d.app
    GROUP BY a.name, d.platform, d.kind, d.state ORDER BY a.name, d.platform, d.kind, d.state
    """)
  static let topicsOfDevice = Statement(
    "SELECT t.name FROM members m JOIN topics t ON t.id = m.topic WHERE m.device = ?1 ORDER BY t.name")
  static let analyze = Statement("ANALYZE")
  static let pageReaching = Statement(
    """
    SELECT page, done, sent, failed FROM campaign_pages
    WHERE campaign = ?1 AND page >> 32 = ?3 AND (page_end >= ?2 OR is_last = 1) ORDER BY page LIMIT 1
    """)
}
