import AMQP
import PushCore
import Storage

/// From a request to an audience to pages of it on the fan-out queue.
///
/// The request itself is acknowledged as soon as its first page is on the queue; from then on the campaign's account in the
/// registry and the page that is on the queue are all there is of it, so that any worker can go on after any crash.
extension Pipeline {
  func beginAudience(_ entry: InFlight, _ audience: Audience) {
    guard desk != nil else {
      return reject(entry, Rejection(.invalidParameters, "to: needs a registry, and none is configured"))
    }
    entry.audience = audience
    if entry.page != nil {
      beginPage(entry)
    } else if audience.isSmall {
      entry.page = PageTicket(campaign: [], number: 0, after: 0, upTo: .max, deadline: entry.deadline)
      beginPage(entry)
    } else if entry.delivery.properties.messageID?.isEmpty ?? true {
      nameAndPublishAgain(entry)
    } else {
      ask(.survey(entry: entry.index, generation: entry.generation), .survey(audience, app: appID(of: entry)))
    }
  }

  /// A broadcast must be known again after a crash, so a request without a message id goes back to its queue with one.
  private func nameAndPublishAgain(_ entry: InFlight) {
    entry.isFinishing = true
    publish(publications.again(for: entry))
  }

  func surveyed(_ entry: InFlight, _ survey: AudienceSurvey) {
    guard let audience = entry.audience, let request = entry.request else { return }
    guard survey.exists else { return reject(entry, Rejection(.invalidRegistration, audience.missing)) }
    if entry.page != nil { return }
    let app = appID(of: entry)
    let description = CampaignDescription(
      id: Self.campaignID(entry.messageID, app), app: app, messageID: entry.messageID, target: audience.name(in: request),
      total: survey.estimate, highWater: survey.highWater)
    ask(.create(entry: entry.index, generation: entry.generation), .createCampaign(description))
  }

  /// The same for every delivery of one request.
  private static func campaignID(_ messageID: [UInt8], _ app: [UInt8]) -> [UInt8] {
    DeviceIdentity.apnsID(messageID: messageID, token: Array("campaign:".utf8) + app)
  }

  func campaignCreated(_ entry: InFlight, _ campaign: Campaign) {
    let id = campaign.description.id
    entry.page = PageTicket(campaign: id, number: 0, after: 0, upTo: campaign.description.highWater, deadline: entry.deadline)
    // A redelivered request may have put its first page on the queue already: the page's record tells.
    ask(.record(entry: entry.index, generation: entry.generation), .loadPage(campaign: id, page: 0))
  }

  func firstPageKnown(_ entry: InFlight, _ record: PageRecord?) {
    entry.isFinishing = true
    guard record == nil, let page = entry.page else { return acknowledge(entry) }
    publish(publications.page(page, for: entry))
  }

  // MARK: a page

  /// Asks at once for all that decides what to do: its record, its campaign, whether the next page is out, its devices.
  func beginPage(_ entry: InFlight) {
    guard let page = entry.page, let audience = entry.audience else { return }
    let (index, generation) = (entry.index, entry.generation)
    if page.campaign.isEmpty {
      ask(.survey(entry: index, generation: generation), .survey(audience, app: appID(of: entry)))
    } else {
      ask(.record(entry: index, generation: generation), .loadPage(campaign: page.campaign, page: page.number))
      ask(.account(entry: index, generation: generation), .campaign(page.campaign))
      if entry.delivery.redelivered {
        ask(.following(entry: index, generation: generation), .loadPage(campaign: page.campaign, page: page.number + 1))
      }
    }
    let limit = page.campaign.isEmpty ? Self.smallAudience : pageSize
    ask(
      .page(entry: index, generation: generation),
      .page(audience, app: appID(of: entry), after: page.after, upTo: page.upTo, limit: limit))
  }

  /// Devices of a user or group that are sent to within the request.
  private static let smallAudience = 1_000

  func pageRead(_ entry: InFlight, _ read: AudiencePage) {
    guard var page = entry.page else { return }
    if let record = entry.pageRecord, record.isDone { return claimResult(entry) }
    switch entry.campaign?.state {
    case .paused, .held:
      entry.page?.stoppedAt = loop.wallClock
      return putOff(entry, by: Self.pausedDelay, "the campaign is \(entry.campaign?.state.name ?? "")")
    case .cancelled: return abandonPage(entry)
    case .running:
      closeBreaker(of: entry)
      page.stoppedAt = entry.page?.stoppedAt
    case .completed, nil: break
    }
    if page.campaign.isEmpty, !read.isLast {
      // Too many for one request: a campaign after all.
      entry.page = nil
      return ask(
        .survey(entry: entry.index, generation: entry.generation), .survey(entry.audience ?? .topic([]), app: appID(of: entry)))
    }
    let isBegun = page.pending != nil
    if !isBegun { page.isLast = read.isLast }
    if let record = entry.pageRecord, !isBegun { page.takeOver(record) }
    entry.page = page
    addRecipients(of: read.devices, to: entry, skipping: entry.pageRecord?.settledDevices ?? [])
    entry.areRecipientsKnown = true
    if isBegun || page.isLast || page.campaign.isEmpty || entry.isNextPageOut { return enqueue(entry) }
    entry.isAwaitingNextPage = true
    publish(publications.page(page.next(after: read.next), for: entry))
  }

  private static let pausedDelay: Int64 = 10_000

  /// The campaign runs: if it was held or paused before, an operator has resumed it since.
  private func closeBreaker(of entry: InFlight) {
    guard let app = entry.app, let campaign = entry.page?.campaign else { return }
    let stoppedAt = [holds.removeValue(forKey: campaign), entry.page?.stoppedAt].compactMap(\.self).max()
    guard let stoppedAt else { return }
    entry.page?.stoppedAt = stoppedAt
    guard breakers[app].resumed(since: stoppedAt) else { return }
    log.info(
      "a campaign was resumed: tokens are marked again", ["campaign": String(decoding: campaign, as: UTF8.self)])
  }

  /// The next page is safe on the queue: now this one may be sent.
  func nextPageConfirmed(_ entry: InFlight) {
    entry.isAwaitingNextPage = false
    if let page = entry.page {
      // Should this page come again, its successor must not be published twice.
      ask(.save, .savePage(PageRecord(sent: 0, failed: 0, settled: []), campaign: page.campaign, page: page.number + 1))
    }
    if !entry.isOrphan { enqueue(entry) }
  }

  private func addRecipients(of rows: DeviceRows, to entry: InFlight, skipping settled: Set<Int64>) {
    let wanted = entry.page?.pending.map(Set.init)
    entry.rows = rows
    entry.recipients.reserveCapacity(rows.count)
    for index in 0..<rows.count {
      let id = rows[index].id
      if let wanted, !wanted.contains(id) { continue }
      if settled.contains(id) { continue }
      entry.recipients.append(recipient(rows, index, by: entry.routes))
    }
    // What is no longer in the audience can't be reached any more.
    if let wanted { entry.page?.failed += Int64(wanted.count - entry.recipients.count) }
  }

  /// A device of the registry, by the credential of its environment and sender.
  func recipient(_ rows: DeviceRows, _ index: Int, by routes: Routes) -> Recipient {
    let row = rows[index]
    var recipient = Recipient(platform: row.platform, token: Array(rows.token(index)), pool: -1)
    recipient.row = index
    switch row.platform {
    case .fcm: recipient.pool = routes.fcm ?? -1
    case .apns:
      switch row.environment {
      case .production: recipient.pool = routes.production?.pool ?? -1
      case .sandbox: recipient.pool = routes.sandbox?.pool ?? -1
      case .unspecified: recipient.pool = routes.apns?.pool ?? -1
      }
    }
    if recipient.pool < 0 {
      recipient.state = .refused(
        Rejection(.mismatchSenderID, "no credential for the device's platform, environment and sender"))
    }
    return recipient
  }

  // MARK: a page's end

  /// Every device of the page has ended or waits for its next attempt.
  func concludePage(_ entry: InFlight, _ ended: PageTicket) {
    var page = ended
    var pending: [Int64] = []
    var earliest = Int64.max
    for recipient in entry.recipients {
      switch recipient.state {
      case .delivered: page.sent += 1
      case .failed: page.failed += 1
      case .postponed(let until):
        earliest = min(earliest, until)
        if let id = entry.rows?[recipient.row].id { pending.append(id) }
      case .waiting, .unresolved, .gone, .sent, .refused, .sameAs: continue
      }
    }
    page.pending = pending
    entry.page = page
    if !pending.isEmpty {
      publishRetry(of: entry, at: earliest)
    } else if page.campaign.isEmpty {
      publishFanOutResult(of: entry, success: page.sent, failure: page.failed)
    } else {
      report(entry)
    }
  }

  /// Reports the page; the campaign's result follows from the last report.
  private func report(_ entry: InFlight) {
    guard let page = entry.page else { return }
    entry.publications += 1
    ask(
      .done(entry: entry.index, generation: entry.generation),
      .pageDone(
        PageReport(campaign: page.campaign, page: page.number, isLast: page.isLast, sent: page.sent, failed: page.failed)))
  }

  func pageReported(_ entry: InFlight, _ campaign: Campaign?) {
    entry.campaign = campaign
    if let campaign, campaign.isComplete || campaign.state == .cancelled {
      askToFinish(entry)
    }
    consequenceEnded(of: entry)
  }

  private func askToFinish(_ entry: InFlight) {
    guard let page = entry.page else { return }
    entry.publications += 1
    ask(
      .finish(entry: entry.index, generation: entry.generation),
      .finish(campaign: page.campaign, claimant: Array("\(page.number)".utf8)))
  }

  /// Exactly one page of a campaign publishes its result.
  func finishAnswered(_ entry: InFlight, isClaimed: Bool) {
    if isClaimed, let campaign = entry.campaign {
      log.info(
        "campaign ended",
        [
          "campaign": String(decoding: campaign.description.id, as: UTF8.self), "sent": "\(campaign.sent)",
          "failed": "\(campaign.failed)",
        ])
      publishFanOutResult(of: entry, success: campaign.sent, failure: campaign.failed)
    }
    consequenceEnded(of: entry)
  }

  /// The page was settled before: all that may be owed of it is the campaign's result.
  private func claimResult(_ entry: InFlight) {
    entry.isFinishing = true
    if let campaign = entry.campaign, campaign.isComplete { askToFinish(entry) } else { acknowledge(entry) }
  }

  /// The campaign was cancelled: no further page, and what has been sent is accounted for.
  private func abandonPage(_ entry: InFlight) {
    entry.isFinishing = true
    entry.page?.isLast = true
    report(entry)
  }
}

extension Pipeline {
  /// A page whose channel is lost may come to another worker: it finds what was settled here so far.
  func saveBegunPage(_ entry: InFlight) {
    guard let page = entry.page, !page.campaign.isEmpty, page.pending == nil, entry.hasBegun, !entry.isFinishing else { return }
    ask(.save, .savePage(PageRecord(of: entry), campaign: page.campaign, page: page.number))
  }
}

extension PageTicket {
  /// Goes on from what an interrupted worker had settled.
  fileprivate mutating func takeOver(_ record: PageRecord) {
    sent += record.sent
    failed += record.failed
  }
}

extension PageRecord {
  /// Device numbers, eight bytes each.
  var settledDevices: Set<Int64> {
    var devices: Set<Int64> = []
    for start in stride(from: 0, to: settled.count - 7, by: 8) {
      devices.insert(settled[start..<start + 8].reduce(0) { $0 << 8 | Int64($1) })
    }
    return devices
  }

  init(of entry: InFlight) {
    var bytes = entry.pageRecord?.settled ?? []
    var sent = entry.page?.sent ?? 0
    var failed = entry.page?.failed ?? 0
    for recipient in entry.recipients {
      switch recipient.state {
      case .delivered: sent += 1
      case .failed: failed += 1
      case .waiting, .unresolved, .gone, .refused, .sent, .postponed, .sameAs: continue
      }
      guard let id = entry.rows?[recipient.row].id else { continue }
      for shift in stride(from: Int64(56), through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: id >> shift)) }
    }
    self.init(sent: sent, failed: failed, settled: bytes)
  }
}
