import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("An acknowledgement must be of a message that was sent to the device, as far as the registry knows (UP-18)")
struct SentMessageTests {
  private static let app = TestRegistry.app

  private func device(_ token: String) -> DeviceReference { .token(.fcm, Array(token.utf8)) }

  private func count(_ registry: TestRegistry, _ message: String, _ token: String) throws -> Int64? {
    let count = BadgeCount(
      app: Self.app, messageID: Array(message.utf8), rule: .up, devices: [.token(.fcm, Array(token.utf8))])
    return try registry.store.countBadges(count, now: 1_000)[0]
  }

  /// A letter for each outcome: first of the reception, then of the read, for each token.
  private func outcomes(
    _ registry: TestRegistry, _ message: String, _ tokens: String..., rule: BadgeRule = .keep, isKept: Bool = false
  ) throws -> String {
    let id = MessageReference.id(Array(message.utf8))
    let said = tokens.flatMap { token in
      [Acknowledgement.Operation.received(id), .read(id, rule)].map {
        var said = Acknowledgement(app: Self.app, device: device(token), operation: $0, at: 1)
        said.isMessageKept = isKept
        return said
      }
    }
    return try registry.store.acknowledge(said, wantsReceipts: false, now: 1_000).map {
      switch $0 {
      case .noted: "n"
      case .repeated: "r"
      case .unknown: "u"
      }
    }.joined()
  }

  @Test("a read of an uncounted message on a device that counts is unknown and leaves its badge", arguments: Backend.all)
  func counter(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("a")
    _ = try registry.register("b")
    for number in 1...3 { #expect(try count(registry, "m\(number)", "a") == Int64(number)) }
    for rule in [BadgeRule.keep, .reset, .update(9)] {
      #expect(try outcomes(registry, "never \(rule)", "a", rule: rule).last == "u")
    }
    #expect(try count(registry, "m4", "a") == 4)
    #expect(try outcomes(registry, "m4", "a", "b") == "nnuu")
    #expect(try outcomes(registry, "m4", "a", "b") == "rruu")
    #expect(try count(registry, "m5", "a") == 4)
    // A device that doesn't count may have received a message that the registry doesn't know.
    #expect(try outcomes(registry, "plain", "b") == "nn")
    for _ in 0..<2 { #expect(try outcomes(registry, "plain", "a").last == "u") }
    #expect(try outcomes(registry, "plain", "a").first == "r")
  }

  @Test("in an application whose messages are stored, an unstored message was never sent", arguments: Backend.all)
  func kept(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("a")
    try registry.store.keepMessage(Array("m".utf8), now: 1_000)
    #expect(try outcomes(registry, "m", "a", isKept: true) == "nn")
    #expect(try outcomes(registry, "never", "a", isKept: true) == "uu")
    #expect(try count(registry, "counted", "a") == 1)
    #expect(try outcomes(registry, "m", "a", isKept: true) == "rr")
    // A counted message was only sent to devices that counted it.
    try registry.store.keepMessage(Array("counted".utf8), now: 1_000)
    _ = try registry.register("b")
    #expect(try outcomes(registry, "counted", "a", "b", isKept: true) == "nnuu")
  }

  @Test(
    "a broadcast was sent to its audience, up to the page that was opened last", arguments: Backend.all,
    ["/topics/t", "t", "'t' in topics && !('other' in topics)", "/users/anna", "/all", "group", "users"])
  func broadcast(_ backend: Backend, _ target: String) throws {
    let registry = try backend.open()
    let registrations = try ["a", "b", "c", "d"].map {
      try registry.register($0, #""topics":["t"],"user":"anna","installation":"i\#($0)""#)
    }
    _ = try registry.register("outside", #""topics":["other"]"#)
    var audience = target
    switch target {
    case "group":
      let members = registrations.map { #""\#(text($0))""# }.joined(separator: ",")
      audience = try group(registry, #""registration_ids":[\#(members)]"#)
    case "users": audience = try group(registry, #""users":["anna"]"#)
    default: break
    }
    let campaign = Array("campaign".utf8)
    _ = try registry.store.createCampaign(
      CampaignDescription(
        id: campaign, app: Self.app, messageID: Array("m".utf8), target: Array(audience.utf8), total: 5, highWater: 5), now: 1)
    #expect(try outcomes(registry, "m", "a", "outside") == "uuuu", "no page is open")
    let last = try #require(try registry.record("c")?.id)
    let opened = try registry.store.openPage(
      PageOpening(
        campaign: campaign, page: 0, copy: 1, app: Self.app,
        content: .members(.topic(Array("t".utf8)), after: 0, upTo: 5, limit: 3)), now: 2)
    guard case .open(let page, _, _) = opened else { throw TestFailure("not opened") }
    #expect(page.next == last)
    #expect(try outcomes(registry, "m", "a", "c", "d", "outside") == "nnnnuuuu")
    _ = try registry.register("late", #""topics":["t"],"user":"anna""#)
    #expect(try outcomes(registry, "m", "late") == "uu")
    let found = try #require(try registry.store.campaign(campaign))
    #expect(found.received == 2 && found.read == 2)
    // Another application's broadcast doesn't matter for this one's devices.
    _ = try registry.store.createCampaign(
      CampaignDescription(
        id: Array("other".utf8), app: Array("other".utf8), messageID: Array("plain".utf8), target: Array("/all".utf8), total: 1,
        highWater: 5), now: 1)
    #expect(try outcomes(registry, "plain", "a") == "nn")
  }

  @Test(
    "a broadcast of two chains has reached only the devices of opened pages", arguments: Backend.all, ["/all", "'t' in topics"])
  func chains(_ backend: Backend, _ target: String) throws {
    let registry = try backend.open()
    for token in ["a", "b", "c", "d"] { _ = try registry.register(token, #""topics":["t"]"#) }
    let campaign = CampaignDescription(
      id: Array("campaign".utf8), app: Self.app, messageID: Array("m".utf8), target: Array(target.utf8), total: 4, highWater: 4,
      chains: 2)
    _ = try registry.store.createCampaign(campaign, now: 1)
    func open(_ chain: Int64) throws {
      let start = campaign.start(of: chain)
      _ = try registry.store.openPage(
        PageOpening(
          campaign: campaign.id, page: start.page, copy: 1, app: Self.app,
          content: .members(.all, after: start.after, upTo: start.upTo, limit: 1)), now: 2)
    }
    try open(1)
    #expect(try outcomes(registry, "m", "a", "b", "c", "d") == "uuuunnuu")
    try open(0)
    #expect(try outcomes(registry, "m", "a", "b", "d") == "nnuuuu")
  }

  @Test("counts of another application's devices don't matter", arguments: Backend.all)
  func applications(_ backend: Backend) throws {
    let registry = try backend.open()
    let other = Array("other".utf8)
    _ = try registry.store.load([Registration(app: other, platform: .fcm, token: Array("x".utf8))], now: 1_000)
    _ = try registry.register("a")
    _ = try registry.register("b")
    func count(_ app: [UInt8], _ token: String) throws {
      let count = BadgeCount(app: app, messageID: Array("m".utf8), rule: .up, devices: [.token(.fcm, Array(token.utf8))])
      _ = try registry.store.countBadges(count, now: 1_000)
    }
    try count(other, "x")
    #expect(try outcomes(registry, "m", "b") == "nn")
    try count(Self.app, "a")
    // Once this application has counted a message, earlier acknowledgements of others don't matter.
    _ = try registry.register("never")
    #expect(try outcomes(registry, "m", "a", "b", "never") == "nnrruu")
  }

  @Test("a broadcast was not sent to a device that was gone before it began", arguments: Backend.all)
  func gone(_ backend: Backend) throws {
    let registry = try backend.open()
    for token in ["before", "after"] { _ = try registry.register(token, #""topics":["t"]"#) }
    try registry.mark("before", .gone(since: 1_500), now: 2_000)
    let campaign = Array("campaign".utf8)
    _ = try registry.store.createCampaign(
      CampaignDescription(
        id: campaign, app: Self.app, messageID: Array("m".utf8), target: Array("/topics/t".utf8), total: 2, highWater: 9),
      now: 3_000)
    _ = try registry.store.openPage(
      PageOpening(
        campaign: campaign, page: 0, copy: 1, app: Self.app,
        content: .members(.topic(Array("t".utf8)), after: 0, upTo: 9, limit: 9)), now: 3_000)
    try registry.mark("after", .gone(since: 3_500), now: 4_000)
    #expect(try outcomes(registry, "m", "before", "after") == "uunn")
  }

  private func group(_ registry: TestRegistry, _ members: String) throws -> String {
    let answer = try registry.change(#"{"op":"group_create","notification_key_name":"g",\#(members)}"#)
    guard case .notificationKey(let key, _) = answer else { throw TestFailure("no group") }
    return text(key)
  }

  @Test("the count starts at 0 when another user is bound, and continues with the same one", arguments: Backend.all)
  func users(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("a", #""installation":"i","user":"anna""#)
    for number in 1...2 { #expect(try count(registry, "m\(number)", "a") == Int64(number)) }
    _ = try registry.register("a", #""installation":"i","user":"anna""#)
    _ = try registry.register("a", #""installation":"i","locale":"ko""#)
    _ = try registry.register("sibling", #""installation":"i","sender":"two","user":"anna""#)
    #expect(try count(registry, "m3", "a") == 3)
    _ = try registry.register("a", #""installation":"i","user":"bob""#)
    #expect(try count(registry, "m4", "a") == 1)
    // With a new token, after a logout, and by a device without an installation.
    _ = try registry.register("a2", #""installation":"i","user":"carl""#)
    #expect(try count(registry, "m5", "a2") == 1)
    try registry.change(#"{"op":"unregister_user","installation":"i"}"#)
    #expect(try count(registry, "m6", "a2") == 2)
    _ = try registry.register("a2", #""installation":"i","user":"dora""#)
    #expect(try count(registry, "m7", "a2") == 1)
    for (number, user) in ["anna", "bob"].enumerated() {
      _ = try registry.register("alone", #""user":"\#(user)""#)
      #expect(try count(registry, "n\(number)", "alone") == 1)
    }
  }

  @Test("a bulk load starts counts at 0 as single registrations do", arguments: Backend.all)
  func bulk(_ backend: Backend) throws {
    let registry = try backend.open()
    func registrations(_ user: String) -> [Registration] {
      (0..<40).map {
        var registration = Registration(app: Self.app, platform: .fcm, token: Array("t\($0)".utf8))
        registration.user = Array("\(user) \($0 / 20)".utf8)
        return registration
      }
    }
    for (number, user) in ["anna", "anna", "bob"].enumerated() {
      _ = try registry.store.load(registrations(user), now: 1_000)
      #expect(try count(registry, "m\(number)", "t1") == [1, 2, 1][number])
    }
  }
}
