import PushCore

/// Opens pages of campaigns. Only one copy of a page's message opens it, and it has the same devices each time.
extension DeviceStore {
  /// Opens a page: decides in one step whether it should be sent, and by which worker, and reads its devices.
  public func openPage(_ opening: PageOpening, now: Int64) throws(RegistryError) -> OpenedPage {
    // If another copy claims the page between the look and the claim, the second look finds it.
    for _ in 0..<Self.looks { if let opened = try look(opening, now) { return opened } }
    return .taken
  }

  private static let looks = 2

  private func look(_ opening: PageOpening, _ now: Int64) throws(RegistryError) -> OpenedPage? {
    guard let campaign = try campaign(opening.campaign), campaign.description.app == opening.app else { return .unknown }
    let record = try loadPage(campaign: opening.campaign, page: opening.page)
    if let record, record.isDone { return .done(campaign) }
    if let extent = record?.extent, extent.copy != opening.copy { return .taken }
    switch campaign.state {
    case .cancelled:
      guard case .members(let audience, let cursor, _, let limit) = opening.content, let extent = record?.extent
      else { return .stopped(campaign, record) }
      let devices = try all(audience, opening.kind, opening.app, after: cursor, limit, extent).devices
      return .stopped(campaign, record, devices)
    case .paused, .held: return .stopped(campaign, record)
    case .running, .completed: break
    }
    switch opening.content {
    case .rest(let registrations):
      let devices = try resolve(registrations.map { LookUp(app: opening.app, registration: $0) }).devices
      let extent = record?.extent
      return .open(AudiencePage(devices: devices, next: extent?.end ?? 0, isLast: extent?.isLast ?? false), record, campaign)
    case .members(let audience, let cursor, let highWater, let limit):
      if let extent = record?.extent {
        return .open(try all(audience, opening.kind, opening.app, after: cursor, limit, extent), record, campaign)
      }
      let page = try page(of: audience, kind: opening.kind, app: opening.app, after: cursor, upTo: highWater, limit: limit)
      // The last page ends with its last member. Devices that join during the send are too late.
      let end = page.isLast ? page.devices.rows.last?.id ?? cursor : page.next
      let extent = PageExtent(end: end, isLast: page.isLast, copy: opening.copy, openedAt: now)
      return try claim(opening, extent) ? .open(page, record, campaign) : nil
    }
  }

  private func claim(_ opening: PageOpening, _ extent: PageExtent) throws(RegistryError) -> Bool {
    try write(
      .campaigns, SQL.claimPage,
      [
        .blob(opening.campaign), .int(opening.page), .int(extent.copy), .int(extent.end), .int(extent.isLast ? 1 : 0),
        .int(extent.openedAt),
      ]) > 0
  }

  /// All devices within the page's range, even if they are more than before: no device may fall between two pages. Devices that are
  /// gone since the page was opened are included.
  private func all(
    _ audience: Audience, _ kind: TokenKind, _ app: [UInt8], after start: Int64, _ limit: Int, _ extent: PageExtent
  ) throws(RegistryError) -> AudiencePage {
    var whole = AudiencePage(devices: DeviceRows(), next: start, isLast: false)
    while !whole.isLast {
      let part = try page(
        of: audience, kind: kind, app: app, after: whole.next, upTo: extent.end, limit: limit, goneSince: extent.openedAt)
      whole.devices.append(contentsOf: part.devices)
      whole.next = part.next
      whole.isLast = part.isLast
    }
    return AudiencePage(devices: whole.devices, next: extent.end, isLast: extent.isLast)
  }
}

extension SQL {
  static let claimPage = Statement(
    """
    INSERT INTO campaign_pages (campaign, page, done, sent, failed, copy, page_end, is_last, opened_at)
    VALUES (?1, ?2, 0, 0, 0, ?3, ?4, ?5, ?6)
    ON CONFLICT (campaign, page) DO UPDATE SET
      copy = excluded.copy, page_end = excluded.page_end, is_last = excluded.is_last, opened_at = excluded.opened_at
    WHERE campaign_pages.done = 0 AND campaign_pages.copy IS NULL
    """)
}
