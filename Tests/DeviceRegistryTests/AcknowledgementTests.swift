import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Acknowledgements and badges on both databases")
struct AcknowledgementTests {
  /// Applies acknowledgements in JSON, with `app` and an FCM token `t` added if missing; returns a letter for each outcome.
  @discardableResult
  private func say(_ registry: TestRegistry, _ json: String, messageID: String? = nil, now: Int64 = 1_000) throws -> String {
    let parsed = Acknowledgement.parse(
      Array(json.utf8), size: UInt64(json.utf8.count), defaultApp: TestRegistry.app,
      messageID: messageID.map { Array($0.utf8) },
      now: now)
    let said: [Acknowledgement]
    switch parsed {
    case .success(let read): said = read
    case .failure(let refusal): return "\(refusal)"
    }
    return try registry.store.acknowledge(said, wantsReceipts: false, now: now).map {
      switch $0 {
      case .noted: "n"
      case .repeated: "r"
      case .unknown: "u"
      }
    }.joined()
  }

  private func badge(_ registry: TestRegistry, _ messageID: String, _ rule: BadgeCount.Rule = .up) throws -> Int64? {
    let count = BadgeCount(
      app: TestRegistry.app, messageID: Array(messageID.utf8), rule: rule, devices: [.token(.fcm, Array("t".utf8))])
    return try registry.store.countBadges(count, now: 1_000)[0]
  }

  /// The counter, read by a message that sets nothing.
  private func counter(_ registry: TestRegistry) throws -> Int64? {
    let seen = try registry.store.acknowledge(
      [
        Acknowledgement(
          app: TestRegistry.app, device: .token(.fcm, Array("t".utf8)),
          operation: .received(.id(Array("look \(Int.random(in: 0...Int.max))".utf8))),
          at: 0)
      ], wantsReceipts: true, now: 1_000)
    guard case .noted(let receipt?) = seen[0] else { return nil }
    return receipt.badge
  }

  @Test("An acknowledgement with another user than the device's changes nothing", arguments: Backend.all)
  func users(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t", #""user":"김철수","installation":"i""#)
    _ = try registry.register("s", "")
    for (fields, outcome) in [
      (#""token":"t","user":"김철수""#, "n"), (#""token":"t","cuid":"김철수""#, "n"), (#""installation":"i","user":"anna""#, "u"),
      (#""token":"t","cuid":"anna""#, "u"), (#""token":"s","user":"anna""#, "u"), (#""token":"x","user":"김철수""#, "u"),
      (#""token":"t""#, "n"),
    ] {
      #expect(try say(registry, #"{"op":"badge","badge":5,\#(fields)}"#) == outcome, "\(fields)")
    }
    let both = try say(registry, #"{"op":"badge","badge":5,"token":"t","user":"김철수","cuid":"김철수"}"#)
    #expect(both.contains("cuid: not beside user"))
    #expect(try say(registry, #"{"op":"badge","badge":5,"token":"t","user":""}"#).contains("user: must not be empty"))
  }

  @Test(
    "A reception and a read are stored once, even if repeated, and the first time stays (UP-15, UP-16)",
    arguments: Backend.all)
  func once(_ backend: Backend) throws {
    let registry = try backend.open()
    let id = text(try registry.register("t", #""user":"anna","installation":"i""#))
    let by = [#""token":"t""#, #""registration":"\#(id)""#, #""installation":"i""#]
    #expect(try say(registry, #"{"op":"received",\#(by[0]),"message_id":"m","at":"2026-11-20T21:22:00.123Z"}"#) == "n")
    for device in by { #expect(try say(registry, #"{"op":"received",\#(device),"message_id":"m"}"#) == "r") }
    #expect(try say(registry, "[" + by.map { #"{"op":"read",\#($0),"message_id":"m"}"# }.joined(separator: ",") + "]") == "nrr")
    #expect(try say(registry, #"{"op":"received",\#(by[0]),"message_id":"other"}"#) == "n")
    var again = Acknowledgement(
      app: TestRegistry.app, device: .token(.fcm, Array("t".utf8)), operation: .received(.id(Array("m".utf8))), at: 5)
    again.isRedelivered = true
    let receipt = Receipt(
      event: .received, app: TestRegistry.app, messageID: Array("m".utf8), registration: Array(id.utf8),
      user: Array("anna".utf8),
      at: 1_763_673_720_123 + 31_536_000_000, badge: 0)
    #expect(try registry.store.acknowledge([again], wantsReceipts: true, now: 9) == [.repeated(receipt)])
  }

  @Test(
    "Reading decrements the counter once a message and never below 0; reset and update set it (UP-11, UP-12, UP-13)",
    arguments: Backend.all)
  func rules(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t")
    #expect(try say(registry, #"{"op":"badge","token":"t","badge":5}"#) == "n")
    #expect(try say(registry, #"{"op":"read","token":"t","message_id":"m1"}"#) == "n")
    #expect(try counter(registry) == 4)
    #expect(try say(registry, #"{"op":"read","token":"t","message_id":"m1","badge_option":"keep"}"#) == "r")
    #expect(try counter(registry) == 4)
    #expect(try say(registry, #"{"op":"read","token":"t","message_id":"m2","badge_option":"reset"}"#) == "n")
    #expect(try say(registry, #"{"op":"read","token":"t","message_id":"m3"}"#) == "n")
    #expect(try counter(registry) == 0)
    #expect(try badge(registry, "m4") == 1)
    for number in [1, 10, 1_000] {
      _ = try badge(registry, "u\(number)")
      #expect(
        try say(registry, #"{"op":"read","token":"t","message_id":"u\#(number)","badge_option":"update","badge":\#(number)}"#)
          == "n")
      #expect(try counter(registry) == Int64(number))
    }
    for wrong in ["0", "1001", "-1", "2.5", #""abc""#, "null"] {
      let refusal = try say(registry, #"{"op":"read","token":"t","message_id":"w","badge_option":"update","badge":\#(wrong)}"#)
      #expect(refusal.hasPrefix("InvalidParameters: badge: expected a whole number"), "\(wrong): \(refusal)")
    }
    #expect(try counter(registry) == 1_000)
    #expect(try badge(registry, "w") == 1_001)
    for beside in [#""badge":7"#, #""badge_option":"keep","badge":0"#, #""badge_option":"reset","badge":"all""#] {
      let answer = try say(registry, #"{"op":"read","token":"t","message_id":"w",\#(beside)}"#)
      #expect(answer == (beside == #""badge":7"# ? "n" : "r"), "\(beside): \(answer)")
    }
    #expect(try counter(registry) == 1_000)
  }

  @Test(
    "A badge can be forced without a message, and once for repeated deliveries of a message (UP-14)", arguments: Backend.all)
  func forced(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t")
    let five = #"[{"op":"badge","token":"t","badge":5},{"op":"badge","token":"t","badge":6}]"#
    #expect(try say(registry, five, messageID: "f") == "nn")
    #expect(try badge(registry, "m") == 7)
    #expect(try say(registry, five, messageID: "f") == "rr")
    let dated = #"{"op":"badge","token":"t","badge":3,"at":"2026-11-20T21:22:00Z"}"#
    #expect(try say(registry, dated) + say(registry, dated) == "nr")
    #expect(try counter(registry) == 3)
    #expect(try say(registry, five) + say(registry, five) == "nnnn")
    #expect(try counter(registry) == 6)
  }

  @Test("An unknown device or application changes nothing (UP-18)", arguments: Backend.all)
  func unknown(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t")
    #expect(
      try say(
        registry,
        """
        [{"op":"read","token":"nobody","message_id":"m"},{"op":"read","installation":"none","message_id":"m"},
         {"op":"read","registration":"pf1r~00000000000000000000000000","message_id":"m"},{"op":"read","token":"t","message_id":"m"},
         {"op":"read","app":"another","token":"t","message_id":"m"},{"op":"badge","token":"nobody","badge":3},
         {"op":"read","token":"t","push_key":"0123456789abcdef0123456789ABCDEF01234567"},{"op":"received","token":"t","seqno":"104"}]
        """) == "uuunuuuu")
  }

  @Test(
    "A push counts each device once, even if repeated, and an installation's tokens share their counter",
    arguments: Backend.all)
  func counted(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t")
    _ = try registry.register("a", #""installation":"i","sender":"one""#)
    _ = try registry.register("b", #""installation":"i","sender":"two""#)
    func count(_ message: String, _ tokens: [String], _ rule: BadgeCount.Rule = .up) throws -> [Int64?] {
      try registry.store.countBadges(
        BadgeCount(
          app: TestRegistry.app, messageID: Array(message.utf8), rule: rule,
          devices: tokens.map { .token(.fcm, Array($0.utf8)) }),
        now: 1_000)
    }
    #expect(try count("m1", ["t", "a", "nobody", "b", "t"]) == [1, 1, nil, 1, 1])
    #expect(try count("m1", ["b", "t"]) == [1, 1])
    #expect(try count("m2", ["b"]) == [2])
    #expect(try count("m3", ["a"], .set(40)) == [40])
    #expect(try count("m4", ["b", "t"]) == [41, 2])
    #expect(try count("m3", ["b"], .set(40)) == [40])
    #expect(try count("m5", ["a"]) == [42])
    let id = try #require(try registry.record("t")?.id)
    let numbered = BadgeCount(
      app: TestRegistry.app, messageID: Array("m4".utf8), rule: .up, devices: [.number(id), .number(99)])
    #expect(try registry.store.countBadges(numbered, now: 1) == [2, nil])
    // A new token of the installation continues with its counter.
    _ = try registry.register("c", #""installation":"i","sender":"one""#)
    #expect(try count("m6", ["c"]) == [43])
    #expect(try say(registry, #"{"op":"read","installation":"i","message_id":"m6"}"#) == "n")
    #expect(try count("m7", ["b"]) == [43])
  }

  @Test("No device inherits the number, the notes or the badge of a removed one", arguments: Backend.all)
  func removed(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("old", #""installation":"i""#)
    _ = try registry.register("t")
    #expect(try badge(registry, "m") == 1)
    _ = try registry.register("t", #""installation":"i""#)
    _ = try registry.register("fresh")
    let fresh = BadgeCount(
      app: TestRegistry.app, messageID: Array("m".utf8), rule: .up, devices: [.token(.fcm, Array("fresh".utf8))])
    #expect(try registry.store.countBadges(fresh, now: 1_000) == [1])
    #expect(try registry.record("fresh")?.id == 3)
  }

  @Test("An acknowledgement counts in the campaign of its message, once", arguments: Backend.all)
  func campaigns(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t", #""topics":["x"]"#)
    _ = try registry.register("u", #""topics":["x"]"#)
    _ = try registry.store.createCampaign(
      CampaignDescription(
        id: Array("c".utf8), app: TestRegistry.app, messageID: Array("m".utf8), target: Array("/topics/x".utf8), total: 2,
        highWater: 2),
      now: 1)
    _ = try registry.store.openPage(
      PageOpening(
        campaign: Array("c".utf8), page: 0, copy: 1, app: TestRegistry.app,
        content: .members(.topic(Array("x".utf8)), after: 0, upTo: 2, limit: 9)), now: 1)
    for _ in 0..<2 {
      try say(
        registry,
        """
        [{"op":"received","token":"t","message_id":"m"},{"op":"received","token":"u","message_id":"m"},
         {"op":"read","token":"u","message_id":"m"},{"op":"received","token":"u","message_id":"n"}]
        """)
    }
    let campaign = try #require(try registry.store.campaign(Array("c".utf8)))
    #expect(campaign.received == 2 && campaign.read == 1)
  }

  @Test("Acknowledgements are kept for a while, and then removed in portions", arguments: Backend.all)
  func purge(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t")
    for (number, now) in [1_000, 2_000, 3_000, 4_000].enumerated() {
      #expect(try say(registry, #"{"op":"received","token":"t","message_id":"m\#(number)"}"#, now: Int64(now)) == "n")
    }
    #expect(try registry.store.purge(.notes, before: 4_000, limit: 2) == 2)
    #expect(try registry.store.purge(.notes, before: 4_000, limit: 2) == 1)
    #expect(try registry.store.purge(.notes, before: 4_000, limit: 2) == 0)
    #expect(try say(registry, #"{"op":"received","token":"t","message_id":"m3"}"#) == "r")
    #expect(try say(registry, #"{"op":"received","token":"t","message_id":"m0"}"#) == "n")
  }

  @Test("Two workers that store the same acknowledgement at once store it once", arguments: Backend.all)
  func concurrent(_ backend: Backend) async throws {
    let registry = try backend.open()
    _ = try registry.register("t")
    let (location, limits) = (registry.location, registry.limits)
    let said = (0..<300).map {
      Acknowledgement(
        app: TestRegistry.app, device: .token(.fcm, Array("t".utf8)), operation: .received(.id(Array("m\($0)".utf8))), at: 1)
    }
    let noted = try await withThrowingTaskGroup(of: (Int, [Int64?]).self) { group in
      for worker in 0..<3 {
        group.addTask {
          let store = try backend.connect(location, limits)
          var noted = 0
          var badges: [Int64?] = []
          for start in stride(from: 0, to: 300, by: 30) {
            let outcomes = try store.acknowledge(Array(said[start..<start + 30]), wantsReceipts: false, now: 1)
            noted += outcomes.count { $0 == .noted(nil) }
            let count = BadgeCount(
              app: TestRegistry.app, messageID: Array("b\(start + worker % 2)".utf8), rule: .up,
              devices: [.token(.fcm, Array("t".utf8))])
            badges += try store.countBadges(count, now: 1)
          }
          return (noted, badges)
        }
      }
      return try await group.reduce(into: (0, [Int64?]())) { $0 = ($0.0 + $1.0, $0.1 + $1.1) }
    }
    #expect(noted.0 == 300)
    #expect(Set(noted.1) == Set((1...20).map { Int64($0) }))
  }

  @Test(
    "An unreadable acknowledgement is refused with its place",
    arguments: [
      (#"{"op":"received","token":"t"}"#, "expected exactly one of message_id, push_key, seqno"),
      (#"{"op":"received","message_id":"m"}"#, "expected exactly one of registration, token, installation"),
      (#"[{"op":"received","token":"t","message_id":"m"},{"op":"seen","token":"t"}]"#, "[1]: op: expected one of"),
      (#"{"op":"badge","token":"t","badge":3,"message_id":"m"}"#, "message_id: not a field of badge"),
      (#"{"op":"read","token":"t","message_id":"m","badge_option":"Force"}"#, "badge_option: expected"),
      (#"{"op":"received","token":"t","push_key":"12"}"#, "push_key: expected 40"),
      (#"{"op":"received","token":"t","message_id":""}"#, "message_id: 0 bytes"),
      (#"{"op":"received","token":"t","message_id":"m","at":"yesterday"}"#, "at: expected a time"),
      (#"{"op":"received","token":"t","message_id":"m","colour":1}"#, "unknown key at byte"),
      ("[]", "0 acknowledgements, 1 to 1000 allowed"), ("7", "expected an object"), ("{", "InvalidJSON"),
    ])
  func refused(_ json: String, _ words: String) throws {
    let registry = try Backend.sqlite.open()
    #expect(try say(registry, json).contains(words))
  }

  @Test("A number may name a message, and unknown members of a device change nothing (UP-17)")
  func named() throws {
    let registry = try Backend.sqlite.open()
    _ = try registry.register("t")
    #expect(try say(registry, #"{"op":"received","token":"t","message_id":104,"feedback":"true"}"#) == "n")
    #expect(try say(registry, #"{"op":"received","token":"t","message_id":"104"}"#) == "r")
  }
}
