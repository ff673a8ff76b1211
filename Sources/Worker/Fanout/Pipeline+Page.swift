import PushCore
import Storage

/// A page of an audience: opened, its successor published, sent.
///
/// The chain of a campaign has one end, the page that nobody has opened yet. Whoever opens it publishes its successor before sending
/// the first push, so that a worker that dies leaves at most the pages it was sending, which are delivered again.
extension Pipeline {
  func takePage(_ entry: InFlight) {
    guard let page = entry.page, let audience = entry.work?.audience else { return }
    let rest = page.pending?.map { DeviceRows.registration(id: $0.id, salt: $0.salt) }
    if page.campaign.isEmpty {
      let app = appID(of: entry)
      return ask(entry, .readRest, .resolve((rest ?? []).map { LookUp(app: app, registration: $0) }))
    }
    if rest?.isEmpty == true {
      entry.work?.stage = .ending
      return conclude(entry) { perform(entry.ledger.owesReport(), entry) }
    }
    let content: PageOpening.Content =
      rest.map { .rest($0) } ?? .members(audience, after: page.after, upTo: page.upTo, limit: pageSize)
    ask(
      entry, .openPage,
      .openPage(
        PageOpening(campaign: page.campaign, page: page.number, copy: page.copy, app: appID(of: entry), content: content)))
  }

  func pageOpened(_ entry: InFlight, _ opened: OpenedPage) {
    // A stopping worker leaves it to the broker and the next worker.
    guard !isDraining else { return }
    switch opened {
    case .unknown:
      let reason = "\(PageTicket.header): the registry has no such campaign of the application"
      reject(entry, Rejection(.invalidParameters, reason))
    case .taken:
      counters.duplicatesSuppressed += 1
      entry.work?.stage = .ending
      conclude(entry) {}
    case .done(let campaign):
      entry.work?.stage = .ending
      entry.work?.campaign = campaign
      conclude(entry) { if campaign.isComplete { claimResult(entry) } }
    case .stopped(let campaign, let record):
      entry.work?.campaign = campaign
      if campaign.state == .cancelled {
        abandonPage(entry, record)
      } else {
        noteWaiting(campaign)
        putOff(entry, by: Self.pausedDelay, "the campaign is \(campaign.state.name)")
      }
    case .open(let read, let record, let campaign):
      closeBreaker(of: entry, campaign)
      if let page = entry.page, waitingCampaigns.remove(page.campaign) != nil {
        log.info("campaign goes on", ["campaign": page.campaign])
      }
      beginPage(entry, read, record)
    }
  }

  /// Says once that a campaign was paused or held, though its page comes back again and again.
  private func noteWaiting(_ campaign: Campaign) {
    if waitingCampaigns.count >= Self.mostWaitingCampaigns { waitingCampaigns.removeAll() }
    guard waitingCampaigns.insert(campaign.description.id).inserted else { return }
    log.info("campaign waits", ["campaign": campaign.description.id, "state": campaign.state.name])
  }

  /// Above it, some are logged twice.
  private static let mostWaitingCampaigns = 1_000

  /// A paused campaign's page goes round on the ladder: this is how long it takes to notice that the campaign runs again.
  private static let pausedDelay: Int64 = 1_000

  private func beginPage(_ entry: InFlight, _ read: AudiencePage, _ record: PageRecord?) {
    guard var page = entry.page else { return }
    let settled = account(for: record, on: &page)
    entry.work?.settledBefore = settled
    if let pending = page.pending {
      var left = Set(pending.map(\.id))
      for index in 0..<read.devices.count { left.remove(read.devices[index].id) }
      let missing = left.count { !settled.contains($0) }
      page.failed += Int64(missing)
      counters.failed[Int(PushError.notRegistered.code)] += missing
    } else {
      page.isLast = read.isLast
    }
    entry.page = page
    addRecipients(of: read.devices, to: entry, skipping: settled)
    reportPlatformFailures(entry)
    chain(entry, isChained: page.isLast || page.pending != nil, after: read.next)
  }

  /// Counts what is known of earlier deliveries of the page: of all its devices, or of those that its ticket names as left. The ticket has
  /// counted the others.
  private func account(for record: PageRecord?, on page: inout PageTicket) -> SettledDevices {
    var settled = SettledDevices(record)
    if let pending = page.pending {
      settled.keep(only: Set(pending.map(\.id)))
    } else {
      page.sent = 0
      page.failed = 0
    }
    page.sent += Int64(settled.sent)
    page.failed += Int64(settled.failed)
    return settled
  }

  /// The campaign was cancelled: nothing more is sent, and what was is accounted for. A page that was begun may have a successor,
  /// which has to be ended too; one that was not ends the chain.
  private func abandonPage(_ entry: InFlight, _ record: PageRecord?) {
    guard var page = entry.page else { return }
    if page.pending == nil { page.isLast = record?.extent?.isLast ?? true }
    _ = account(for: record, on: &page)
    entry.page = page
    chain(entry, isChained: page.isLast || page.pending != nil, after: record?.extent?.end ?? 0)
  }

  /// Publishes the next page unless there is none, or it is out already.
  private func chain(_ entry: InFlight, isChained: Bool, after cursor: Int64) {
    guard !isChained, let next = entry.page?.next(after: cursor, using: &time.random) else { return sendPage(entry) }
    entry.work?.stage = .chaining
    publish(publications.page(next, for: entry))
  }

  /// The next page is safe on the queue: now this one may be sent.
  func nextPageConfirmed(_ entry: InFlight) {
    _ = entry.ledger.met()
    sendPage(entry)
  }

  private func sendPage(_ entry: InFlight) {
    entry.work?.stage = .sending
    // An orphan is sent when the broker has delivered it here again.
    if !entry.ledger.isOrphan { enqueue(entry) }
  }

  // MARK: small audiences

  /// Devices of a user or group that are sent to within the request.
  private static let smallAudience = 1_000

  func readSmallAudience(_ entry: InFlight, _ audience: Audience) {
    ask(
      entry, .readSmall, .page(audience, app: appID(of: entry), after: 0, upTo: .max, limit: Self.smallAudience))
  }

  func smallAudienceRead(_ entry: InFlight, _ read: AudiencePage) {
    guard !isDraining else { return }
    guard read.isLast else { return becomeCampaign(entry) }
    entry.page = PageTicket(campaign: [], number: 0, after: 0, upTo: .max, deadline: entry.deadline, using: &time.random)
    entry.page?.isLast = true
    addRecipients(of: read.devices, to: entry, skipping: SettledDevices())
    sendPage(entry)
  }

  func restOfSmallAudienceRead(_ entry: InFlight, _ devices: DeviceRows) {
    guard !isDraining else { return }
    beginPage(entry, AudiencePage(devices: devices, next: 0, isLast: true), nil)
  }

  // MARK: recipients

  private func addRecipients(of rows: DeviceRows, to entry: InFlight, skipping settled: SettledDevices) {
    entry.rows = rows
    entry.recipients.reserveCapacity(rows.count)
    for index in 0..<rows.count where !settled.contains(rows[index].id) {
      entry.recipients.append(recipient(rows, index, entry))
    }
  }
}
