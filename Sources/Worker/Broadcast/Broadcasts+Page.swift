import DeviceRegistry
import PushCore

/// A page of an audience: opened, its successor published, sent.
///
/// The chain of a campaign has one end, the page that nobody has opened yet. Whoever opens it publishes its successor before sending
/// the first push, so that a worker that dies leaves at most the pages it was sending, which are delivered again.
extension Broadcasts {
  func takePage(_ entry: InFlight) {
    guard let page = entry.broadcast.page, let audience = entry.broadcast.work?.audience else { return }
    let app = pipeline.appID(of: entry)
    let rest = page.pending?.map { DeviceRows.registration(id: $0.id, salt: $0.salt) }
    if page.campaign.isEmpty {
      let lookUps = (rest ?? []).map { LookUp(app: app, registration: $0) }
      return ask(.resolve(lookUps), for: entry, then: Broadcasts.restOfSmallAudienceRead)
    }
    if rest?.isEmpty == true {
      entry.broadcast.work?.ends()
      return pipeline.conclude(entry) { pipeline.perform(entry.ledger.owesReport(), entry) }
    }
    let content: PageOpening.Content =
      rest.map { .rest($0) } ?? .members(audience, after: page.after, upTo: page.upTo, limit: pageSize)
    let opening = PageOpening(
      campaign: page.campaign, page: page.number, copy: page.copy, app: app, kind: entry.parsed?.kind ?? .alert,
      content: content)
    ask(.openPage(opening), for: entry, then: Broadcasts.pageOpened)
  }

  private func pageOpened(_ entry: InFlight, _ opened: OpenedPage) {
    // A stopping worker leaves it to the broker and the next worker.
    guard !pipeline.dispatcher.isDraining else { return }
    switch opened {
    case .unknown:
      let reason = "\(PageTicket.header): the registry has no such campaign of the application"
      pipeline.reject(entry, Rejection(.invalidParameters, reason))
    case .taken:
      pipeline.observers.note(.duplicatePage, entry)
      entry.broadcast.work?.ends()
      pipeline.conclude(entry) {}
    case .done(let campaign):
      entry.broadcast.work?.ends()
      entry.broadcast.work?.campaign = campaign
      pipeline.conclude(entry) { if campaign.isComplete { claimResult(entry) } }
    case .stopped(let campaign, let record, let devices):
      entry.broadcast.work?.campaign = campaign
      if campaign.state == .cancelled {
        abandonPage(entry, record, devices: devices)
      } else {
        noteWaiting(campaign)
        pipeline.putOff(entry, by: Self.pausedDelay, "the campaign is \(campaign.state.name)")
      }
    case .open(let read, let record, let campaign):
      if let app = entry.identity.app, let time = campaign.resumedAt {
        marks.campaignResumed(campaign.description.id, app: app, at: time)
      }
      noteRunning(campaign.description.id)
      entry.collapse.broadcastNote = pipeline.collapses.note(of: entry, campaign)
      beginPage(entry, read, record)
    }
  }

  /// A paused campaign's page goes round on the ladder: this is how long it takes to notice that the campaign runs again. Milliseconds.
  private static let pausedDelay: Int64 = 1_000

  private func beginPage(_ entry: InFlight, _ read: AudiencePage, _ record: PageRecord?) {
    guard var page = entry.broadcast.page, var work = entry.broadcast.work else { return }
    pipeline.observers.note(.unregistered(work.begin(&page, read, record)), entry)
    pipeline.observers.note(.pageBegun, entry)
    entry.broadcast.page = page
    entry.broadcast.work = work
    pipeline.resolver.addRecipients(of: read.devices, to: entry, skipping: work.settledBefore)
    reportPlatformFailures(entry)
    chain(entry, isChained: page.isLast || page.pending != nil, after: read.next)
  }

  /// The campaign was cancelled: nothing more is sent, and what was is accounted for. A page that was begun may have a successor,
  /// which has to be ended too; one that was not ends the chain.
  private func abandonPage(_ entry: InFlight, _ record: PageRecord?, devices: Int) {
    guard var page = entry.broadcast.page else { return }
    let isRedelivered = entry.delivery.redelivered
    entry.broadcast.work?.abandon(&page, record, devices: devices, isRedelivered: isRedelivered)
    entry.broadcast.page = page
    chain(entry, isChained: page.isLast || page.pending != nil, after: record?.extent?.end ?? 0)
  }

  /// Publishes the next page unless there is none, or it is out already.
  private func chain(_ entry: InFlight, isChained: Bool, after cursor: Int64) {
    guard !isChained, var next = entry.broadcast.page?.next(after: cursor, using: &time.random) else { return sendPage(entry) }
    next.hasWaited = entry.collapse.hasWaited
    entry.broadcast.work?.chains()
    pipeline.publisher.publish(publications.page(next, for: entry), for: entry)
  }

  /// A page that goes out, or a message of the next one, is confirmed.
  func pageConfirmed(_ entry: InFlight) {
    guard entry.broadcast.work?.stage == .chaining else { return pipeline.consequenceEnded(of: entry) }
    // The next page is safe on the queue: now this one may be sent.
    _ = entry.ledger.met()
    sendPage(entry)
  }

  private func sendPage(_ entry: InFlight) {
    entry.broadcast.work?.sends()
    // An orphan is sent when the broker has delivered it here again.
    if !entry.ledger.isOrphan { pipeline.passGates(entry) }
  }

  // MARK: small audiences

  /// Devices of a user or group that are sent to within the request.
  private static let smallAudience = 1_000

  func readSmallAudience(_ entry: InFlight, _ audience: Audience) {
    ask(
      .page(
        audience, kind: entry.parsed?.kind ?? .alert, app: pipeline.appID(of: entry), after: 0, upTo: .max,
        limit: Self.smallAudience),
      for: entry,
      then: Broadcasts.smallAudienceRead)
  }

  private func smallAudienceRead(_ entry: InFlight, _ read: AudiencePage) {
    guard !pipeline.dispatcher.isDraining else { return }
    guard read.isLast else { return becomeCampaign(entry) }
    entry.broadcast.page = PageTicket(
      campaign: [], number: 0, after: 0, upTo: .max, deadline: entry.identity.deadline, using: &time.random)
    entry.broadcast.page?.isLast = true
    pipeline.resolver.addRecipients(of: read.devices, to: entry, skipping: SettledDevices())
    sendPage(entry)
  }

  private func restOfSmallAudienceRead(_ entry: InFlight, _ resolution: Resolution) {
    guard !pipeline.dispatcher.isDraining else { return }
    beginPage(entry, AudiencePage(devices: resolution.devices, next: 0, isLast: true), nil)
  }
}
