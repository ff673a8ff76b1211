import PushCore
import Storage

/// A page's end: the ladder for what must be tried again, or its report; and with the last report, the campaign's result.
extension Pipeline {
  /// Every device of the page has ended or waits for its next attempt.
  func concludePage(_ entry: InFlight, _ ended: PageTicket) {
    var page = ended
    var pending: [PageTicket.Device] = []
    var earliest = Int64.max
    for recipient in entry.recipients {
      switch recipient.state {
      case .delivered: page.sent += 1
      case .failed: page.failed += 1
      case .postponed(let until):
        earliest = min(earliest, until)
        if let row = entry.rows?[recipient.row] { pending.append(.init(id: row.id, salt: row.salt)) }
      case .waiting, .unresolved, .gone, .sent, .refused, .sameAs: continue
      }
    }
    if pending.count > PageTicket.mostPending, let work = entry.work {
      entry.work?.stage = .ending
      entry.work?.grown = (SettledDevices(of: entry, work).record, earliest)
      entry.ledger.owes()
      return saveGrownPage(entry)
    }
    page.pending = pending
    entry.page = page
    entry.work?.stage = .ending
    if !pending.isEmpty {
      publishRetry(of: entry, at: earliest)
    } else if page.campaign.isEmpty {
      publishFanOutResult(of: entry, success: page.sent, failure: page.failed)
    } else {
      perform(entry.ledger.owesReport(), entry)
    }
  }

  /// Too many devices are left to be named: the page is to begin again, less what the registry knows of it, and so the registry has to
  /// know it first.
  private func saveGrownPage(_ entry: InFlight) {
    guard let page = entry.page, let grown = entry.work?.grown else { return }
    ask(entry, .saveGrownPage, .savePage(grown.record, campaign: page.campaign, page: page.number))
  }

  func grownPageSaved(_ entry: InFlight) {
    guard let grown = entry.work?.grown else { return }
    entry.work?.grown = nil
    publishRetry(of: entry, at: grown.earliest)
    consequenceEnded(of: entry)
  }

  /// It is kept, unacknowledged, until the registry is back: asked again by ``saveGrownPages()``.
  func grownPageNotSaved(_ entry: InFlight, _ error: StoreError) {
    // What the registry will never take is sent again, rather than held for ever.
    if case .refused = error { grownPageSaved(entry) } else { unsavedPages.append((entry.index, entry.generation)) }
  }

  /// To be called about once a second.
  func saveGrownPages() {
    let unsaved = unsavedPages
    unsavedPages.removeAll()
    for (index, generation) in unsaved { with(index, generation) { saveGrownPage($0) } }
  }

  /// Reports to the registry how the page has ended; the campaign's result follows from the last report.
  func reportPage(_ entry: InFlight) {
    guard let page = entry.page else { return }
    entry.ledger.owes()
    ask(
      entry, .reportPage,
      .pageDone(
        PageReport(campaign: page.campaign, page: page.number, isLast: page.isLast, sent: page.sent, failed: page.failed)))
  }

  func pageReported(_ entry: InFlight, _ campaign: Campaign?) {
    entry.work?.campaign = campaign
    if campaign?.isComplete == true { claimResult(entry) }
    consequenceEnded(of: entry)
  }

  /// Every page is settled: exactly one of those who find that out publishes the result.
  func claimResult(_ entry: InFlight) {
    guard let page = entry.page else { return }
    entry.ledger.owes()
    let claimant = UUIDText.random(using: &time.random)
    entry.work?.claimant = claimant
    ask(entry, .claimResult, .finish(campaign: page.campaign, claimant: claimant, lease: resultLease))
  }

  /// To be called about once a second: a result that waits for its confirm, for as long as the broker takes, is still this worker's.
  func renewResultClaims() {
    resultClaims.removeAll { table[$0.entry].generation != $0.generation }
    for claim in resultClaims {
      guard let page = table[claim.entry].page, let work = table[claim.entry].work else { continue }
      ask(.note, .finish(campaign: page.campaign, claimant: work.claimant, lease: resultLease))
    }
  }

  func resultClaimed(_ entry: InFlight, _ claim: ResultClaim) {
    // Whoever has claimed it may die before it is out.
    if claim == .claimedElsewhere { return oweReport(entry, "another worker is about to publish the result") }
    if claim == .claimed, let campaign = entry.work?.campaign {
      entry.work?.isResultClaimed = true
      resultClaims.append((entry.index, entry.generation))
      log.info(
        "campaign ended",
        [
          "campaign": String(decoding: campaign.description.id, as: UTF8.self),
          "cancelled": campaign.state == .cancelled, "sent": campaign.sent, "failed": campaign.failed,
        ])
      publishFanOutResult(of: entry, success: campaign.sent, failure: campaign.failed)
    }
    consequenceEnded(of: entry)
  }

  /// The result is confirmed: should the page come again, nobody publishes it a second time.
  func noteResultPublished(_ entry: InFlight) {
    guard entry.work?.isResultClaimed == true, let page = entry.page else { return }
    ask(.note, .resultPublished(campaign: page.campaign))
  }

  /// The report, or the result, has to wait: puts the page on the ladder with nothing left to send, so that the delivery isn't kept
  /// unacknowledged and no device gets a second push.
  func oweReport(_ entry: InFlight, _ reason: String) {
    entry.page?.pending = []
    if entry.lastFailure == nil { entry.lastFailure = (.unavailable, reason, nil) }
    publishRetry(of: entry, at: time.wallClock + Self.registryDelay)
    consequenceEnded(of: entry)
  }

  /// A page whose channel is lost may come to another worker: it finds what was settled here so far.
  func saveBegunPage(_ entry: InFlight) {
    guard let work = entry.work, let page = entry.page, !page.campaign.isEmpty, entry.hasBegun else { return }
    let isOnItsWayToLadder = work.stage == .ending && page.pending?.isEmpty == false
    guard work.stage == .sending || entry.ledger.isReportDue || isOnItsWayToLadder else { return }
    ask(.note, .savePage(SettledDevices(of: entry, work).record, campaign: page.campaign, page: page.number))
  }
}

extension SettledDevices {
  /// Those of earlier deliveries included. A failure counts only when what follows from it is safe.
  init(of entry: InFlight, _ work: AudienceWork) {
    self = work.settledBefore
    for recipient in entry.recipients {
      guard let id = entry.rows?[recipient.row].id else { continue }
      switch recipient.state {
      case .delivered: note(id, isReached: true)
      case .failed where entry.ledger.owed == 0: note(id, isReached: false)
      case .failed, .waiting, .unresolved, .gone, .refused, .sent, .postponed, .sameAs: continue
      }
    }
  }
}
