import DeviceRegistry
import PushCore

/// While the registry can't answer, sends with provider tokens go on; what needs it goes to the ladder.
extension Pipeline {
  func refuseOrPutOff(_ entry: InFlight, _ error: RegistryError) {
    guard !entry.ledger.isConcluded else { return }
    // Nothing was sent since it was delivered here, and the broker delivers it again: a copy would be one too many.
    if entry.ledger.isOrphan {
      table.forget(entry)
      return forgetIfUnknowable(entry)
    }
    if case .refused = error { return reject(entry, Rejection(.invalidParameters, "\(error)")) }
    putOff(entry, by: OutcomePublisher.registryDelay, "\(error)")
  }

  /// To the ladder as it came, at no attempt's cost. What is too late, or for now or never, ends instead; but a campaign's page must
  /// be accounted for, and a request that may have its campaign already asks for it when the registry is back.
  func putOff(_ entry: InFlight, by delay: Int64, _ reason: String) {
    // A small audience that nothing was sent to is a request again: no ticket names its devices.
    if entry.broadcast.page?.campaign.isEmpty == true, entry.broadcast.page?.pending == nil {
      entry.broadcast.page = nil
      entry.recipients.removeAll(keepingCapacity: true)
    }
    let isPage = entry.isOfCampaign
    let mayHaveCampaign = entry.broadcast.work != nil && !entry.isPage && entry.isNamed
    let now = time.wallClock
    var delay = delay
    if !isPage, now > entry.identity.deadline {
      guard mayHaveCampaign else { return expire(entry) }
      guard now - entry.identity.deadline <= Self.longestDoubt else {
        let words = "its time to live passed while the registry was unreachable: whether it had been begun is not known"
        return reject(entry, Rejection(.unavailable, words))
      }
      delay = Self.delayOfDoubt
    }
    if !isPage, entry.attempt.isLast, !(mayHaveCampaign && entry.delivery.redelivered) {
      return reject(entry, Rejection(.unavailable, reason))
    }
    entry.broadcast.work?.ends()
    observers.note(.parked, entry)
    if entry.attempt.lastFailure == nil { entry.attempt.lastFailure = (.unavailable, reason, nil) }
    entry.attempt.longestWait = max(entry.attempt.longestWait, delay)
    conclude(entry) { putOffWhenSafe(entry, until: now + delay) }
  }

  /// Milliseconds for which a broadcast that is too late waits for the registry's word on whether it has begun in time, and how often it
  /// asks.
  private static let longestDoubt: Int64 = 86_400_000
  private static let delayOfDoubt: Int64 = 300_000

  func appID(of entry: InFlight) -> [UInt8] { apps.id(of: entry.identity.app) }
}
