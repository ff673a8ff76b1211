import PushCore

/// A question to the registry, or a change of it.
public enum RegistryRequest: Sendable {
  case resolve([LookUp])
  case find([(platform: Platform, token: [UInt8])], app: [UInt8])
  case survey(Audience, app: [UInt8])
  case page(Audience, app: [UInt8], after: Int64, upTo: Int64, limit: Int)
  case mark([DeviceMark])
  case apply([RegistryChange])
  case createCampaign(CampaignDescription)
  case openPage(PageOpening)
  case pageDone(PageReport)
  case savePage(PageRecord, campaign: [UInt8], page: Int64)
  case loadPage(campaign: [UInt8], page: Int64)
  case finish(campaign: [UInt8], claimant: [UInt8], lease: Int64)
  case resultPublished(campaign: [UInt8])
  case setState(CampaignState, campaign: [UInt8])
  case campaign([UInt8])
  case purge(goneBefore: Int64, campaignsBefore: Int64, limit: Int)
  /// Whether it answers and, when writes to devices failed lately, takes them.
  case probe
}

/// What a write is to; writes of one kind wait for each other.
public enum WriteKind: Sendable {
  /// Devices, users, topics and groups.
  case devices
  /// The accounts of campaigns.
  case campaigns
}

extension RegistryRequest {
  /// What it writes to; nil for a look-up.
  package var writes: WriteKind? {
    switch self {
    case .resolve, .find, .survey, .page, .loadPage, .campaign: nil
    case .mark, .apply, .purge, .probe: .devices
    case .createCampaign, .openPage, .pageDone, .savePage, .finish, .resultPublished, .setState: .campaigns
    }
  }
}

/// What a ``RegistryRequest`` is answered with; each says for which.
public enum RegistryAnswer: Sendable {
  /// `resolve`
  case resolution(Resolution)
  /// `find`
  case devices(DeviceRows)
  /// `survey`
  case survey(AudienceSurvey)
  /// `page`
  case page(AudiencePage)
  /// `mark`, in the order of the marks
  case marks([MarkOutcome])
  /// `apply`, in the order of the changes
  case changes([ChangeAnswer])
  /// `openPage`
  case opened(OpenedPage)
  /// `createCampaign`, `pageDone`, `campaign`: nil when there is none
  case campaign(Campaign?)
  /// `loadPage`
  case record(PageRecord?)
  /// `finish`
  case claim(ResultClaim)
  /// `setState`
  case happened(Bool)
  /// `savePage`, `resultPublished`, `purge`, `probe`
  case done
}

extension DeviceStore {
  /// Does what a request asks for.
  package func answer(_ request: RegistryRequest, now: Int64) throws(StoreError) -> RegistryAnswer {
    switch request {
    case .resolve(let lookUps): return .resolution(try resolve(lookUps))
    case .find(let tokens, let app): return .devices(try find(tokens, app: app))
    case .survey(let audience, let app): return .survey(try survey(audience, app: app))
    case .page(let audience, let app, let cursor, let highWater, let limit):
      return .page(try page(of: audience, app: app, after: cursor, upTo: highWater, limit: limit))
    case .mark(let marks): return .marks(try mark(marks, now: now))
    case .apply(let changes): return .changes(try apply(changes, now: now))
    case .createCampaign(let campaign): return .campaign(try createCampaign(campaign, now: now))
    case .openPage(let opening): return .opened(try openPage(opening, now: now))
    case .pageDone(let report): return .campaign(try pageDone(report, now: now))
    case .savePage(let record, let campaign, let page):
      try savePage(record, campaign: campaign, page: page, now: now)
      return .done
    case .loadPage(let campaign, let page): return .record(try loadPage(campaign: campaign, page: page))
    case .finish(let campaign, let claimant, let lease):
      return .claim(try finish(campaign, claimant: claimant, lease: lease))
    case .resultPublished(let campaign):
      try resultPublished(campaign, now: now)
      return .done
    case .setState(let state, let campaign): return .happened(try setState(state, of: campaign, now: now))
    case .campaign(let id): return .campaign(try campaign(id))
    case .purge(let goneBefore, let campaignsBefore, let limit):
      _ = try purge(goneBefore: goneBefore, campaignsBefore: campaignsBefore, limit: limit)
      return .done
    case .probe:
      try probe(isWriting: false)
      return .done
    }
  }
}
