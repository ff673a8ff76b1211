import DeviceRegistry
import PushCore

/// Ends a page: the ladder for devices to retry, or the report. The campaign's result follows the last report.
extension Broadcasts {
  /// Every device of the page has ended or waits for its next attempt.
  func devicesEnded(_ entry: InFlight) -> [AudienceStep] {
    guard var page = entry.broadcast.page, entry.broadcast.work != nil else { return [] }
    noteUnreached(entry)
    entry.broadcast.work?.ends()
    let rows = entry.registry.rows
    var pending: [PageTicket.Device] = []
    var earliest = Int64.max
    for recipient in entry.recipients {
      switch recipient.state {
      case .delivered: page.sent += 1
      case .failed(let error):
        page.failed += 1
        page.failureCounts.add(error, on: recipient.platform)
        if page.campaign.isEmpty, let row = rows?[recipient.row] { page.failures.append(.init(id: row.id, salt: row.salt)) }
      case .postponed(let until):
        earliest = min(earliest, until)
        if let row = rows?[recipient.row] { pending.append(.init(id: row.id, salt: row.salt)) }
      case .waiting, .unresolved, .gone, .sent, .refused, .sameAs: continue
      }
    }
    if pending.count > PageTicket.mostPending {
      // Too many for a message. The page begins again, without those that the registry has as settled.
      entry.broadcast.work?.beginsAgain = true
      return [.putOffWhenSafe(until: earliest)]
    }
    page.pending = pending
    entry.broadcast.page = page
    if !pending.isEmpty { return [.putOffWhenSafe(until: nil)] }
    guard page.campaign.isEmpty else { return [.report] }
    return [
      .result(.init(success: page.sent, failure: page.failed, failed: page.failures, failures: page.failureCounts))
    ]
  }

  /// Adds the failed devices of a campaign's page to its list in the registry, each once, and those that are not registered any more.
  func noteUnreached(_ entry: InFlight, _ unregistered: [PageTicket.Device] = []) {
    guard let campaign = entry.broadcast.page?.campaign, !campaign.isEmpty else { return }
    var unreached = unregistered.map { UnreachedDevice(id: $0.id, salt: $0.salt, error: .notRegistered) }
    for recipient in entry.recipients {
      guard case .failed(let error) = recipient.state, let row = entry.registry.rows?[recipient.row] else { continue }
      unreached.append(UnreachedDevice(id: row.id, salt: row.salt, error: error))
    }
    guard !unreached.isEmpty else { return }
    tools.registry?.note(.write(.campaigns) { [unreached] store, _ in try store.addUnreached(unreached, by: campaign) })
  }

  /// The remaining devices of a small audience have expired. The result includes those settled before.
  func expired(_ entry: InFlight, _ page: PageTicket, _ left: [PageTicket.Device]) -> [AudienceStep] {
    guard entry.recipients.isEmpty else { return devicesEnded(entry) }
    observers.note(.expired(left.count), entry)
    var failures = page.failureCounts
    failures.add(.expired, on: nil, devices: Int64(left.count))
    let letters = left.map { AudienceStep.expiredLetter(registration: DeviceRows.registration(id: $0.id, salt: $0.salt)) }
    let result = FanOutResult(
      success: page.sent, failure: page.failed + Int64(left.count), failed: page.failures + left, failures: failures)
    return letters + [.result(result)]
  }

  // MARK: a page that begins again

  /// Saves the settled devices in the registry, so that the page can begin again without them.
  func beginAgain(_ entry: InFlight) -> [AudienceStep] {
    guard let work = entry.broadcast.work else { return [] }
    let record = SettledDevices(of: entry, work).record
    entry.broadcast.work?.unsaved = record
    entry.ledger.owes()
    return savePage(entry)
  }

  func savePage(_ entry: InFlight) -> [AudienceStep] {
    guard let page = entry.broadcast.page, let record = entry.broadcast.work?.unsaved else { return [] }
    return [
      .ask(Self.save(record, of: page), orElse: { $0.pageNotSaved($1, $2) }) { broadcasts, entry, _ in
        broadcasts.pageSaved(entry)
      }
    ]
  }

  func pageSaved(_ entry: InFlight) -> [AudienceStep] {
    guard entry.broadcast.work?.unsaved != nil else { return [] }
    entry.broadcast.work?.unsaved = nil
    // The broker delivers the original again, so a copy would be a duplicate.
    if entry.ledger.isOrphan {
      entry.ledger.withdrawn()
      return []
    }
    return [.retry(at: entry.attempt.copyDue), .met]
  }

  /// Keeps the page unacknowledged until the registry is back. ``takeUnsaved()`` returns it for the next try.
  func pageNotSaved(_ entry: InFlight, _ error: RegistryError) -> [AudienceStep] {
    // If the registry refuses the record for good, some devices get a second push; otherwise the page would be kept for ever.
    if case .refused = error { return pageSaved(entry) }
    unsavedPages.append(entry.reference)
    return []
  }

  /// To be called about once a second. Returns the pages whose record must be saved again.
  func takeUnsaved() -> [RequestReference] {
    defer { unsavedPages.removeAll() }
    return unsavedPages
  }

  /// Saves the settled devices of a page whose channel is lost, since another worker may receive it.
  func saveBegunPage(_ entry: InFlight) {
    guard let work = entry.broadcast.work, let page = entry.broadcast.page, !page.campaign.isEmpty, entry.hasBegun else {
      return
    }
    let isOnItsWayToLadder = work.stage == .ending && (work.beginsAgain || page.pending != nil)
    guard work.stage == .sending || entry.ledger.due == .report || isOnItsWayToLadder else { return }
    // The other worker doesn't send to settled devices, so it can't add them.
    if entry.ledger.owed == 0 { noteUnreached(entry) }
    tools.registry?.note(Self.save(SettledDevices(of: entry, work).record, of: page))
  }

  private static func save(_ record: PageRecord, of page: PageTicket) -> RegistryCall<Void> {
    let (campaign, number) = (page.campaign, page.number)
    return .write(.campaigns) { store, _ in try store.savePage(record, campaign: campaign, page: number) }
  }

  // MARK: its report

  func reportPage(_ entry: InFlight) -> [AudienceStep] {
    guard let page = entry.broadcast.page else { return [] }
    entry.ledger.owes()
    let ending = PageReport(
      campaign: page.campaign, page: page.number, isLast: page.isLast, isOfSeveralChains: page.isOfSeveralChains,
      sent: page.sent, failed: page.failed, unknown: Int64(entry.broadcast.work?.unknown ?? 0), failures: page.failureCounts)
    let call = RegistryCall.write(.campaigns) { try $0.pageDone(ending, now: $1) }
    return [.ask(call, orElse: { $0.oweReport($1, "\($2)") }) { $0.pageReported($1, $2) }]
  }

  func pageReported(_ entry: InFlight, _ campaign: Campaign?) -> [AudienceStep] {
    entry.broadcast.work?.campaign = campaign
    return (campaign?.isComplete == true ? claimResult(entry) : []) + [.met]
  }

  /// The report, or the result, must wait. The page goes to the ladder without devices: the delivery isn't kept unacknowledged,
  /// and no device gets a second push.
  func oweReport(_ entry: InFlight, _ reason: String) -> [AudienceStep] {
    entry.broadcast.page?.pending = []
    if entry.attempt.lastFailure == nil { entry.attempt.lastFailure = (.unavailable, reason, nil) }
    return [.retry(at: tools.time.wallClock + OutcomePublisher.registryDelay), .met]
  }

  // MARK: the result

  /// Every page is settled. Several workers may notice that, and the registry lets one of them publish the result.
  func claimResult(_ entry: InFlight) -> [AudienceStep] {
    guard let page = entry.broadcast.page else { return [] }
    entry.ledger.owes()
    let claimant = UUIDText.random(using: &tools.time.random)
    entry.broadcast.work?.claimant = claimant
    return [
      .ask(finishing(page.campaign, as: claimant), orElse: { $0.oweReport($1, "\($2)") }) { $0.resultClaimed($1, $2) }
    ]
  }

  private func finishing(_ campaign: [UInt8], as claimant: [UInt8]) -> RegistryCall<ResultClaim> {
    let lease = resultLease
    return .write(.campaigns) { store, _ in try store.finish(campaign, claimant: claimant, lease: lease) }
  }

  /// To be called about once a second. Renews the claims of results that await their confirm.
  func renewResultClaims(_ table: InFlightTable) {
    resultClaims.removeAll { table[$0] == nil }
    for claim in resultClaims {
      guard let entry = table[claim], let page = entry.broadcast.page, let work = entry.broadcast.work else { continue }
      tools.registry?.note(finishing(page.campaign, as: work.claimant))
    }
  }

  func resultClaimed(_ entry: InFlight, _ claim: ResultClaim) -> [AudienceStep] {
    // The worker that has claimed the result may die before it is published.
    if claim == .claimedElsewhere { return oweReport(entry, "another worker is about to publish the result") }
    guard case .claimed(let failures) = claim, let campaign = entry.broadcast.work?.campaign else { return [.met] }
    entry.broadcast.work?.isResultClaimed = true
    resultClaims.append(entry.reference)
    tools.log.info(
      "campaign ended",
      [
        "campaign": String(decoding: campaign.description.id, as: UTF8.self),
        "app": campaign.description.app, "message_id": campaign.description.messageID,
        "cancelled": campaign.state == .cancelled, "sent": campaign.sent, "failed": campaign.failed,
        "unknown": campaign.unknown, "not_sent": campaign.state == .cancelled ? campaign.remaining : 0,
      ])
    let result = FanOutResult(
      success: campaign.sent, failure: campaign.failed, unknown: campaign.unknown, failures: failures)
    return [.result(result), .met]
  }

  /// The broker has confirmed the result: it isn't published again if the page is redelivered.
  func noteResultPublished(_ entry: InFlight) {
    guard entry.broadcast.work?.isResultClaimed == true, let page = entry.broadcast.page else { return }
    tools.registry?.note(.write(.campaigns) { try $0.resultPublished(page.campaign, now: $1) })
  }
}
