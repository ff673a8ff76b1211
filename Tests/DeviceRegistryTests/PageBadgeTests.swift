import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("The badges of a campaign's page are stored with the page")
struct PageBadgeTests {
  private static let campaign = Array("campaign".utf8)
  private static let message = Array("m".utf8)

  /// A registry with a broadcast to `/topics/t`, whose pages have three devices.
  private struct Broadcast {
    let registry: TestRegistry
    var store: DeviceStore { registry.store }

    init(_ backend: Backend, _ tokens: String...) throws {
      registry = try backend.open()
      for token in tokens { _ = try registry.register(token, #""topics":["t"]"#) }
      try create(campaign)
    }

    func create(_ campaign: [UInt8]) throws {
      _ = try store.createCampaign(
        CampaignDescription(
          id: campaign, app: TestRegistry.app, messageID: message, target: Array("/topics/t".utf8), total: 9, highWater: 99),
        now: 1)
    }

    func id(_ token: String) throws -> Int64 { try #require(try registry.record(token)?.id) }

    func open(_ campaign: [UInt8], page: Int64, after: Int64) throws -> [Int64] {
      let opened = try store.openPage(
        PageOpening(
          campaign: campaign, page: page, copy: 1, app: TestRegistry.app,
          content: .members(.topic(Array("t".utf8)), after: after, upTo: 99, limit: 3)), now: 2)
      guard case .open(let found, _, _) = opened else { throw TestFailure("not opened") }
      return found.devices.rows.map(\.id)
    }

    /// Opens a page and counts its devices, as a worker does.
    func send(of campaign: [UInt8] = campaign, page: Int64 = 0, after: Int64 = 0) throws -> [Int64?] {
      try count(of: campaign, page: page, try open(campaign, page: page, after: after))
    }

    func count(
      of campaign: [UInt8] = campaign, page: Int64?, _ devices: [Int64], _ rule: BadgeCount.Rule = .up
    ) throws -> [Int64?] {
      let page = page.map { BadgeCount.Page(campaign: campaign, number: $0) }
      return try store.countBadges(
        BadgeCount(app: TestRegistry.app, messageID: message, rule: rule, devices: devices.map { .number($0) }, page: page),
        now: 2)
    }

    func notes() throws -> Int64? { try store.session.firstInt(Statement("SELECT count(*) FROM notes"), []) }

    func read(_ token: String) throws -> AcknowledgementOutcome {
      try store.acknowledge(
        [
          Acknowledgement(
            app: TestRegistry.app, device: .token(.fcm, Array(token.utf8)), operation: .read(.id(message), .keep), at: 3)
        ], wantsReceipts: false, now: 3)[0]
    }
  }

  @Test("a page that is delivered again has the same badges, without a note for each device", arguments: Backend.all)
  func again(_ backend: Backend) throws {
    let broadcast = try Broadcast(backend, "a", "b", "c", "d")
    #expect(try broadcast.count(page: nil, [broadcast.id("b")], .set(4)) == [4])
    try broadcast.store.session.run(Statement("DELETE FROM notes"), [])
    for _ in 0..<2 { #expect(try broadcast.send() == [1, 5, 1]) }
    #expect(try broadcast.notes() == 0)
    // A device that registers meanwhile is added to the page.
    #expect(try broadcast.count(page: 0, [broadcast.id("c"), broadcast.id("d")]) == [1, 1])
    for _ in 0..<2 { #expect(try broadcast.count(page: 0, [broadcast.id("d"), broadcast.id("b")]) == [1, 5]) }
    #expect(try broadcast.count(page: 0, [broadcast.id("a")], .set(9)) == [1])
    #expect(try broadcast.count(page: 0, [broadcast.id("a")], .look) == [1])
    #expect(try broadcast.count(page: 0, [77]) == [nil])
  }

  @Test("two copies of a page in one batch count once", arguments: Backend.all)
  func together(_ backend: Backend) throws {
    let broadcast = try Broadcast(backend, "a", "b")
    _ = try broadcast.open(Self.campaign, page: 0, after: 0)
    let page = BadgeCount.Page(campaign: Self.campaign, number: 0)
    let counts = try [["a", "b"], ["b", "a"]].map { tokens in
      BadgeCount(
        app: TestRegistry.app, messageID: Self.message, rule: .up, devices: try tokens.map { .number(try broadcast.id($0)) },
        page: page)
    }
    let (answers, hasWritten) = try broadcast.store.note(counts.map { (.badges($0), 2) })
    #expect(hasWritten && answers == [.badges([1, 1]), .badges([1, 1])])
    let (repeated, isWrittenAgain) = try broadcast.store.note(counts.map { (.badges($0), 2) })
    #expect(repeated == answers && !isWrittenAgain)
  }

  @Test("the devices of an installation are counted once, also on different pages", arguments: Backend.all)
  func installation(_ backend: Backend) throws {
    let broadcast = try Broadcast(backend, "a", "b", "c")
    for (token, sender) in [("a", "one"), ("d", "two"), ("e", "three")] {
      _ = try broadcast.registry.register(token, #""topics":["t"],"installation":"i","sender":"\#(sender)""#)
    }
    #expect(try broadcast.send() == [1, 1, 1])
    for _ in 0..<2 { #expect(try broadcast.send(page: 1, after: broadcast.id("c")) == [1, 1]) }
    #expect(try broadcast.notes() == 1)
    // A token that joins after the first page.
    _ = try broadcast.registry.register("f", #""topics":["t"],"installation":"j","sender":"one""#)
    _ = try broadcast.registry.register("b", #""topics":["t"],"installation":"j","sender":"two""#)
    #expect(try broadcast.send(page: 2, after: broadcast.id("e")) == [1])
    _ = try broadcast.registry.register("outside")
    #expect(
      try ["a", "e", "b", "outside"].map { try broadcast.read($0) } == [.noted(nil), .repeated(nil), .noted(nil), .unknown])
  }

  @Test("a request with the message's id to one of the devices has its badge", arguments: Backend.all)
  func single(_ backend: Backend) throws {
    let broadcast = try Broadcast(backend, "a", "b", "c", "d")
    #expect(try broadcast.send() == [1, 1, 1])
    #expect(try broadcast.count(page: nil, [broadcast.id("b"), broadcast.id("d")]) == [1, 1])
    #expect(try broadcast.count(page: nil, [broadcast.id("b"), broadcast.id("d")]) == [1, 1])
    #expect(try broadcast.notes() == 1)
    let token = BadgeCount(
      app: TestRegistry.app, messageID: Self.message, rule: .up, devices: [.token(.fcm, Array("c".utf8))])
    #expect(try broadcast.store.countBadges(token, now: 3) == [1])
    // Another application's campaign with the same id.
    _ = try broadcast.store.createCampaign(
      CampaignDescription(
        id: [1], app: Array("other".utf8), messageID: Array("o".utf8), target: Array("/all".utf8), total: 1, highWater: 9),
      now: 1)
    let other = BadgeCount(app: TestRegistry.app, messageID: Array("o".utf8), rule: .up, devices: token.devices)
    #expect(try broadcast.store.countBadges(other, now: 3) == [2])
  }

  @Test("a device on pages of two campaigns with one message id is counted once", arguments: Backend.all)
  func campaigns(_ backend: Backend) throws {
    let broadcast = try Broadcast(backend, "a", "b", "c", "d")
    let other = Array("other".utf8)
    #expect(try broadcast.send() == [1, 1, 1])
    try broadcast.create(other)
    for _ in 0..<2 { #expect(try broadcast.send(of: other) == [1, 1, 1]) }
    let last = try broadcast.id("c")
    for _ in 0..<2 { #expect(try broadcast.send(of: other, page: 1, after: last) == [1]) }
    for _ in 0..<2 { #expect(try broadcast.send(page: 1, after: last) == [1]) }
    #expect(try broadcast.count(page: nil, [last, broadcast.id("d")]) == [1, 1])
  }

  @Test("a page that an earlier build has counted with notes is not counted again", arguments: Backend.all)
  func notes(_ backend: Backend) throws {
    let broadcast = try Broadcast(backend, "a", "b", "c")
    #expect(try broadcast.count(page: nil, [broadcast.id("a"), broadcast.id("c")]) == [1, 1])
    for _ in 0..<2 { #expect(try broadcast.send() == [1, 1, 1]) }
    #expect(try broadcast.notes() == 2)
  }

  @Test("a device that has left the audience acknowledges what it got", arguments: Backend.all)
  func left(_ backend: Backend) throws {
    let broadcast = try Broadcast(backend, "a", "b", "c", "d")
    _ = try broadcast.send()
    for token in ["b", "d"] { _ = try broadcast.registry.register(token, #""topics":["other"]"#) }
    #expect(try broadcast.read("a") == .noted(nil))
    #expect(try broadcast.read("b") == .noted(nil))
    #expect(try broadcast.read("b") == .repeated(nil))
    #expect(try broadcast.read("d") == .unknown)
  }
}
