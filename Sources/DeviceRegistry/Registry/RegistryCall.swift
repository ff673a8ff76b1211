import PushCore

/// One operation of the registry as a shard asks for it, with the type of its answer. ``DeviceStore`` says what each does.
public struct RegistryCall<Answer: Sendable>: Sendable {
  public let request: RegistryRequest

  /// - Parameter writes: what it writes to; nil for a look-up.
  fileprivate init(
    _ writes: WriteKind?, _ operation: @escaping @Sendable (any DeviceStore, _ now: Int64) throws(RegistryError) -> Answer
  ) {
    request = .call(writes) { (store, now) throws(RegistryError) in try operation(store, now) }
  }

  fileprivate init(_ request: RegistryRequest) { self.request = request }
}

/// A call as the store's thread takes it. Answers travel without their type; ``RegistryCall`` knows it.
public enum RegistryRequest: Sendable {
  /// Answered with a `ChangeAnswer`. Changes that follow each other with the same fence share a transaction.
  case change(RegistryChange, fence: Int64)
  /// Answered with ``NoteAnswer/value``. Notes that follow each other share a transaction.
  case note(Note)
  /// Whether it answers and, when writes to devices failed lately, takes them.
  case probe
  case call(WriteKind?, @Sendable (any DeviceStore, _ now: Int64) throws(RegistryError) -> any Sendable)

  /// What it writes to; nil for a look-up.
  package var writes: WriteKind? {
    switch self {
    case .change, .probe: .devices
    case .note: .notes
    case .call(let writes, _): writes
    }
  }

  /// Does it.
  package func answer(_ store: any DeviceStore, now: Int64) throws(RegistryError) -> any Sendable {
    switch self {
    case .change(let change, let fence): return try store.apply([change], fence: fence, now: now)[0]
    case .note(let note): return try store.note([(note, now)]).answers[0].value
    case .probe: return try store.probe(isWriting: false)
    case .call(_, let operation): return try operation(store, now)
    }
  }
}

/// What a write is to; writes of one kind wait for each other.
public enum WriteKind: Int, CaseIterable, Sendable {
  /// Devices, users, topics and groups.
  case devices
  /// The accounts of campaigns.
  case campaigns
  /// What devices acknowledge, and their badges.
  case notes
}

extension RegistryCall<ChangeAnswer> {
  public static func apply(_ change: RegistryChange, fence: Int64) -> Self { .init(.change(change, fence: fence)) }
}

extension RegistryCall<Int64> {
  /// Answered with the number that changes are to be applied with.
  public static var claimChanges: Self { .init(.devices) { (store, _) throws(RegistryError) in try store.claimChanges() } }

  public static func badge(ofInstallation installation: [UInt8], app: [UInt8]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.badge(ofInstallation: installation, app: app) }
  }
}

extension RegistryCall<[MarkOutcome]> {
  /// Answered in the order of the marks.
  public static func mark(_ marks: [DeviceMark]) -> Self {
    .init(.devices) { (store, now) throws(RegistryError) in try store.mark(marks, now: now) }
  }
}

extension RegistryCall<Resolution> {
  public static func resolve(_ lookUps: [LookUp]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.resolve(lookUps) }
  }
}

extension RegistryCall<[Int64: DeviceOwner]> {
  /// - Parameter ids: ascending.
  public static func owners(of ids: [Int64]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.owners(of: ids) }
  }
}

extension RegistryCall<StaleDevices> {
  public static func claimStale(_ search: StaleSearch) -> Self {
    .init(.devices) { (store, now) throws(RegistryError) in try store.claimStale(search, now: now) }
  }
}

extension RegistryCall<AudienceSurvey> {
  public static func survey(_ audience: Audience, app: [UInt8]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.survey(audience, app: app) }
  }
}

extension RegistryCall<AudiencePage> {
  public static func page(
    _ audience: Audience, kind: TokenKind, app: [UInt8], after: Int64, upTo: Int64, limit: Int
  ) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in
      try store.page(of: audience, kind: kind, app: app, after: after, upTo: upTo, limit: limit)
    }
  }
}

extension RegistryCall<Campaign> {
  public static func createCampaign(_ campaign: CampaignDescription) -> Self {
    .init(.campaigns) { (store, now) throws(RegistryError) in try store.createCampaign(campaign, now: now) }
  }
}

extension RegistryCall<Campaign?> {
  public static func campaign(_ id: [UInt8]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.campaign(id) }
  }

  public static func pageDone(_ report: PageReport) -> Self {
    .init(.campaigns) { (store, now) throws(RegistryError) in try store.pageDone(report, now: now) }
  }
}

extension RegistryCall<CampaignSurvey> {
  public static func surveyCampaigns(latest: Int) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in
      CampaignSurvey(counts: try store.countCampaigns(), latest: try store.campaigns(limit: latest))
    }
  }
}

extension RegistryCall<OpenedPage> {
  public static func openPage(_ opening: PageOpening) -> Self {
    .init(.campaigns) { (store, now) throws(RegistryError) in try store.openPage(opening, now: now) }
  }
}

extension RegistryCall<ResultClaim> {
  /// - Parameter lease: milliseconds.
  public static func finish(campaign: [UInt8], claimant: [UInt8], lease: Int64) -> Self {
    .init(.campaigns) { (store, _) throws(RegistryError) in try store.finish(campaign, claimant: claimant, lease: lease) }
  }
}

extension RegistryCall<Bool> {
  public static func setSecret(_ hash: [UInt8], ofInstallation installation: [UInt8], app: [UInt8], replacing: Bool) -> Self {
    .init(.devices) { (store, now) throws(RegistryError) in
      try store.setSecret(hash, ofInstallation: installation, app: app, replacing: replacing, now: now)
    }
  }

  public static func removeSecret(ofInstallation installation: [UInt8], app: [UInt8]) -> Self {
    .init(.devices) { (store, _) throws(RegistryError) in try store.removeSecret(ofInstallation: installation, app: app) }
  }

  public static func setState(_ state: CampaignState, campaign: [UInt8]) -> Self {
    .init(.campaigns) { (store, now) throws(RegistryError) in try store.setState(state, of: campaign, now: now) }
  }
}

extension RegistryCall<[AcknowledgementOutcome]> {
  /// Answered in the order of the acknowledgements.
  public static func acknowledge(_ acknowledgements: [Acknowledgement], wantsReceipts: Bool) -> Self {
    .init(.notes) { (store, now) throws(RegistryError) in
      try store.acknowledge(acknowledgements, wantsReceipts: wantsReceipts, now: now)
    }
  }
}

extension RegistryCall<GatewayKey?> {
  public static func key(_ id: [UInt8]) -> Self { .init(nil) { (store, _) throws(RegistryError) in try store.key(id) } }
}

extension RegistryCall<GatewayRequest?> {
  /// Answered with nil where it is the caller's to publish.
  public static func claimRequest(_ name: [UInt8], body: [UInt8], until: Int64) -> Self {
    .init(.note(.claim(name: name, body: body, until: until)))
  }
}

extension RegistryCall<GatewayRequest.State?> {
  public static func settleRequest(_ name: [UInt8], _ state: GatewayRequest.State?, until: Int64) -> Self {
    .init(.note(.settle(name: name, state, until: until)))
  }
}

extension RegistryCall<[UInt8]?> {
  /// Answered with the page's name; with nil where its application has no room for another page.
  public static func keepPage(_ page: ContentPage) -> Self { .init(.note(.page(page))) }

  public static func content(ofPage name: [UInt8]) -> Self {
    .init(nil) { (store, now) throws(RegistryError) in try store.content(ofPage: name, now: now) }
  }

  public static func secret(ofInstallation installation: [UInt8], app: [UInt8]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.secret(ofInstallation: installation, app: app) }
  }
}

extension RegistryCall<[DeviceRecord]> {
  public static func device(_ reference: DeviceReference, app: [UInt8]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.device(reference, app: app) }
  }
}

extension RegistryCall<GroupRecord?> {
  public static func group(_ reference: GroupReference, app: [UInt8]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.group(reference, app: app) }
  }
}

extension RegistryCall<[Int64?]> {
  /// Answered in the order of the devices.
  public static func countBadges(_ count: BadgeCount) -> Self {
    guard count.rule == .look else { return .init(.note(.badges(count))) }
    return .init(nil) { (store, now) throws(RegistryError) in
      guard case .badges(let badges)? = try store.note([(.badges(count), now)]).answers.first else { return [] }
      return badges
    }
  }
}

extension RegistryCall<Int> {
  public static func purgeSecrets(before: Int64, limit: Int) -> Self {
    .init(.devices) { (store, _) throws(RegistryError) in try store.purgeSecrets(before: before, limit: limit) }
  }

  public static func purgeContent(before: Int64, limit: Int) -> Self {
    .init(.notes) { (store, _) throws(RegistryError) in try store.purgeContent(before: before, limit: limit) }
  }

  public static func purgeNotes(before: Int64, limit: Int) -> Self {
    .init(.notes) { (store, now) throws(RegistryError) in
      try store.purgeNotes(before: before, limit: limit) + store.purgeWaiting(before: now, limit: limit)
        + store.purgeRequests(before: now, limit: limit)
    }
  }
}

extension RegistryCall<[CollapseOrder?]> {
  /// Answered in the order of the places.
  public static func newestWaiting(in places: [CollapsePlace]) -> Self {
    .init(nil) { (store, _) throws(RegistryError) in try store.newestWaiting(in: places) }
  }
}

extension RegistryCall<Void> {
  public static func noteWaiting(_ notes: [CollapseNote]) -> Self {
    .init(.notes) { (store, _) throws(RegistryError) in try store.noteWaiting(notes) }
  }

  public static func keepMessage(_ messageID: [UInt8]) -> Self { .init(.note(.message(messageID))) }

  public static func keyUsed(_ id: [UInt8]) -> Self {
    .init(.devices) { (store, now) throws(RegistryError) in try store.keyUsed(id, now: now) }
  }

  public static func savePage(_ record: PageRecord, campaign: [UInt8], page: Int64) -> Self {
    .init(.campaigns) { (store, now) throws(RegistryError) in
      try store.savePage(record, campaign: campaign, page: page, now: now)
    }
  }

  public static func resultPublished(campaign: [UInt8]) -> Self {
    .init(.campaigns) { (store, now) throws(RegistryError) in try store.resultPublished(campaign, now: now) }
  }

  /// - Parameter limit: of devices, in one call.
  public static func purge(goneBefore: Int64, activitiesBefore: Int64, campaignsBefore: Int64, limit: Int) -> Self {
    .init(.devices) { (store, _) throws(RegistryError) in
      _ = try store.purgeActivities(before: activitiesBefore, limit: limit)
      _ = try store.purge(goneBefore: goneBefore, campaignsBefore: campaignsBefore, limit: limit)
    }
  }

  public static func markStale(_ ids: [Int64], seenBefore: Int64) -> Self {
    .init(.devices) { (store, now) throws(RegistryError) in try store.markStale(ids, seenBefore: seenBefore, now: now) }
  }

  public static var probe: Self { .init(.probe) }
}
