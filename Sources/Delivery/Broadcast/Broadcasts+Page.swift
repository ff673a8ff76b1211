import DeviceRegistry
import PushCore

/// Opens a page, publishes its successor and sends it. Each chain of a campaign ends with one unopened page. A worker that opens
/// it publishes the next one before the first push. So a worker that dies leaves only the pages it was sending, and the broker
/// delivers those again.
extension Broadcasts {
  func takePage(_ entry: InFlight) -> [AudienceStep] {
    guard let page = entry.broadcast.page, let audience = entry.broadcast.work?.audience else { return [] }
    let app = appID(of: entry)
    let rest = page.pending?.map { DeviceRows.registration(id: $0.id, salt: $0.salt) }
    if page.campaign.isEmpty {
      let lookUps = (rest ?? []).map { LookUp(app: app, registration: $0) }
      return [.ask(.read { try $0.resolve(lookUps) }, begins: true) { $0.restRead($1, $2) }]
    }
    if rest?.isEmpty == true {
      entry.broadcast.work?.ends()
      return [.conclude([.report])]
    }
    let content: PageOpening.Content =
      rest.map { .rest($0) } ?? .members(audience, after: page.after, upTo: page.upTo, limit: fanOut.pageSize)
    let opening = PageOpening(
      campaign: page.campaign, page: page.number, copy: page.copy, app: app, kind: entry.request?.tokenKind ?? .alert,
      content: content)
    return [.ask(.write(.campaigns) { try $0.openPage(opening, now: $1) }, begins: true) { $0.pageOpened($1, $2) }]
  }

  func pageOpened(_ entry: InFlight, _ opened: OpenedPage) -> [AudienceStep] {
    switch opened {
    case .unknown:
      let reason = "\(PageTicket.header): the registry has no such campaign of the application"
      return [.reject(Rejection(.invalidParameters, reason))]
    case .taken:
      observers.note(.duplicatePage, entry)
      entry.broadcast.work?.ends()
      return [.conclude([])]
    case .done(let campaign):
      entry.broadcast.work?.ends()
      entry.broadcast.work?.campaign = campaign
      return [.conclude(campaign.isComplete ? claimResult(entry) : [])]
    case .stopped(let campaign, let record, let devices):
      entry.broadcast.work?.campaign = campaign
      if campaign.state == .cancelled { return abandonPage(entry, record, devices) }
      noteWaiting(campaign)
      return [.putOff(Self.pausedDelay, "the campaign is \(campaign.state.name)")]
    case .open(let read, let record, let campaign):
      if let app = entry.identity.app, let time = campaign.resumedAt {
        marks.campaignResumed(campaign.description.id, app: app, at: time)
      }
      noteRunning(campaign.description.id)
      entry.collapse.broadcastNote = collapses.note(of: entry, campaign)
      return beginPage(entry, read, record)
    }
  }

  /// The delay in milliseconds with which a paused campaign's page comes back from the ladder, to see whether the campaign runs
  /// again.
  static let pausedDelay: Int64 = 1_000

  private func beginPage(_ entry: InFlight, _ read: AudiencePage, _ record: PageRecord?) -> [AudienceStep] {
    guard var page = entry.broadcast.page, var work = entry.broadcast.work else { return [] }
    let unregistered = work.begin(&page, read, record)
    observers.note(.unregistered(unregistered.count), entry)
    observers.note(.pageBegun, entry)
    entry.broadcast.page = page
    entry.broadcast.work = work
    // The page may be put off before a device of it ends.
    noteUnreached(entry, unregistered)
    resolver.addRecipients(of: read.devices, to: entry, skipping: work.settledBefore)
    return platformFailures(entry) + chain(entry, isChained: page.isLast || page.pending != nil, after: read.next)
  }

  /// The campaign was cancelled: sends nothing more, and counts what was sent. A begun page may have a successor, which must
  /// end too. A page that was not begun ends the chain.
  private func abandonPage(_ entry: InFlight, _ record: PageRecord?, _ devices: DeviceRows) -> [AudienceStep] {
    guard var page = entry.broadcast.page, var work = entry.broadcast.work else { return [] }
    work.abandon(&page, record, devices, isRedelivered: entry.delivery.redelivered)
    entry.broadcast.page = page
    entry.broadcast.work = work
    return chain(entry, isChained: page.isLast || page.pending != nil, after: record?.extent?.end ?? 0)
  }

  private func chain(_ entry: InFlight, isChained: Bool, after cursor: Int64) -> [AudienceStep] {
    guard !isChained, var next = entry.broadcast.page?.next(after: cursor, using: &tools.time.random) else {
      return sendPage(entry)
    }
    next.hasWaited = entry.collapse.hasWaited
    entry.broadcast.work?.chains()
    return [.publish(tools.publications.page(next, for: entry))]
  }

  /// The broker has confirmed the message of a campaign's first pages, or of the page after this one.
  func pageConfirmed(_ entry: InFlight) -> [AudienceStep] {
    guard entry.broadcast.work?.stage == .chaining else { return [.met] }
    // The next page is on its queue, so this one may be sent.
    _ = entry.ledger.met()
    return sendPage(entry)
  }

  private func sendPage(_ entry: InFlight) -> [AudienceStep] {
    entry.broadcast.work?.sends()
    return [.send]
  }

  // MARK: small audiences

  /// The limit of a user's or group's devices that are sent to without a campaign.
  private static let smallAudience = 1_000
  /// Milliseconds.
  private static let longestDelivery: Int64 = 300_000

  func readSmallAudience(_ entry: InFlight, _ audience: Audience) -> AudienceStep {
    let (kind, app) = (entry.request?.tokenKind ?? .alert, appID(of: entry))
    // An earlier delivery, which ended lately, may have sent to devices that are gone now.
    let recent = tools.time.wallClock - Self.longestDelivery
    let goneSince = entry.delivery.redelivered && entry.identity.isDated ? max(entry.identity.published, recent) : nil
    let page = RegistryCall.read {
      try $0.page(of: audience, kind: kind, app: app, after: 0, upTo: .max, limit: Self.smallAudience, goneSince: goneSince)
    }
    return .ask(page, begins: true) { $0.smallAudienceRead($1, $2) }
  }

  func restRead(_ entry: InFlight, _ rest: Resolution) -> [AudienceStep] {
    beginPage(entry, AudiencePage(devices: rest.devices, next: 0, isLast: true), nil)
  }

  func smallAudienceRead(_ entry: InFlight, _ read: AudiencePage) -> [AudienceStep] {
    guard read.isLast else { return becomeCampaign(entry) }
    entry.broadcast.page = PageTicket(
      campaign: [], number: 0, after: 0, upTo: .max, deadline: entry.identity.deadline, using: &tools.time.random)
    entry.broadcast.page?.isLast = true
    resolver.addRecipients(of: read.devices, to: entry, skipping: SettledDevices())
    return sendPage(entry)
  }
}
