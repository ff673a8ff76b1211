import PushCore
import Testing

@testable import DeviceRegistry

@Suite("Pages of a campaign, on both databases")
struct OpenPageTests {
  private static let id = Array("campaign-1".utf8)
  private static let news = Audience.topic(Array("news".utf8))

  /// A campaign to a topic of `count` devices.
  private func campaign(_ backend: Backend, _ count: Int) throws -> TestRegistry {
    let registry = try backend.open()
    for number in 0..<count { _ = try registry.register("t\(number)", #""topics":["news"]"#) }
    _ = try registry.store.createCampaign(
      CampaignDescription(
        id: Self.id, app: TestRegistry.app, messageID: [1], target: Array("/topics/news".utf8), total: Int64(count),
        highWater: 1_000), now: 1)
    return registry
  }

  private func open(
    _ store: DeviceStore, _ page: Int64, copy: Int64, after: Int64, limit: Int = 3
  ) throws -> OpenedPage {
    try store.openPage(
      PageOpening(
        campaign: Self.id, page: page, copy: copy, app: TestRegistry.app,
        content: .members(Self.news, after: after, upTo: 1_000, limit: limit)), now: 2)
  }

  private func tokens(_ opened: OpenedPage) -> [String]? {
    guard case .open(let page, _, _) = opened else { return nil }
    return tokens(page)
  }

  private func tokens(_ page: AudiencePage) -> [String] { (0..<page.devices.count).map { text(page.devices.token($0)) } }

  @Test(
    "The first copy of a page that opens it has it, repeatedly; another copy gets nothing", arguments: Backend.all)
  func copies(_ backend: Backend) throws {
    let registry = try campaign(backend, 5)
    let other = try registry.another()
    #expect(tokens(try open(registry.store, 0, copy: 7, after: 0)) == ["t0", "t1", "t2"])
    guard case .taken = try open(other, 0, copy: 8, after: 0) else { throw TestFailure("two copies are sent") }
    #expect(tokens(try open(other, 0, copy: 7, after: 0)) == ["t0", "t1", "t2"])
    _ = try registry.store.pageDone(PageReport(campaign: Self.id, page: 0, isLast: false, sent: 3, failed: 0), now: 3)
    for copy in [7, 8] as [Int64] {
      guard case .done(let campaign) = try open(other, 0, copy: copy, after: 0) else { throw TestFailure("opened again") }
      #expect(campaign.sent == 3)
    }
  }

  @Test("A page of an unknown campaign, or of another application's, is not opened", arguments: Backend.all)
  func unknown(_ backend: Backend) throws {
    let registry = try campaign(backend, 2)
    let content = PageOpening.Content.members(Self.news, after: 0, upTo: 1_000, limit: 3)
    for (id, app) in [(Array("campaign-2".utf8), TestRegistry.app), (Self.id, Array("com.other".utf8))] {
      for content in [content, .rest([])] {
        let opened = try registry.store.openPage(
          PageOpening(campaign: id, page: 0, copy: 7, app: app, content: content), now: 2)
        guard case .unknown = opened else { throw TestFailure("opened") }
      }
      #expect(try registry.store.loadPage(campaign: id, page: 0) == nil)
    }
    #expect(tokens(try open(registry.store, 0, copy: 8, after: 0)) == ["t0", "t1"])
  }

  @Test("A page that is opened again has the devices that are gone since then", arguments: Backend.all)
  func gone(_ backend: Backend) throws {
    let registry = try campaign(backend, 3)
    _ = try registry.register("t1", #""topics":["news"],"user":"anna""#)
    #expect(tokens(try open(registry.store, 0, copy: 7, after: 0)) == ["t0", "t1", "t2"])
    try registry.mark("t1", .gone(since: 2_000), now: 3_000)
    try registry.mark("t2", .gone(since: 2_000), now: 2)
    guard case .open(let page, _, _) = try open(registry.store, 0, copy: 7, after: 0) else { throw TestFailure("not open") }
    #expect(tokens(page) == ["t0", "t1"] && page.devices.rows.map(\.state) == [.active, .gone])
    for audience in [.all, .user(Array("anna".utf8)), .condition(try Condition.parse(Array("'news' in topics".utf8)))]
      as [Audience]
    {
      func tokens(since time: Int64?) throws -> [String] {
        self.tokens(
          try registry.store.page(
            of: audience, kind: .alert, app: TestRegistry.app, after: 0, upTo: 99, limit: 9, goneSince: time))
      }
      #expect(
        try tokens(since: 2_999).contains("t1") && !tokens(since: 3_000).contains("t1") && !tokens(since: nil).contains("t1"))
    }
  }

  @Test("A page keeps its end while devices leave it and join it", arguments: Backend.all)
  func extent(_ backend: Backend) throws {
    let registry = try campaign(backend, 6)
    guard case .open(let first, nil, _) = try open(registry.store, 0, copy: 7, after: 0) else { throw TestFailure("not open") }
    #expect(!first.isLast && first.devices.count == 3)
    // One device leaves: without a fixed end the page would take over the next page's first device.
    try registry.change(#"{"op":"unsubscribe","topic":"news","tokens":["fcm:t1"]}"#)
    guard case .open(let shrunk, let record?, _) = try open(registry.store, 0, copy: 7, after: 0) else {
      throw TestFailure("not open")
    }
    #expect(tokens(shrunk) == ["t0", "t2"] && shrunk.next == first.next && !shrunk.isLast)
    #expect(record.extent == PageExtent(end: first.next, isLast: false, copy: 7, openedAt: 2))
    // It comes back: with a fixed number of devices the last one would belong to no page.
    try registry.change(#"{"op":"subscribe","topic":"news","tokens":["fcm:t1"]}"#)
    #expect(tokens(try open(registry.store, 0, copy: 7, after: 0, limit: 2)) == ["t0", "t1", "t2"])
    guard case .open(let second, nil, _) = try open(registry.store, 1, copy: 9, after: first.next) else {
      throw TestFailure("not open")
    }
    #expect(tokens(second) == ["t3", "t4", "t5"] && second.isLast)
  }

  @Test("A condition's page keeps its end too", arguments: Backend.all)
  func condition(_ backend: Backend) throws {
    let registry = try campaign(backend, 6)
    let condition = Audience.condition(try .parse(Array("!('sport' in topics)".utf8), mostTopics: 5))
    func open(limit: Int) throws -> OpenedPage {
      try registry.store.openPage(
        PageOpening(
          campaign: Self.id, page: 0, copy: 7, app: TestRegistry.app,
          content: .members(condition, after: 0, upTo: 1_000, limit: limit)), now: 2)
    }
    #expect(tokens(try open(limit: 4)) == ["t0", "t1", "t2", "t3"])
    try registry.change(#"{"op":"subscribe","topic":"sport","tokens":["fcm:t0"]}"#)
    #expect(tokens(try open(limit: 2)) == ["t1", "t2", "t3"])
  }

  @Test("A campaign that doesn't run says so, with the page's record", arguments: Backend.all)
  func stopped(_ backend: Backend) throws {
    let registry = try campaign(backend, 5)
    let store = registry.store
    _ = try open(store, 0, copy: 7, after: 0)
    for state in [.paused, .held, .cancelled] as [CampaignState] {
      _ = try store.setState(.running, of: Self.id, now: 2)
      #expect(try store.setState(state, of: Self.id, now: 2))
      guard case .stopped(let campaign, let record?, let devices) = try open(store, 0, copy: 7, after: 0) else {
        throw TestFailure("open")
      }
      #expect(campaign.state == state && record.extent?.copy == 7)
      #expect(devices.count == (state == .cancelled ? 3 : 0), "begun, and nobody has said what became of it")
      guard case .stopped(_, nil, let none) = try open(store, 1, copy: 9, after: 3) else { throw TestFailure("open") }
      #expect(none.count == 0)
      guard case .taken = try open(store, 0, copy: 8, after: 0) else { throw TestFailure("not taken") }
    }
  }

  @Test("The devices that an earlier round has left are found by registration, old ones too", arguments: Backend.all)
  func rest(_ backend: Backend) throws {
    let registry = try campaign(backend, 3)
    let old = try registry.register("a", #""installation":"i""#)
    let canonical = try registry.register("b", #""installation":"i""#)
    #expect(old != canonical)
    let opened = try registry.store.openPage(
      PageOpening(campaign: Self.id, page: 0, copy: 7, app: TestRegistry.app, content: .rest([old, Array("nobody".utf8)])),
      now: 2)
    #expect(tokens(opened) == ["b"])
  }

  @Test("The last page ends with its last member: a device that joins later is too late", arguments: Backend.all)
  func lastExtent(_ backend: Backend) throws {
    let registry = try campaign(backend, 2)
    for token in ["late1", "late2"] { _ = try registry.register(token) }
    guard case .open(let page, nil, _) = try open(registry.store, 0, copy: 7, after: 0) else { throw TestFailure("not open") }
    #expect(page.isLast && tokens(page) == ["t0", "t1"])
    try registry.change(#"{"op":"subscribe","topic":"news","tokens":["late1","late2"]}"#)
    #expect(tokens(try open(registry.store, 0, copy: 7, after: 0)) == ["t0", "t1"])
  }

  @Test("A campaign that an operator has resumed is not held again by the same breaker", arguments: Backend.all)
  func excused(_ backend: Backend) throws {
    let registry = try campaign(backend, 1)
    let store = registry.store
    defer { withExtendedLifetime(registry) {} }
    for state in [.held, .running] as [CampaignState] { #expect(try store.setState(state, of: Self.id, now: 1)) }
    #expect(try store.setState(.held, of: Self.id, now: 2) == false)
    #expect(try store.campaign(Self.id)?.state == .running && store.campaign(Self.id)?.resumedAt == 1)
    for state in [.paused, .running, .cancelled] as [CampaignState] { #expect(try store.setState(state, of: Self.id, now: 3)) }
  }

  @Test("The number of pages never shrinks: a last page may be reported before an earlier one", arguments: Backend.all)
  func pageCount(_ backend: Backend) throws {
    let registry = try campaign(backend, 1)
    let store = registry.store
    defer { withExtendedLifetime(registry) {} }
    func report(_ page: Int64, isLast: Bool) throws -> Campaign? {
      try store.pageDone(PageReport(campaign: Self.id, page: page, isLast: isLast, sent: 0, failed: 0), now: 3)
    }
    #expect(try report(2, isLast: true)?.pageCount == 3)
    #expect(try report(0, isLast: true)?.pageCount == 3)
    #expect(try report(1, isLast: false)?.isComplete == true)
  }

  @Test(
    "A campaign of several chains is complete when each has ended, in any order, with pages that were not opened",
    arguments: Backend.all)
  func chains(_ backend: Backend) throws {
    let registry = try campaign(backend, 6)
    let store = registry.store
    defer { withExtendedLifetime(registry) {} }
    let description = CampaignDescription(
      id: Array("campaign-3".utf8), app: TestRegistry.app, messageID: [3], target: Array("/topics/news".utf8), total: 6,
      highWater: 6, chains: 3)
    _ = try store.createCampaign(description, now: 1)
    func open(_ page: Int64, after: Int64, upTo: Int64) throws {
      let opened = try store.openPage(
        PageOpening(
          campaign: description.id, page: page, copy: 1, app: TestRegistry.app,
          content: .members(Self.news, after: after, upTo: upTo, limit: 1)), now: 2)
      guard case .open = opened else { throw TestFailure("not opened") }
    }
    func report(_ page: Int64, isLast: Bool) throws -> Campaign {
      let report = PageReport(
        campaign: description.id, page: page, isLast: isLast, isOfSeveralChains: true, sent: 1, failed: 0)
      return try #require(try store.pageDone(report, now: 3))
    }
    let (second, third) = (Int64(1) << 32, Int64(2) << 32)
    for (page, after, upTo) in [(0, 0, 2), (1, 1, 2), (second, 2, 4), (second + 1, 3, 4)] as [(Int64, Int64, Int64)] {
      try open(page, after: after, upTo: upTo)
    }
    for _ in 0..<3 { #expect(try report(1, isLast: true).pageCount == nil) }
    #expect(try report(second + 1, isLast: true).pageCount == nil)
    #expect(try store.finish(description.id, claimant: [1], lease: 1) == .notDue)
    // The third chain's page was not opened: the campaign was cancelled meanwhile.
    let last = try report(third, isLast: true)
    #expect(last.pageCount == 5 && last.pagesDone == 3 && !last.isComplete)
    #expect(try !report(0, isLast: false).isComplete)
    let done = try report(second, isLast: false)
    #expect(done.isComplete && done.sent == 5 && done.pagesDone == 5)
    #expect(try report(third, isLast: true) == done)
  }

  @Test("A campaign that an earlier build began as one chain is complete when that chain has ended", arguments: Backend.all)
  func begunAsOneChain(_ backend: Backend) throws {
    let registry = try campaign(backend, 1)
    defer { withExtendedLifetime(registry) {} }
    var description = try #require(try registry.store.campaign(Self.id)).description
    description.id = Array("campaign-3".utf8)
    description.chains = 3
    _ = try registry.store.createCampaign(description, now: 1)
    let report = PageReport(campaign: description.id, page: 0, isLast: true, sent: 1, failed: 0)
    #expect(try registry.store.pageDone(report, now: 3)?.isComplete == true)
  }
}
