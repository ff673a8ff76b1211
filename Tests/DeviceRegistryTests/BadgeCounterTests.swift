import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("A badge counter belongs to an installation, whichever of its tokens come and go")
struct BadgeCounterTests {
  private func count(
    _ registry: TestRegistry, _ message: String, _ tokens: String..., rule: BadgeCount.Rule = .up
  ) throws -> [Int64?] {
    try registry.store.countBadges(
      BadgeCount(
        app: TestRegistry.app, messageID: Array(message.utf8), rule: rule,
        devices: tokens.map { .token(.apns, Array($0.utf8)) }),
      now: 1_000)
  }

  private func register(
    _ registry: TestRegistry, _ token: String, in installation: String? = nil, _ kind: TokenKind? = nil, sender: String? = nil,
    now: Int64 = 1_000
  ) throws {
    let new = registration(token, in: installation, kind, sender: sender)
    _ = try #require(try registry.store.apply([.register(new)], now: now)[0].registration)
  }

  private func registration(
    _ token: String, in installation: String?, _ kind: TokenKind? = nil, sender: String? = nil
  ) -> Registration {
    var new = Registration(app: TestRegistry.app, platform: .apns, token: Array(token.utf8))
    new.installation = installation.map { Array($0.utf8) }
    new.sender = sender.map { Array($0.utf8) }
    new.kind = kind
    if kind == .liveActivity { new.activity = Array("a".utf8) }
    return new
  }

  private func unregister(_ registry: TestRegistry, _ token: String) throws {
    _ = try registry.store.apply([.unregister(app: TestRegistry.app, .token(.apns, Array(token.utf8)))], now: 1_000)
  }

  private func id(_ registry: TestRegistry, _ token: String) throws -> Int64? {
    try registry.store.device(.token(.apns, Array(token.utf8)), app: TestRegistry.app).first?.id
  }

  private func read(_ registry: TestRegistry, _ message: String, token: String) throws -> AcknowledgementOutcome {
    try read(registry, message, .token(.apns, Array(token.utf8)))
  }

  private func read(
    _ registry: TestRegistry, _ message: String, _ device: DeviceReference
  ) throws -> AcknowledgementOutcome {
    try registry.store.acknowledge(
      [
        Acknowledgement(
          app: TestRegistry.app, device: device, operation: .read(.id(Array(message.utf8)), .keep), at: 1)
      ], wantsReceipts: false, now: 1_000)[0]
  }

  @Test("an older token that joins the installation shares its counter, and nothing is counted again", arguments: Backend.all)
  func olderJoins(_ backend: Backend) throws {
    let registry = try backend.open()
    try register(registry, "old")
    try register(registry, "t", in: "i")
    #expect(try count(registry, "m1", "t") == [1])
    #expect(try count(registry, "m2", "t") == [2])
    #expect(try read(registry, "m1", token: "t") == .noted(nil))
    try register(registry, "old", in: "i", sender: "two")
    #expect(try count(registry, "m2", "t", "old") == [2, 2])
    #expect(try read(registry, "m1", token: "t") == .repeated(nil))
    #expect(try count(registry, "m3", "old") == [2])
    #expect(try count(registry, "m4", "t") == [3])
    for token in ["old", "t"] {
      #expect(try registry.store.device(.token(.apns, Array(token.utf8)), app: TestRegistry.app).first?.badge == 3)
    }
    #expect(try read(registry, "m4", .installation(Array("i".utf8))) == .noted(nil))
    #expect(try read(registry, "m4", token: "old") == .repeated(nil))
  }

  @Test("a token with its own counter brings it to an installation without one", arguments: Backend.all)
  func counterComesAlong(_ backend: Backend) throws {
    let registry = try backend.open()
    try register(registry, "voip", in: "i", .voip)
    try register(registry, "t")
    #expect(try count(registry, "m1", "t", rule: .set(5)) == [5])
    try register(registry, "t", in: "i")
    #expect(try count(registry, "m1", "t") == [5])
    #expect(try count(registry, "m2", "voip") == [6])
    // Also if it replaces another token.
    try register(registry, "a", in: "j")
    try register(registry, "b")
    #expect(try count(registry, "m1", "b", rule: .set(7)) == [7])
    try register(registry, "b", in: "j")
    #expect(try count(registry, "m1", "b") == [7])
    #expect(try count(registry, "m2", "b") == [8])
  }

  @Test(
    "the removal of the oldest token leaves the others their counter, that of the last removes it", arguments: Backend.all)
  func oldestRemoved(_ backend: Backend) throws {
    let registry = try backend.open()
    try register(registry, "score", in: "i", .liveActivity)
    try register(registry, "t", in: "i", now: 9_000)
    try register(registry, "voip", in: "i", .voip, now: 9_000)
    #expect(try count(registry, "m1", "t", rule: .set(5)) == [5])
    #expect(try registry.store.purge(.activities, before: 5_000, limit: 10) == 1)
    #expect(try id(registry, "score") == nil)
    #expect(try count(registry, "m1", "t", "voip") == [5, 5])
    #expect(try count(registry, "m2", "voip") == [6])
    for token in ["t", "voip"] { try unregister(registry, token) }
    #expect(try registry.store.purge(.devices, before: 9_999, limit: 10) == 2)
    try register(registry, "t", in: "i")
    #expect(try count(registry, "m3", "t") == [1])
  }

  @Test(
    "a token that leaves for another installation takes the counter along if it was the last", arguments: Backend.all)
  func leaves(_ backend: Backend) throws {
    let registry = try backend.open()
    try register(registry, "t", in: "i")
    #expect(try count(registry, "m1", "t", rule: .set(3)) == [3])
    try register(registry, "t", in: "renamed")
    #expect(try count(registry, "m2", "t") == [4])
    // Otherwise it stays with those that count.
    try register(registry, "voip", in: "renamed", .voip)
    try register(registry, "t", in: "elsewhere")
    #expect(try count(registry, "m3", "voip", "t") == [5, 1])
    #expect(try count(registry, "m4", "voip") == [6])
    try register(registry, "t", in: "further")
    #expect(try count(registry, "m5", "t", "voip") == [2, 7])
    #expect(try read(registry, "m5", token: "voip") == .noted(nil))
    #expect(try read(registry, "m5", token: "t") == .noted(nil))
  }

  @Test(
    "a message to a token that was replaced counts no more, and its acknowledgement is the device's",
    arguments: Backend.all)
  func byReplacedToken(_ backend: Backend) throws {
    let registry = try backend.open()
    try register(registry, "t1", in: "i")
    #expect(try count(registry, "m1", "t1") == [1])
    try register(registry, "t2", in: "i", now: 2_000)
    #expect(try count(registry, "m1", "t1", "t2") == [1, 1])
    #expect(try count(registry, "m2", "t1") == [2])
    #expect(try count(registry, "m2", "t2") == [2])
    #expect(try read(registry, "m1", token: "t1") == .noted(nil))
    #expect(try read(registry, "m1", token: "t2") == .repeated(nil))
    #expect(try count(registry, "m3", "t2") == [2])
    // Of several devices that had the token the latest is meant, but one that has it now comes first.
    try register(registry, "t1", in: "j", now: 3_000)
    #expect(try count(registry, "m4", "t1", "t2") == [1, 3])
    try register(registry, "t3", in: "j", now: 4_000)
    #expect(try count(registry, "m4", "t1") == [1])
    #expect(try count(registry, "m5", "nobody") == [nil])
  }

  @Test("no device inherits the number of a removed one, even of the newest", arguments: Backend.all)
  func numbers(_ backend: Backend) throws {
    let registry = try backend.open()
    try register(registry, "t")
    try register(registry, "newest")
    #expect(try count(registry, "m", "newest", rule: .set(9)) == [9])
    for round in 0..<3 {
      try unregister(registry, round == 0 ? "newest" : "fresh\(round - 1)")
      #expect(try registry.store.purge(.devices, before: 9_999, limit: 10) == 1)
      try register(registry, "fresh\(round)")
      #expect(try count(registry, "m", "fresh\(round)") == [1])
    }
    #expect(try id(registry, "fresh2") == 5)
  }

  @Test("a bulk load shares and moves counters as single registrations do", arguments: Backend.all)
  func bulk(_ backend: Backend) throws {
    let registry = try backend.open()
    let others = (0..<40).map { registration("other\($0)", in: "o\($0)") }
    _ = try registry.store.load(others + [registration("t", in: "i"), registration("voip", in: "i", .voip)], now: 1_000)
    #expect(try count(registry, "m1", "t", rule: .set(5)) == [5])
    #expect(try count(registry, "m2", "voip") == [6])
    _ = try registry.store.load(others + [registration("t", in: "elsewhere")], now: 1_000)
    #expect(try count(registry, "m3", "t", "voip") == [1, 7])
  }
}
