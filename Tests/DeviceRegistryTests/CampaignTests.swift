import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Campaigns on both databases")
struct CampaignTests {
  private static let id = Array("campaign-1".utf8)
  static let description = CampaignDescription(
    id: id, app: TestRegistry.app, messageID: Array("m".utf8), target: Array("/topics/news".utf8), total: 2_500,
    highWater: 9_000)

  private func report(_ page: Int64, isLast: Bool = false, sent: Int64 = 990, failed: Int64 = 10) -> PageReport {
    PageReport(campaign: Self.id, page: page, isLast: isLast, sent: sent, failed: failed)
  }

  @Test("Campaigns that aren't over are listed before newer ones, without a look at all", arguments: Backend.all)
  func order(_ backend: Backend) throws {
    let registry = try backend.open()
    for number in UInt8(0)..<60 {
      var campaign = Self.description
      campaign.id = [number]
      _ = try registry.store.createCampaign(campaign, now: Int64(number))
      guard ![3, 5].contains(number) else { continue }
      #expect(try registry.store.setState(.cancelled, of: [number], now: 100))
    }
    #expect(try registry.store.setState(.held, of: [3], now: 100))
    #expect(try registry.store.campaigns(limit: 4).map(\.description.id) == [[5], [3], [59], [58]])
    guard let session = registry.store.session as? SQLiteConnection else { return }
    let plan = try session.explain(SQL.campaigns)
    #expect(plan.contains { $0.contains("campaigns_in_order") } && !plan.contains { $0.contains("TEMP B-TREE") }, "\(plan)")
  }

  @Test("A campaign is created once, and its pages are counted once, in any order", arguments: Backend.all)
  func counts(_ backend: Backend) throws {
    let registry = try backend.open()
    let other = try registry.another()
    #expect(try registry.store.createCampaign(Self.description, now: 1_000).state == .running)
    #expect(try other.createCampaign(Self.description, now: 5_000).createdAt == 1_000)
    #expect(try registry.store.pageDone(report(2, isLast: true, sent: 500, failed: 0), now: 2_000)?.isComplete == false)
    #expect(try other.pageDone(report(0), now: 2_000)?.isComplete == false)
    #expect(try registry.store.pageDone(report(0), now: 2_500)?.sent == 1_490)
    #expect(try registry.store.finish(Self.id, claimant: [1], lease: 500) == .notDue)
    let done = try #require(try registry.store.pageDone(report(1), now: 3_000))
    #expect(done.isComplete && done.sent == 2_480 && done.failed == 20 && done.pagesDone == 3 && done.pageCount == 3)
    #expect(try registry.store.pageDone(PageReport(campaign: [9], page: 0, isLast: true, sent: 1, failed: 0), now: 1) == nil)
  }

  @Test("Exactly one claimant finishes a campaign; another one does if the first disappears", arguments: Backend.all)
  func finishes(_ backend: Backend) throws {
    let registry = try backend.open()
    let other = try registry.another()
    _ = try registry.store.createCampaign(Self.description, now: 1_000)
    #expect(try registry.store.finish(Self.id, claimant: [1], lease: 60_000) == .notDue)
    _ = try registry.store.pageDone(report(0, isLast: true), now: 2_000)
    #expect(try registry.store.finish(Self.id, claimant: [1], lease: 60_000) == .claimed(failures: []))
    #expect(try registry.store.finish(Self.id, claimant: [1], lease: 60_000) == .claimed(failures: []))
    #expect(try other.finish(Self.id, claimant: [2], lease: 60_000) == .claimedElsewhere)
    let campaign = try #require(try other.campaign(Self.id))
    #expect(campaign.state == .completed && campaign.finishedAt != nil && campaign.remaining == 0)
    #expect(try other.finish(Self.id, claimant: [2], lease: 0) == .claimed(failures: []))
    #expect(try registry.store.finish(Self.id, claimant: [1], lease: 60_000) == .claimedElsewhere)
    try other.resultPublished(Self.id, now: 2_700)
    for claimant in [[1], [2], [3]] as [[UInt8]] {
      #expect(try registry.store.finish(Self.id, claimant: claimant, lease: 0) == .notDue)
    }
    #expect(try registry.store.finish([9], claimant: [1], lease: 0) == .notDue)
  }

  @Test("A worker with a wrong clock takes no other worker's claim, and keeps its own no longer", arguments: Backend.all)
  func clocks(_ backend: Backend) throws {
    let registry = try backend.open()
    let other = try registry.another()
    _ = try registry.store.createCampaign(Self.description, now: 1_000)
    _ = try registry.store.pageDone(report(0, isLast: true), now: 2_000)
    func ask(_ store: DeviceStore, _ claimant: UInt8, lease: Int64, clock: Int64) throws -> ResultClaim? {
      let call = RegistryCall.write(.campaigns) { store, _ in try store.finish(Self.id, claimant: [claimant], lease: lease) }
      return try call.request.answer(store, now: clock) as? ResultClaim
    }
    let now = Int64(1_800_000_000_000)
    #expect(try ask(registry.store, 1, lease: 60_000, clock: now) == .claimed(failures: []))
    #expect(try ask(other, 2, lease: 60_000, clock: now + 3_600_000) == .claimedElsewhere)
    #expect(try ask(other, 2, lease: 60_000, clock: now - 3_600_000) == .claimedElsewhere)
    #expect(try ask(other, 2, lease: 0, clock: now - 3_600_000) == .claimed(failures: []))
  }

  @Test("A repeated claim of the result extends it", arguments: Backend.all)
  func renewed(_ backend: Backend) throws {
    let registry = try backend.open()
    let store = registry.store
    _ = try store.createCampaign(Self.description, now: 1_000)
    _ = try store.pageDone(report(0, isLast: true), now: 2_000)
    #expect(try store.finish(Self.id, claimant: [1], lease: 60_000) == .claimed(failures: []))
    let first = try #require(try store.campaign(Self.id)?.finishedAt)
    var last = first
    for _ in 0..<10_000 where last == first {
      #expect(try store.finish(Self.id, claimant: [1], lease: 60_000) == .claimed(failures: []))
      last = try #require(try store.campaign(Self.id)?.finishedAt)
    }
    #expect(last > first)
  }

  @Test("States change only in allowed ways", arguments: Backend.all)
  func states(_ backend: Backend) throws {
    let registry = try backend.open()
    let store = registry.store
    _ = try store.createCampaign(Self.description, now: 1_000)
    #expect(try store.setState(.running, of: Self.id, now: 1) == false)
    for state in [.paused, .running, .held, .running] as [CampaignState] {
      #expect(try store.setState(state, of: Self.id, now: 1))
    }
    #expect(try store.campaign(Self.id)?.state == .running)
    #expect(try store.setState(.completed, of: Self.id, now: 1) == false)
    #expect(try store.setState(.cancelled, of: Self.id, now: 1))
    for state in CampaignState.allCases { #expect(try store.setState(state, of: Self.id, now: 1) == false) }
    #expect(try store.finish(Self.id, claimant: [1], lease: 500) == .claimed(failures: []))
    #expect(try store.campaign(Self.id)?.state == .cancelled)
    #expect(try store.setState(.paused, of: [9], now: 1) == false)
  }

  @Test("An interrupted page's record is found until the page is done", arguments: Backend.all)
  func records(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.store.createCampaign(Self.description, now: 1_000)
    #expect(try registry.store.loadPage(campaign: Self.id, page: 0) == nil)
    for settled in [[1, 2], [1, 2, 3]] as [[UInt8]] {
      try registry.store.savePage(PageRecord(sent: 3, failed: 1, settled: settled), campaign: Self.id, page: 0)
    }
    #expect(try registry.store.loadPage(campaign: Self.id, page: 0) == PageRecord(sent: 3, failed: 1, settled: [1, 2, 3]))
    #expect(try registry.store.campaign(Self.id)?.sent == 0)
    #expect(try registry.store.pageDone(report(0), now: 2)?.sent == 990)
    try registry.store.savePage(PageRecord(sent: 1, failed: 1, settled: [7]), campaign: Self.id, page: 0)
    #expect(try registry.store.loadPage(campaign: Self.id, page: 0)?.isDone == true)
    #expect(try registry.store.pageDone(report(0), now: 4)?.sent == 990)
  }

  @Test("Campaigns are listed with what is left, and removed once they are over", arguments: Backend.all)
  func lists(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.store.createCampaign(Self.description, now: 1_000)
    var second = Self.description
    second.id = [2]
    _ = try registry.store.createCampaign(second, now: 2_000)
    _ = try registry.store.pageDone(report(0), now: 3_000)
    let list = try registry.store.campaigns(limit: 10)
    #expect(list.map(\.description.id) == [[2], Self.id])
    #expect(list[1].remaining == 1_500 && list[1].rate == 500 && list[1].timeLeft == 3)
    #expect(list[0].rate == nil && list[0].timeLeft == nil)
    // A pause doesn't lower the rate.
    _ = try registry.store.setState(.paused, of: Self.id, now: 3_100)
    _ = try registry.store.pageDone(report(1, sent: 50, failed: 0), now: 3_200)
    #expect(try registry.store.campaign(Self.id)?.rate == 500)
    _ = try registry.store.setState(.held, of: Self.id, now: 50_000)
    _ = try registry.store.setState(.running, of: Self.id, now: 103_100)
    _ = try registry.store.pageDone(report(2), now: 105_000)
    #expect(try registry.store.campaign(Self.id)?.rate == 512.5)
    _ = try registry.store.setState(.cancelled, of: Self.id, now: 4_000)
    #expect(try registry.store.purge(.campaigns, before: 10_000, limit: 10) == 1)
    #expect(try registry.store.campaigns(limit: 10).map(\.description.id) == [[2]])
    #expect(try registry.store.loadPage(campaign: Self.id, page: 0) == nil)
  }

  @Test("A registry of an earlier version is brought up to date, campaigns and all", arguments: Backend.all)
  func migrates(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.store.createCampaign(Self.description, now: 1_000)
    let added = [
      "campaigns": ["idle", "stopped_at", "received", "opened", "unknown_devices", "chains", "low_water"],
      "campaign_pages": ["badges", "opened_at"],
      "devices": ["kind", "activity", "marked_at", "stale_claim", "counter"],
      "aliases": ["platform", "token", "replaced_at", "new_token"],
    ]
    let columns = added.flatMap { table, names in names.map { "ALTER TABLE \(table) DROP COLUMN \($0);" } }
    let indexes = [
      "campaigns_by_message", "devices_by_installation", "devices_not_active", "devices_of_activities", "devices_by_counter",
      "aliases_by_token", "campaigns_in_order", "campaign_pages_by_end",
    ].map {
      "DROP INDEX \($0);"
    }
    let tables = [
      "notes", "badges", "messages", "waiting", "gateway_keys", "device_secrets", "content_pages", "gateway_requests",
      "change_fence", "content_sizes", "campaign_failures", "controls", "audit_events", "campaign_unreached",
    ].map { "DROP TABLE \($0);" }
    let back =
      (indexes + columns + tables).joined()
      + "CREATE UNIQUE INDEX devices_by_installation ON devices (app, installation, sender) WHERE installation IS NOT NULL;"
    switch backend {
    case .sqlite:
      let raw = try SQLiteConnection(path: registry.location, create: false, busyTimeout: 1_000)
      try raw.execute(back + "PRAGMA user_version = 1")
    case .postgres:
      let server = try #require(try Postgres.shared?.get())
      try server.execute(
        "SET search_path = pushfleet; \(back) UPDATE schema_version SET version = 1", at: registry.location)
    }
    let store = try registry.another()
    #expect(try store.setState(.paused, of: Self.id, now: 2_000) && store.setState(.running, of: Self.id, now: 5_000))
    #expect(try store.campaign(Self.id)?.idle == 3_000)
    #expect(try store.campaign(Self.id)?.description == Self.description, "it has one chain")
  }

  @Test("The ranges of chains follow each other, from the first device to the last", arguments: [1, 2, 3, 16] as [Int64])
  func ranges(_ chains: Int64) {
    for highWater in [0, 1, 2, 15, 16, 17, 1_000, .max] as [Int64] {
      var campaign = Self.description
      campaign.highWater = highWater
      campaign.chains = chains
      let starts = (0..<chains).map(campaign.start)
      #expect(starts.map(\.page) == (0..<chains).map { $0 * 4_294_967_296 })
      #expect(starts.map(\.after) == [0] + starts.dropLast().map(\.upTo) && starts.last?.upTo == highWater, "\(highWater)")
      for (chain, start) in zip(0..<chains, starts) where start.after < start.upTo {
        #expect(campaign.chain(of: start.after + 1) == chain && campaign.chain(of: start.upTo) == chain)
      }
      // The numbers below the application's first device belong to no range.
      campaign.lowWater = highWater / 2
      let upper = (0..<chains).map(campaign.start)
      #expect(upper.allSatisfy { $0.after == 0 || $0.after >= campaign.lowWater } && upper.last?.upTo == highWater)
      campaign.lowWater = 0
      let sizes = starts.dropLast().map { $0.upTo - $0.after }
      if highWater >= chains { #expect(Set(sizes).count <= 1 && sizes.allSatisfy { $0 == highWater / chains }) }
    }
  }

  @Test("An audience's numbers are those of its application's devices", arguments: Backend.all)
  func numbers(_ backend: Backend) throws {
    let registry = try backend.open()
    func others(_ tokens: [String]) throws {
      let all = tokens.map { Registration(app: Array("other".utf8), platform: .fcm, token: Array($0.utf8)) }
      _ = try registry.store.load(all, now: 1_000)
    }
    try others(["x", "y", "z"])
    for token in ["a", "b"] { _ = try registry.register(token) }
    try others(["w"])
    let survey = try registry.store.survey(.all, app: TestRegistry.app)
    #expect(survey.lowWater == 3 && survey.highWater == 5)
  }

  /// Devices 1 to 5 in two chains, two on a page; the first chain ends with device 2.
  @Test("A device's page is in its own chain, and a campaign that exists keeps its chains", arguments: Backend.all)
  func pageOfChain(_ backend: Backend) throws {
    let registry = try backend.open()
    for number in 1...5 { _ = try registry.register("t\(number)", #""topics":["news"]"#) }
    var campaign = Self.description
    campaign.highWater = 5
    campaign.chains = 2
    #expect(try registry.store.createCampaign(campaign, now: 1_000).description == campaign)
    #expect(try registry.another().createCampaign(Self.description, now: 1_000).description == campaign)
    func open(_ chain: Int64) throws {
      let start = campaign.start(of: chain)
      _ = try registry.store.openPage(
        PageOpening(
          campaign: Self.id, page: start.page, copy: 1, app: TestRegistry.app,
          content: .members(.topic(Array("news".utf8)), after: start.after, upTo: start.upTo, limit: 2)), now: 2_000)
    }
    func page(_ device: Int64) throws -> Int64? { try registry.store.page(of: campaign, reaching: device)?.number }
    try open(1)
    #expect(try (1...5).map(page) == [nil, nil, 1 << 32, 1 << 32, nil])
    try open(0)
    #expect(try (1...5).map(page) == [0, 0, 1 << 32, 1 << 32, nil])
  }

  @Test(
    "The list of devices that weren't reached is bounded, has each once, and ends with its campaign", arguments: Backend.all)
  func unreached(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""topics":["news"],"user":"anna""#)
    let known = try #require(try registry.record("t1"))
    let salt = try #require(RegistryKey(known.registration, .registration)?.salt)
    let first = UnreachedDevice(id: known.id, salt: salt, error: .notRegistered)
    try registry.store.addUnreached([first], by: Self.id)
    #expect(try registry.store.unreached(by: Self.id, after: 0, limit: 10).isEmpty, "there is no such campaign")
    _ = try registry.store.createCampaign(Self.description, now: 1_000)
    let former = UnreachedDevice(id: known.id + 1, salt: salt, error: .internalServerError)
    for _ in 0..<2 { try registry.store.addUnreached([first, former], by: Self.id) }
    let listed = try registry.store.unreached(by: Self.id, after: 0, limit: 10)
    #expect(listed.count == 2 && Set(listed.map(\.error)) == [.notRegistered, .internalServerError])
    let present = try #require(listed.first { $0.error == .notRegistered })
    #expect(present.user == Array("anna".utf8) && present.platform == .fcm && present.state == .active)
    #expect(present.registeredAt == known.registeredAt)
    #expect(listed.first { $0.error == .internalServerError } == former, "the device was deleted")
    let most = Int64(DeviceStore.mostUnreached)
    try registry.store.addUnreached(
      (1_000...1_000 + most).map { UnreachedDevice(id: $0, salt: 0, error: .notRegistered) }, by: Self.id)
    #expect(try registry.store.unreached(by: Self.id, after: 0, limit: 20_000).count == Int(most))
    #expect(try registry.store.unreached(by: Self.id, after: 1_000, limit: 1).first?.id == 1_001)
  }

  @Test("A device's page is the first that ends behind it", arguments: Backend.all)
  func pageReaching(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.store.createCampaign(Self.description, now: 1_000)
    let ids = try (1...5).map { number in
      _ = try registry.register("t\(number)", #""topics":["news"],"user":"anna""#)
      return try #require(try registry.record("t\(number)")?.id)
    }
    for (page, after) in [(Int64(0), Int64(0)), (1, ids[1])] {
      _ = try registry.store.openPage(
        PageOpening(
          campaign: Self.id, page: page, copy: 1, app: TestRegistry.app,
          content: .members(.topic(Array("news".utf8)), after: after, upTo: 9_000, limit: 2)), now: 2_000)
    }
    _ = try registry.store.pageDone(report(0, sent: 1, failed: 1), now: 3_000)
    var unknown = Self.description
    unknown.id = [9]
    #expect(
      try registry.store.page(of: Self.description, reaching: ids[1])
        == CampaignPage(number: 0, isDone: true, sent: 1, failed: 1))
    #expect(try registry.store.page(of: Self.description, reaching: ids[2])?.isDone == false)
    #expect(try registry.store.page(of: Self.description, reaching: ids[4]) == nil)
    #expect(try registry.store.page(of: unknown, reaching: ids[0]) == nil)
    _ = try registry.mark("t2", .gone(since: 9_000))
    let anna = try registry.store.devices(ofUser: Array("anna".utf8), app: TestRegistry.app, limit: 10)
    #expect(anna.map(\.id) == ids && anna[1].state == .gone && anna[1].markedAt != nil)
  }
}
