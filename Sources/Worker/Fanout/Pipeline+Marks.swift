import PushCore
import Storage

/// What answers say against registered tokens, and the breaker that stops believing them.
extension Pipeline {
  /// Counts what answers say against tokens, and remembers it for the registry: nothing while the breaker is open.
  func mark(_ meaning: ReplyMeaning, _ entry: InFlight, _ index: Int) {
    guard let app = entry.app, !entry.isForActivity else { return }
    let verdict: DeviceMark.Verdict
    switch meaning.reaction {
    case .delivered:
      _ = breakers[app].note(isRefused: false, at: time.now, wallClock: time.wallClock)
      return
    // The request's arrival stands for the provider's time where that is missing: what was registered since is not meant.
    case .gone: verdict = .gone(since: meaning.invalidSince ?? entry.admittedAt)
    case .suspect: verdict = .suspect
    case .drop, .retry, .credential: return
    }
    if breakers[app].note(isRefused: true, at: time.now, wallClock: time.wallClock) { breakerOpened(app, meaning.reason) }
    guard desk != nil else { return }
    guard !breakers[app].isOpen else { return holdCampaign(of: entry) }
    let recipient = entry.recipients[index]
    marks.append(
      DeviceMark(
        app: apps[app].id, platform: recipient.platform, token: Array(recipient.token), verdict: verdict,
        reason: Array(meaning.reason.utf8)))
    if marks.count >= Self.marksPerWrite { writeMarks() }
  }

  private static let marksPerWrite = 500

  /// To be called about once a second.
  func writeMarks() {
    guard !marks.isEmpty else { return }
    ask(.marks(marks), .mark(marks))
    marks.removeAll(keepingCapacity: true)
  }

  private static let mostKeptMarks = 20_000

  /// Marks that couldn't be written now. What doesn't fit is made again by the next send's answer.
  func keep(_ marks: [DeviceMark]) {
    for mark in marks where keptMarks.count < Self.mostKeptMarks {
      if let app = apps.firstIndex(where: { $0.id == mark.app }), !breakers[app].isOpen { keptMarks.append(mark) }
    }
  }

  /// To be called about once a second: one portion, to see whether it goes again.
  func retryMarks() {
    guard !keptMarks.isEmpty else { return }
    let marks = Array(keptMarks.prefix(Self.marksPerWrite))
    keptMarks.removeFirst(marks.count)
    ask(.marks(marks), .mark(marks))
  }

  private func breakerOpened(_ app: Int, _ reason: String) {
    // What led here is as doubtful as what follows.
    marks.removeAll { $0.app == apps[app].id }
    keptMarks.removeAll { $0.app == apps[app].id }
    log.error(
      desk == nil
        ? "an abnormal share of tokens is refused: check environment and topic before anything is pruned"
        : "an abnormal share of tokens is refused: nothing is marked and campaigns are held; check environment, topic and registry",
      ["app": String(decoding: apps[app].id, as: UTF8.self), "percent": breakers[app].percent, "reason": reason])
  }

  private func holdCampaign(of entry: InFlight) {
    guard let campaign = entry.page?.campaign, !campaign.isEmpty, entry.work?.isHeld == false else { return }
    entry.work?.isHeld = true
    hold(campaign: campaign)
  }

  func hold(campaign: [UInt8]) { ask(.hold(campaign: campaign), .setState(.held, campaign: campaign)) }

  /// The campaign runs: where an operator has resumed it since the breaker opened, tokens are marked again, by every worker that gets
  /// one of its pages.
  func closeBreaker(of entry: InFlight, _ campaign: Campaign) {
    guard let app = entry.app, let time = campaign.resumedAt, breakers[app].resumed(at: time) else { return }
    log.info(
      "a campaign was resumed: tokens are marked again",
      ["campaign": String(decoding: campaign.description.id, as: UTF8.self)])
  }

  func campaignHeld(_ campaign: [UInt8]) {
    log.error(
      "the campaign is held: pushfleet campaigns resume or cancel", ["campaign": String(decoding: campaign, as: UTF8.self)])
  }
}
