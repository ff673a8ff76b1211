import PushCore

/// What the registry knows of the messages that a device was sent, for commands.
extension SQLStore {
  func devices(ofUser user: [UInt8], app: [UInt8], limit: Int) throws(RegistryError) -> [DeviceRecord] {
    guard let app = try knownApp(app), let user = try session.firstInt(SQL.userByName, [.int(app), .text(user)]) else {
      return []
    }
    return try records(SQL.recordsOfUser, [.int(user), .int(Int64(limit))])
  }

  func page(of campaign: [UInt8], reaching device: Int64) throws(RegistryError) -> CampaignPage? {
    var page: CampaignPage?
    try session.run(SQL.pageReaching, [.blob(campaign), .int(device)]) { row in
      page = CampaignPage(number: row.int(0), isDone: row.int(1) == 1, sent: row.int(2), failed: row.int(3))
    }
    return page
  }

  func acknowledgements(of messages: [[UInt8]], by device: Int64) throws(RegistryError) -> [AcknowledgementTimes] {
    guard let counter = try counter(ofDevice: device) else {
      return messages.map { _ in AcknowledgementTimes() }
    }
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
