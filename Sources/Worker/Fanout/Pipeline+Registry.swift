import PushCore
import Storage
import Wire

/// What the registry answers, and what happens while it can't: sends with provider tokens go on, everything else goes to the
/// ladder, but for changes, which wait in their order.
extension Pipeline: RegistryDeskOwner {
  func ask(_ ask: RegistryDesk.Ask, _ request: RegistryRequest) { desk?.ask(ask, request) }

  func ask(_ entry: InFlight, _ step: RegistryDesk.Step, _ request: RegistryRequest) {
    ask(.request(step, entry: entry.index, generation: entry.generation), request)
  }

  func appID(of entry: InFlight) -> [UInt8] { entry.app.map { apps[$0].id } ?? [] }

  /// The request, unless it was let go of meanwhile.
  func with(_ index: Int, _ generation: Int, _ body: (InFlight) -> Void) {
    let entry = table[index]
    if entry.generation == generation { body(entry) }
  }

  // MARK: RegistryDeskOwner

  func registryAnswered(_ ask: RegistryDesk.Ask, _ answer: RegistryAnswer) {
    switch (ask, answer) {
    case (.resolve(let places), .resolution(let resolution)): resolved(places, resolution)
    case (.hold(let campaign), .happened(let isHeld)): if isHeld { campaignHeld(campaign) }
    case (.request(let step, let index, let generation), let answer):
      with(index, generation) { answered($0, step, answer) }
    case (.change(let index, let generation), let answer): changesAnswered(index, generation, answer)
    case (.marks(let marks), .marks(let outcomes)):
      keep(zip(marks, outcomes).compactMap { mark, outcome in outcome == .busy ? mark : nil })
    case (.marks, _), (.note, _), (.resolve, _), (.hold, _): return
    }
  }

  private func answered(_ entry: InFlight, _ step: RegistryDesk.Step, _ answer: RegistryAnswer) {
    switch (step, answer) {
    case (.reportPage, .campaign(let campaign)): pageReported(entry, campaign)
    case (.claimResult, .claim(let claim)): resultClaimed(entry, claim)
    case (.saveGrownPage, .done): grownPageSaved(entry)
    // An earlier answer may have ended the request.
    case _ where entry.ledger.isConcluded: return
    case (.survey, .survey(let survey)): surveyed(entry, survey)
    case (.findCampaign, .campaign(let campaign)):
      if let campaign { campaignCreated(entry, campaign) } else { expire(entry) }
    case (.createCampaign, .campaign(let campaign?)): campaignCreated(entry, campaign)
    case (.readSmall, .page(let page)): smallAudienceRead(entry, page)
    case (.readRest, .resolution(let resolution)): restOfSmallAudienceRead(entry, resolution.devices)
    case (.openPage, .opened(let opened)): pageOpened(entry, opened)
    default: log.error("the registry gave an answer that was not asked for")
    }
  }

  func registryFailed(_ ask: RegistryDesk.Ask, _ error: StoreError) {
    switch ask {
    case .hold, .note: return
    case .marks(let marks): if case .unavailable = error { keep(marks) }
    case .resolve(let places):
      for place in places { with(place.entry, place.generation) { refuseOrPutOff($0, error) } }
    case .request(let step, let index, let generation):
      with(index, generation) { entry in
        switch step {
        case .survey, .findCampaign, .createCampaign, .readSmall, .readRest, .openPage: refuseOrPutOff(entry, error)
        case .reportPage, .claimResult: oweReport(entry, "\(error)")
        case .saveGrownPage: grownPageNotSaved(entry, error)
        }
      }
    case .change(let index, let generation): changeFailed(index, generation, error)
    }
  }

  func registryChanged(isAvailable: Bool, _ reason: String) {
    changeFeed?.registryChanged(isUsable: isAvailable)
    guard isAvailable else {
      return log.error("the registry can't be used; sends with provider tokens go on", ["reason": reason])
    }
    log.info("the registry is in use")
    applyOwedChanges()
  }

  func registryWritesChanged(_ kind: WriteKind, _ fault: StoreError?) {
    if kind == .devices { changeFeed?.registryChanged(isUsable: fault == nil) }
    let what = kind == .devices ? "devices" : "campaigns"
    guard let fault else {
      log.info("the registry can be written to again", ["what": what])
      return kind == .devices ? applyOwedChanges() : ()
    }
    log.error("the registry can't be written to; look-ups go on", ["what": what, "reason": "\(fault)"])
  }

  // MARK: the registry can't answer

  static let registryDelay: Int64 = 10_000

  private func refuseOrPutOff(_ entry: InFlight, _ error: StoreError) {
    guard !entry.ledger.isConcluded else { return }
    if case .refused = error { return reject(entry, Rejection(.invalidParameters, "\(error)")) }
    putOff(entry, by: Self.registryDelay, "\(error)")
  }

  /// To the ladder as it came, at no attempt's cost. What is too late, or for now or never, ends instead; but a campaign's page must
  /// be accounted for, and a request that may have its campaign already asks for it when the registry is back.
  func putOff(_ entry: InFlight, by delay: Int64, _ reason: String) {
    let isPage = entry.page?.campaign.isEmpty == false
    let mayHaveCampaign = entry.work != nil && entry.page == nil && isNamed(entry)
    let now = time.wallClock
    var delay = delay
    if !isPage, now > entry.deadline {
      guard mayHaveCampaign else { return expire(entry) }
      guard now - entry.deadline <= Self.longestDoubt else {
        let words = "its time to live passed while the registry was unreachable: whether it had been begun is not known"
        return reject(entry, Rejection(.unavailable, words))
      }
      delay = Self.delayOfDoubt
    }
    if !isPage, entry.isNowOrNever, !(mayHaveCampaign && entry.delivery.redelivered) {
      return reject(entry, Rejection(.unavailable, reason))
    }
    entry.work?.stage = .ending
    counters.parked += 1
    if entry.lastFailure == nil { entry.lastFailure = (.unavailable, reason, nil) }
    conclude(entry) { publishRetry(of: entry, at: now + delay) }
  }

  /// Milliseconds for which a broadcast that is too late waits for the registry's word on whether it has begun in time, and how often it
  /// asks.
  private static let longestDoubt: Int64 = 86_400_000
  private static let delayOfDoubt: Int64 = 300_000

  // MARK: upkeep

  /// How long a device that is gone answers `NotRegistered`, and a campaign that is over is listed.
  private static let goneKept: Int64 = 90 * 86_400_000
  private static let campaignsKept: Int64 = 30 * 86_400_000
  private static let purgePause = 600.0
  private static let purgedAtOnce = 500

  /// A shard that asks for nothing is to know of an outage as well: or it would take the changes that another one has given back.
  private static let probePause = 10.0

  /// To be called about once a second; purges every ten minutes.
  func lookAfterRegistry() {
    guard desk != nil else { return }
    if time.now >= nextProbe {
      nextProbe = time.now.advanced(bySeconds: Self.probePause)
      ask(.note, .probe)
    }
    guard time.now >= nextPurge else { return }
    let isFirst = nextPurge.nanoseconds == 0
    // Workers that are started together don't purge together.
    nextPurge = time.now.advanced(bySeconds: Self.purgePause * Double.random(in: 0.5...1.5, using: &time.random))
    guard !isFirst else { return }
    ask(
      .note,
      .purge(
        goneBefore: time.wallClock - Self.goneKept, campaignsBefore: time.wallClock - Self.campaignsKept,
        limit: Self.purgedAtOnce))
  }
}
