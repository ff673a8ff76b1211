import PushCore

extension DeviceStore {
  public func devices(ofUser user: [UInt8], app: [UInt8], limit: Int) throws(RegistryError) -> [DeviceRecord] {
    guard let app = try knownApp(app), let user = try knownUser(user, app) else { return [] }
    return try records(SQL.recordsOfUser, [.int(user), .int(limit)])
  }

  /// The page of a campaign that contains a device, by number; nil if no page has reached it yet.
  public func page(of campaign: [UInt8], reaching device: Int64) throws(RegistryError) -> CampaignPage? {
    try session.first(SQL.pageReaching, [.blob(campaign), .int(device)]) { row in
      CampaignPage(number: row.int(0), isDone: row.int(1) == 1, sent: row.int(2), failed: row.int(3))
    }
  }

  /// When a device acknowledged messages, in the order of their ids.
  public func acknowledgements(of messages: [[UInt8]], by device: Int64) throws(RegistryError) -> [AcknowledgementTimes] {
    let counter = try counter(ofDevice: device)
    return try times(of: messages.map { [.int(MessageKey.of($0)), .int(counter)] })
  }
}

extension SQL {
  static let pageReaching = Statement(
    """
    SELECT page, done, sent, failed FROM campaign_pages WHERE campaign = ?1 AND (page_end >= ?2 OR is_last = 1)
    ORDER BY page LIMIT 1
    """)
}
