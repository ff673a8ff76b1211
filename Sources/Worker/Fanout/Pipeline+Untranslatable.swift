import PushCore

/// A broadcast that a platform can't carry fails for every device there. That is one dead letter for the platform, by the page that comes
/// upon the first of these devices, and not one for each: the pages after it know from their tickets.
extension Pipeline {
  /// Before the next page is on the queue.
  func reportUntranslatable(_ entry: InFlight) {
    guard isOfCampaign(entry) else { return }
    var pools: Set<Int> = []
    for recipient in entry.recipients {
      guard case .waiting = recipient.state, entry.page?.reported.contains(recipient.platform) == false,
        pools.insert(recipient.pool).inserted
      else { continue }
      var report: LossReport?
      guard case .failure(let rejection)? = translate(entry, recipient.platform, pool: recipient.pool, &report) else {
        continue
      }
      entry.page?.reported.insert(recipient.platform)
      let platform = recipient.platform == .apns ? "APNs" : "FCM"
      let letter = DeadLetter(
        error: rejection.code, reason: "for every \(platform) device of the broadcast: \(rejection.reason)", attempts: 0,
        failedAt: time.wallClock)
      publishDeadLetter(letter, of: entry)
    }
  }

  /// One device of a request that can't be translated for it.
  func failUntranslatable(_ entry: InFlight, _ index: Int, _ rejection: Rejection) {
    if isOfCampaign(entry) {
      settle(entry, index, .failed(rejection.code))
    } else {
      fail(entry, index, rejection.code, reason: rejection.reason)
    }
  }

  private func isOfCampaign(_ entry: InFlight) -> Bool { entry.page?.campaign.isEmpty == false }
}
