import PushCore

/// Campaigns and their counts, shared by all workers.
extension DeviceStore {
  /// Creates a campaign, or returns the existing one with this id.
  public func createCampaign(_ campaign: CampaignDescription, now: Int64) throws(RegistryError) -> Campaign {
    try transaction(.campaigns) { () throws(RegistryError) in
      try session.run(
        SQL.insertCampaign,
        [
          .blob(campaign.id), .text(campaign.app), .blob(campaign.messageID), .blob(campaign.target), .int(campaign.total),
          .int(campaign.highWater), .int(now), .int(campaign.chains), .int(campaign.lowWater),
        ])
      guard let stored = try self.campaign(campaign.id) else { throw Self.noRow }
      return stored
    }
  }

  /// Adds a page's counts, only once even if reported repeatedly. Nil if the campaign doesn't exist.
  public func pageDone(_ report: PageReport, now: Int64) throws(RegistryError) -> Campaign? {
    try transaction(.campaigns) { () throws(RegistryError) in
      guard try campaign(report.campaign) != nil else { return nil }
      let page: [SQLValue] = [.blob(report.campaign), .int(report.page)]
      guard try session.run(SQL.insertDonePage, page + [.int(report.sent), .int(report.failed)]) > 0 else {
        return try campaign(report.campaign)
      }
      // From here on, other pages of the campaign wait.
      let pageCount = report.isLast && !report.isOfSeveralChains ? report.page + 1 : nil
      let counted = try session.first(
        SQL.addCounts,
        [
          .blob(report.campaign), .int(report.sent), .int(report.failed), .int(pageCount), .int(now), .int(report.unknown),
        ], Self.campaign)
      try session.runEach(
        SQL.addFailures,
        report.failures.flatMap { count -> [SQLValue] in
          let platform = count.platform.map { Int64($0.rawValue) + 1 } ?? 0
          return [.blob(report.campaign), .int(platform), .int(Int(count.error.code)), .int(count.devices)]
        })
      guard report.isLast, report.isOfSeveralChains else { return counted }
      try session.run(SQL.endChain, page)
      try session.run(SQL.countPages, [.blob(report.campaign)])
      return try campaign(report.campaign)
    }
  }

  /// Stores the settled devices of an interrupted page.
  public func savePage(_ record: PageRecord, campaign: [UInt8], page: Int64) throws(RegistryError) {
    try write(
      .campaigns, SQL.savePage,
      [.blob(campaign), .int(page), .int(record.sent), .int(record.failed), .blob(record.settled)])
  }

  public func loadPage(campaign: [UInt8], page: Int64) throws(RegistryError) -> PageRecord? {
    try session.first(SQL.loadPage, [.blob(campaign), .int(page)]) { row in
      PageRecord(
        sent: row.int(0), failed: row.int(1), settled: row.bytes(2), isDone: row.int(3) == 1,
        extent: row.optionalInt(4).map {
          PageExtent(end: row.int(5), isLast: row.int(6) == 1, copy: $0, openedAt: row.optionalInt(7))
        })
    }
  }

  /// Decides which worker publishes the campaign's result: the first one that asks after all pages are done. Another worker
  /// gets it if the result isn't known to be published `lease` milliseconds after the first worker's last request. Uses the
  /// database's clock.
  public func finish(_ campaign: [UInt8], claimant: [UInt8], lease: Int64) throws(RegistryError) -> ResultClaim {
    try transaction(.campaigns) { () throws(RegistryError) in
      let values: [SQLValue] = [.blob(campaign), .blob(claimant), .int(lease), .int(clock?())]
      let isOurs = try session.run(SQL.finishCampaign, values) > 0
      if isOurs { return .claimed(failures: try failures(of: campaign)) }
      return try session.firstInt(SQL.isResultOwed, [.blob(campaign)]) != nil ? .claimedElsewhere : .notDue
    }
  }

  /// Records that the campaign's result is published, so that no other worker publishes it.
  public func resultPublished(_ campaign: [UInt8], now: Int64) throws(RegistryError) {
    try write(.campaigns, SQL.resultPublished, [.blob(campaign), .int(now)])
  }

  /// Changes a campaign's state; false if the current state doesn't allow it. A campaign resumed after a hold is never held
  /// again.
  public func setState(_ state: CampaignState, of campaign: [UInt8], now: Int64) throws(RegistryError) -> Bool {
    try transaction(.campaigns) { () throws(RegistryError) in
      guard let current = try self.campaign(campaign, SQL.campaignToChange) else { return false }
      return try change(current, to: state, now: now)
    }
  }

  public func campaign(_ id: [UInt8]) throws(RegistryError) -> Campaign? { try campaign(id, SQL.campaignByID) }

  func campaign(_ id: [UInt8], _ statement: Statement) throws(RegistryError) -> Campaign? {
    try session.first(statement, [.blob(id)], Self.campaign)
  }

  /// Those of the campaigns that are paused, held or cancelled.
  public func stopped(_ campaigns: Set<[UInt8]>) throws(RegistryError) -> Set<[UInt8]> {
    var stopped: Set<[UInt8]> = []
    for id in campaigns {
      if let state = try campaign(id)?.state, state != .running, state != .completed { stopped.insert(id) }
    }
    return stopped
  }

  /// The latest campaign of a message, with its failures.
  public func campaign(ofMessage messageID: [UInt8], app: [UInt8]) throws(RegistryError) -> Campaign? {
    try session.first(SQL.campaignByMessage, [.blob(messageID), .text(app)], Self.campaign).map(withFailures)
  }

  public func withFailures(_ campaign: Campaign) throws(RegistryError) -> Campaign {
    var campaign = campaign
    campaign.failures = try failures(of: campaign.description.id)
    return campaign
  }

  /// Numbers of failed devices by code and platform, highest first.
  private func failures(of campaign: [UInt8]) throws(RegistryError) -> [FailureCount] {
    var failures: [FailureCount] = []
    try session.run(SQL.failures, [.blob(campaign)]) { row in
      guard let error = PushError(code: UInt8(truncatingIfNeeded: row.int(1))) else { return }
      let platform = Platform(rawValue: UInt8(truncatingIfNeeded: row.int(0) - 1))
      failures.add(error, on: row.int(0) == 0 ? nil : platform, devices: row.int(2))
    }
    return failures
  }

  // MARK: devices that were not reached

  /// The most devices in a campaign's list.
  public static let mostUnreached = 10_000

  /// Notes devices that a campaign didn't reach, up to ``mostUnreached``.
  public func addUnreached(_ devices: [UnreachedDevice], by campaign: [UInt8]) throws(RegistryError) {
    try transaction(.campaigns) { () throws(RegistryError) in
      guard try self.campaign(campaign) != nil else { return }
      let known = try session.firstInt(SQL.countUnreached, [.blob(campaign)]) ?? 0
      let noted = devices.prefix(max(Self.mostUnreached - Int(known), 0)).flatMap { device -> [SQLValue] in
        [.blob(campaign), .int(device.id), .int(device.salt), .int(Int(device.error.code))]
      }
      try session.runEach(SQL.addUnreached, noted)
    }
  }

  /// Devices that a campaign didn't reach, by id.
  public func unreached(by campaign: [UInt8], after id: Int64, limit: Int) throws(RegistryError) -> [UnreachedDevice] {
    try session.all(SQL.unreached, [.blob(campaign), .int(id), .int(limit)]) { row in
      let error = PushError(code: UInt8(truncatingIfNeeded: row.int(2))) ?? .internalServerError
      var device = UnreachedDevice(id: row.int(0), salt: row.int(1), error: error)
      guard !row.isNull(3) else { return device }
      device.state = row.state(3)
      device.platform = row.platform(4)
      device.user = row.optionalBytes(5)
      device.installation = row.optionalBytes(6)
      device.registeredAt = row.int(7)
      return device
    }
  }

  /// Campaigns that aren't over, then the newest of the others.
  /// - Parameter apps: only campaigns of these applications; nil for all.
  public func campaigns(of apps: [[UInt8]]? = nil, limit: Int) throws(RegistryError) -> [Campaign] {
    try session.all(SQL.campaigns, [Self.list(apps), .int(limit)], Self.campaign)
  }

  public func countCampaigns() throws(RegistryError) -> [CampaignState: Int] {
    var counts: [CampaignState: Int] = [:]
    try session.run(SQL.countCampaigns, []) { row in
      if let state = CampaignState(rawValue: row.int(0)) { counts[state] = Int(row.int(1)) }
    }
    return counts
  }

  private static func campaign(_ row: SQLRow) -> Campaign {
    Campaign(
      description: CampaignDescription(
        id: row.bytes(0), app: row.bytes(1), messageID: row.bytes(2), target: row.bytes(3), total: row.int(4),
        highWater: row.int(5), chains: row.int(20), lowWater: row.int(21)),
      state: CampaignState(rawValue: row.int(6)) ?? .running, sent: row.int(7), failed: row.int(8), pagesDone: row.int(9),
      pageCount: row.optionalInt(10), createdAt: row.int(11), updatedAt: row.int(12), finishedAt: row.optionalInt(13),
      resumedAt: row.optionalInt(14), stoppedAt: row.optionalInt(15), idle: row.int(16), received: row.int(17),
      read: row.int(18), unknown: row.int(19))
  }
}

extension SQL {
  static let insertCampaign = Statement(
    """
    INSERT INTO campaigns (id, app, message_id, target, total, high_water, state, sent, failed, pages_done, created_at, updated_at,
      excused, chains, low_water)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0, ?7, ?7, 0, ?8, ?9) ON CONFLICT (id) DO NOTHING
    """)
  /// Changes a row only if the page wasn't done before: it is new, or was saved in the middle.
  static let insertDonePage = Statement(
    """
    INSERT INTO campaign_pages (campaign, page, done, sent, failed) VALUES (?1, ?2, 1, ?3, ?4)
    ON CONFLICT (campaign, page) DO UPDATE SET done = 1, sent = excluded.sent, failed = excluded.failed, settled = NULL
    WHERE campaign_pages.done = 0
    """)
  static let addCounts = Statement(
    """
    UPDATE campaigns SET sent = sent + ?2, failed = failed + ?3, pages_done = pages_done + 1,
      page_count = CASE WHEN page_count IS NULL OR ?4 > page_count THEN ?4 ELSE page_count END, updated_at = ?5,
      unknown_devices = unknown_devices + ?6
    WHERE id = ?1 RETURNING \(campaignColumns)
    """)
  /// A page that was not opened because its campaign was cancelled can be a chain's last.
  static let endChain = Statement("UPDATE campaign_pages SET is_last = 1 WHERE campaign = ?1 AND page = ?2")
  /// Each page of a chain is in the registry before the chain's last page is done.
  static let countPages = Statement(
    """
    UPDATE campaigns SET page_count = (SELECT count(*) FROM campaign_pages WHERE campaign = ?1)
    WHERE id = ?1 AND chains = (
      SELECT count(DISTINCT page >> 32) FROM campaign_pages WHERE campaign = ?1 AND is_last = 1 AND done = 1)
    """)
  static let addFailures = Statement(
    """
    INSERT INTO campaign_failures (campaign, platform, code, devices) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (campaign, platform, code) DO UPDATE SET devices = campaign_failures.devices + excluded.devices
    """)
  static let failures = Statement(
    "SELECT platform, code, devices FROM campaign_failures WHERE campaign = ?1 ORDER BY devices DESC, platform, code")
  static let countUnreached = Statement("SELECT count(*) FROM campaign_unreached WHERE campaign = ?1")
  static let addUnreached = Statement(
    """
    INSERT INTO campaign_unreached (campaign, device, salt, code) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (campaign, device) DO NOTHING
    """)
  static let unreached = Statement(
    """
    SELECT c.device, c.salt, c.code, d.state, d.platform, u.name, d.installation, d.registered_at
    FROM campaign_unreached c LEFT JOIN devices d ON d.id = c.device AND d.salt = c.salt LEFT JOIN users u ON u.id = d.user_id
    WHERE c.campaign = ?1 AND c.device > ?2 ORDER BY c.device LIMIT ?3
    """)
  static let savePage = Statement(
    """
    INSERT INTO campaign_pages (campaign, page, done, sent, failed, settled) VALUES (?1, ?2, 0, ?3, ?4, ?5)
    ON CONFLICT (campaign, page) DO UPDATE SET sent = excluded.sent, failed = excluded.failed, settled = excluded.settled
    WHERE campaign_pages.done = 0
    """)
  static let loadPage = Statement(
    "SELECT sent, failed, settled, done, copy, page_end, is_last, opened_at FROM campaign_pages WHERE campaign = ?1 AND page = ?2"
  )
  private static let owesResult = "id = ?1 AND result_at IS NULL AND (state = 2 OR pages_done >= page_count)"
  /// Uses the database's clock in Unix milliseconds: a lease applies to all workers, and their clocks differ.
  static let finishCampaign = Statement(
    finish(at: "COALESCE(?4, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))"),
    postgres: finish(at: "COALESCE(CAST(?4 AS BIGINT), CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))"))
  private static func finish(at now: String) -> String {
    """
    UPDATE campaigns SET claimant = ?2, finished_at = \(now), state = CASE WHEN state = 2 THEN 2 ELSE 3 END
    WHERE \(owesResult) AND (claimant IS NULL OR claimant = ?2 OR finished_at <= \(now) - CAST(?3 AS BIGINT))
    """
  }
  static let isResultOwed = Statement("SELECT 1 FROM campaigns WHERE \(owesResult)")
  static let resultPublished = Statement("UPDATE campaigns SET result_at = ?2 WHERE id = ?1 AND result_at IS NULL")
  /// 0 is running, 4 is held.
  static let setState = Statement(
    """
    UPDATE campaigns SET state = ?2, updated_at = ?3,
      resumed_at = CASE WHEN CAST(?2 AS BIGINT) = 0 THEN ?3 ELSE resumed_at END,
      excused = CASE WHEN state = 4 AND CAST(?2 AS BIGINT) = 0 THEN 1 ELSE excused END,
      idle = idle + CASE WHEN CAST(?2 AS BIGINT) = 0 AND ?3 > stopped_at THEN ?3 - stopped_at ELSE 0 END,
      stopped_at = CASE WHEN CAST(?2 AS BIGINT) <> 0 THEN COALESCE(stopped_at, ?3) END
    WHERE id = ?1 AND (CAST(?2 AS BIGINT) <> 4 OR excused = 0)
    """)
  private static let campaignColumns =
    """
    id, app, message_id, target, total, high_water, state, sent, failed, pages_done, page_count, created_at, updated_at, finished_at,
    resumed_at, stopped_at, idle, received, opened, unknown_devices, chains, low_water
    """
  private static let ofID = "SELECT \(campaignColumns) FROM campaigns WHERE id = ?1"
  static let campaignByID = Statement(ofID)
  static let campaignToChange = Statement(locking: ofID)
  static let campaignByMessage = Statement(
    "SELECT \(campaignColumns) FROM campaigns WHERE message_id = ?1 AND app = ?2 ORDER BY created_at DESC, id LIMIT 1")
  static let countCampaigns = Statement("SELECT state, COUNT(*) FROM campaigns GROUP BY state")
  static let campaigns = ofApps {
    "SELECT \(campaignColumns) FROM campaigns WHERE \($0) ORDER BY state IN (2, 3), created_at DESC, id LIMIT ?2"
  }
}
