import DeviceRegistry
import PushCore

/// A page's end: the ladder for what must be tried again, or its report; and with the last report, the campaign's result.
extension Broadcasts {
  /// Every device of the page has ended or waits for its next attempt.
  func concludePage(_ entry: InFlight, _ ended: PageTicket) {
    guard var work = entry.broadcast.work else { return }
    var page = ended
    let end = work.end(&page, entry.recipients, entry.registry.rows)
    entry.broadcast.page = page
    entry.broadcast.work = work
    switch end {
    case .beginAgain(let earliest):
      entry.broadcast.work?.beginsAgain = true
      pipeline.putOffWhenSafe(entry, until: earliest)
    case .retry: pipeline.putOffWhenSafe(entry)
    case .result:
      pipeline.publisher.publishResult(
        of: entry, FanOutResult(success: page.sent, failure: page.failed, failed: page.failures, failures: page.failureCounts))
    case .report: pipeline.perform(entry.ledger.owesReport(), entry)
    }
  }

  /// Too late for what earlier rounds have left of a small audience: the result counts what they have settled.
  func concludeExpired(_ entry: InFlight, _ page: PageTicket, _ left: [PageTicket.Device]) {
    guard entry.recipients.isEmpty else { return concludePage(entry, page) }
    pipeline.observers.note(.expired(left.count), entry)
    var failures = page.failureCounts
    failures.add(.expired, on: nil, devices: Int64(left.count))
    for device in left {
      let registration = DeviceRows.registration(id: device.id, salt: device.salt)
      pipeline.publisher.publishOptionalLetter(.expired, registration: registration, for: entry)
    }
    pipeline.publisher.publishResult(
        of: entry, FanOutResult(success: page.sent, failure: page.failed + Int64(left.count), failed: page.failures + left, failures: failures))
  }

  /// The page is to begin again, less what the registry knows of it, and so the registry has to know it first.
  func beginAgain(_ entry: InFlight) {
    guard let work = entry.broadcast.work else { return }
    let record = SettledDevices(of: entry, work).record
    entry.broadcast.work?.unsaved = record
    entry.ledger.owes()
    savePage(entry)
  }

  private func savePage(_ entry: InFlight) {
    guard let page = entry.broadcast.page, let record = entry.broadcast.work?.unsaved else { return }
    report(
      .savePage(record, campaign: page.campaign, page: page.number), for: entry,
      then: { broadcasts in { entry, _ in broadcasts.pageSaved(entry) } }, orElse: Broadcasts.pageNotSaved)
  }

  private func pageSaved(_ entry: InFlight) {
    guard entry.broadcast.work?.unsaved != nil else { return }
    entry.broadcast.work?.unsaved = nil
    // The broker delivers the original again: a copy would be a second one.
    guard !entry.ledger.isOrphan else { return entry.ledger.withdrawn() }
    pipeline.publisher.publishRetry(of: entry, at: entry.attempt.copyDue)
    pipeline.consequenceEnded(of: entry)
  }

  /// It is kept, unacknowledged, until the registry is back: asked again by ``savePages()``.
  private func pageNotSaved(_ entry: InFlight, _ error: RegistryError) {
    // What the registry will never take is sent again, rather than kept for ever.
    if case .refused = error { pageSaved(entry) } else { unsavedPages.append(entry.reference) }
  }

  /// To be called about once a second.
  func savePages() {
    let unsaved = unsavedPages
    unsavedPages.removeAll()
    for reference in unsaved { if let entry = pipeline.table[reference] { savePage(entry) } }
  }

  /// Reports to the registry how the page has ended; the campaign's result follows from the last report.
  func reportPage(_ entry: InFlight) {
    guard let page = entry.broadcast.page else { return }
    entry.ledger.owes()
    let ending = PageReport(
      campaign: page.campaign, page: page.number, isLast: page.isLast, sent: page.sent, failed: page.failed,
      unknown: Int64(entry.broadcast.work?.unknown ?? 0), failures: page.failureCounts)
    report(.pageDone(ending), for: entry, then: Broadcasts.pageReported, orElse: Broadcasts.oweReport)
  }

  private func pageReported(_ entry: InFlight, _ campaign: Campaign?) {
    entry.broadcast.work?.campaign = campaign
    if campaign?.isComplete == true { claimResult(entry) }
    pipeline.consequenceEnded(of: entry)
  }

  func oweReport(_ entry: InFlight, _ error: RegistryError) { oweReport(entry, "\(error)") }

  /// The report, or the result, has to wait: puts the page on the ladder with nothing left to send, so that the delivery isn't kept
  /// unacknowledged and no device gets a second push.
  func oweReport(_ entry: InFlight, _ reason: String) {
    entry.broadcast.page?.pending = []
    if entry.attempt.lastFailure == nil { entry.attempt.lastFailure = (.unavailable, reason, nil) }
    pipeline.publisher.publishRetry(of: entry, at: time.wallClock + OutcomePublisher.registryDelay)
    pipeline.consequenceEnded(of: entry)
  }

  /// A page's copy for the ladder was taken back before it left, and the page has come back here: its ticket says what is left.
  func publishWithdrawn(_ entry: InFlight) {
    pipeline.conclude(entry) { pipeline.putOffWhenSafe(entry) }
  }

  /// A page whose channel is lost may come to another worker: it finds what was settled here so far.
  func saveBegunPage(_ entry: InFlight) {
    guard let work = entry.broadcast.work, let page = entry.broadcast.page, !page.campaign.isEmpty, entry.hasBegun else {
      return
    }
    let isOnItsWayToLadder = work.stage == .ending && (work.beginsAgain || page.pending != nil)
    guard work.stage == .sending || entry.ledger.isReportDue || isOnItsWayToLadder else { return }
    note(.savePage(SettledDevices(of: entry, work).record, campaign: page.campaign, page: page.number))
  }
}
