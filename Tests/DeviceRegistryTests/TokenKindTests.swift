import PushCore
import Testing

@testable import DeviceRegistry

@Suite("Kinds of tokens on both databases")
struct TokenKindTests {
  /// Registers a token of APNs, of two hexadecimal digits.
  private func register(_ registry: TestRegistry, _ token: String, _ fields: String, now: Int64 = 1_000) throws -> [UInt8] {
    let answer = try registry.change(#"{"platform":"apns","token":"\#(token)",\#(fields)}"#, now: now)
    guard let id = answer.registration else { throw TestFailure("refused: \(text(answer.json))") }
    return id
  }

  private func tokens(_ registry: TestRegistry, _ audience: Audience, _ kind: TokenKind) throws -> [String] {
    let devices = try registry.store.page(of: audience, kind: kind, app: TestRegistry.app, after: 0, upTo: .max, limit: 50)
      .devices
    return (0..<devices.count).map { text(devices.token($0)) }
  }

  private func resolved(_ registry: TestRegistry, _ registration: [UInt8], _ kind: TokenKind) throws -> [String] {
    let resolution = try registry.store.resolve([LookUp(app: TestRegistry.app, registration: registration, kind: kind)])
    return switch resolution.entries[0] {
    case .device(let row, _): [text(resolution.devices.token(row))]
    case .devices(let rows): rows.map { text(resolution.devices.token($0)) }
    case .unknown: []
    }
  }

  @Test(
    "an installation has one token of each kind and one for each activity; a new one replaces the same kind's",
    arguments: Backend.all)
  func oneOfEach(_ backend: Backend) throws {
    let registry = try backend.open()
    let alert = try register(registry, "a1", #""installation":"i","user":"u","topics":["news"]"#)
    let voip = try register(registry, "b1", #""installation":"i","kind":"voip""#)
    let first = try register(registry, "c1", #""installation":"i","kind":"live_activity","activity":"x""#)
    _ = try register(registry, "c2", #""installation":"i","kind":"live_activity","activity":"y""#)
    _ = try register(registry, "d1", #""installation":"i","kind":"push_to_start""#)
    #expect(try registry.store.device(.installation(Array("i".utf8)), app: TestRegistry.app).count == 5)

    let answer = try registry.change(
      #"{"platform":"apns","token":"c3","installation":"i","kind":"live_activity","activity":"x"}"#)
    guard case .moved(_, let moved) = answer, let replaced = moved.first else { throw TestFailure("\(answer)") }
    #expect(text(replaced.token) == "c1" && text(replaced.newToken) == "c3" && replaced.kind == .liveActivity)
    #expect(replaced.installation == Array("i".utf8) && replaced.user == Array("u".utf8))
    for audience in [Audience.user(Array("u".utf8)), .topic(Array("news".utf8))] {
      #expect(try tokens(registry, audience, .alert) == ["a1"])
      #expect(try tokens(registry, audience, .voip) == ["b1"])
      #expect(try tokens(registry, audience, .pushToStart) == ["d1"])
      #expect(try tokens(registry, audience, .liveActivity) == ["c3", "c2"])
    }
    #expect(try resolved(registry, alert, .alert) == ["a1"] && resolved(registry, alert, .voip) == ["b1"])
    #expect(try resolved(registry, alert, .liveActivity) == ["c3", "c2"])
    #expect(try resolved(registry, voip, .voip) == ["b1"] && resolved(registry, voip, .alert) == ["a1"])
    #expect(try resolved(registry, first, .liveActivity) == ["c3"])
  }

  @Test(
    "a push type with its own tokens reaches only these, and a verdict against one marks that one",
    arguments: Backend.all)
  func pushTypes(_ backend: Backend) throws {
    let registry = try backend.open()
    let own: [TokenKind] = [.complication, .fileprovider, .location, .pushtotalk, .widgets, .controls]
    let alert = try register(registry, "a1", #""installation":"i","topics":["news"]"#)
    for kind in own { _ = try register(registry, "b\(kind.rawValue)", #""installation":"i","kind":"\#(kind.name)""#) }
    for kind in own {
      #expect(try tokens(registry, .topic(Array("news".utf8)), kind) == ["b\(kind.rawValue)"])
      #expect(try resolved(registry, alert, kind) == ["b\(kind.rawValue)"])
    }
    let mark = DeviceMark(
      app: TestRegistry.app, platform: .apns, token: Array("b\(TokenKind.location.rawValue)".utf8),
      verdict: .gone(since: 9_000), reason: [])
    guard case .marked = try registry.store.mark([mark], now: 9_000)[0] else { throw TestFailure("not marked") }
    #expect(try tokens(registry, .topic(Array("news".utf8)), .location).isEmpty)
    #expect(try resolved(registry, alert, .alert) == ["a1"])
    let activity = DeviceMark(
      app: TestRegistry.app, platform: .apns, token: Array("b\(TokenKind.widgets.rawValue)".utf8), isForActivity: true,
      verdict: .gone(since: 9_000), reason: [])
    guard case .unknown = try registry.store.mark([activity], now: 9_000)[0] else { throw TestFailure("marked") }
  }

  @Test(
    "topics, groups and the user of an installation are those of all its tokens, in any order", arguments: Backend.all)
  func shared(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try register(registry, "b1", #""installation":"i","kind":"voip""#)
    let alert = try register(registry, "a1", #""installation":"i","user":"u","topics":["one"]"#)
    _ = try registry.change(#"{"op":"subscribe","topic":"two","tokens":["apns:a1"]}"#)
    let group = try registry.change(#"{"op":"group_create","notification_key_name":"g","registration_ids":["apns:a1"]}"#)
    guard case .notificationKey(let key, _) = group else { throw TestFailure("\(group)") }
    let audiences = [Audience.topic(Array("one".utf8)), .topic(Array("two".utf8)), .user(Array("u".utf8)), .group(key)]
    for audience in audiences {
      #expect(try tokens(registry, audience, .voip) == ["b1"], "\(audience)")
      #expect(try tokens(registry, audience, .alert) == ["a1"], "\(audience)")
    }
    _ = try registry.change(#"{"op":"unsubscribe","topic":"two","tokens":["\#(text(alert))"]}"#)
    _ = try registry.change(#"{"op":"unregister_user","registration":"\#(text(alert))"}"#)
    #expect(try tokens(registry, audiences[1], .voip).isEmpty && tokens(registry, audiences[2], .voip).isEmpty)
  }

  @Test(
    "ended activities leave room for others: the latest of an installation are kept, and dead ones don't count",
    arguments: Backend.all)
  func crowd(_ backend: Backend) throws {
    var limits = RegistryLimits()
    limits.activitiesPerInstallation = 3
    let registry = try backend.open(limits)
    let alert = try register(registry, "a1", #""installation":"i","user":"u""#)
    for number in 0..<5 {
      _ = try register(
        registry, "c\(number)", #""installation":"i","kind":"live_activity","activity":"\#(number)""#,
        now: 2_000 + Int64(number)
      )
    }
    #expect(try resolved(registry, alert, .liveActivity) == ["c2", "c3", "c4"])
    #expect(try registry.store.device(.installation(Array("i".utf8)), app: TestRegistry.app).count == 4)
    // An existing activity replaces no other one.
    _ = try register(registry, "d4", #""installation":"i","kind":"live_activity","activity":"4""#, now: 3_000)
    #expect(try resolved(registry, alert, .liveActivity).count == 3)
    _ = try registry.store.mark(
      ["c2", "c3"].map {
        DeviceMark(
          app: TestRegistry.app, platform: .apns, token: Array($0.utf8), isForActivity: true, verdict: .gone(since: 9_000),
          reason: [])
      }, now: 9_000)
    // Pages of two rows: unwanted ones would fill the first page.
    let user = Audience.user(Array("u".utf8))
    let page = try registry.store.page(of: user, kind: .liveActivity, app: TestRegistry.app, after: 0, upTo: .max, limit: 1)
    #expect(page.isLast && page.devices.count == 1 && text(page.devices.token(0)) == "d4")
    #expect(try registry.store.page(of: user, kind: .alert, app: TestRegistry.app, after: 0, upTo: .max, limit: 1).isLast)
    #expect(try registry.store.purge(.activities, before: 2_003, limit: 10) == 1)
    #expect(try registry.store.purge(.activities, before: 10_000, limit: 10) == 2)
    #expect(try tokens(registry, user, .alert) == ["a1"] && tokens(registry, user, .liveActivity).isEmpty)
  }

  @Test(
    "a token that changes its kind or activity replaces the installation's token of that kind",
    arguments: Backend.all)
  func changesKind(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try register(registry, "a1", #""installation":"i""#)
    _ = try register(registry, "b1", #""installation":"i","kind":"voip""#)
    _ = try register(registry, "c1", #""installation":"i","kind":"live_activity","activity":"x""#)
    _ = try register(registry, "c2", #""installation":"i","kind":"live_activity","activity":"y""#)
    let moved = try registry.change(#"{"platform":"apns","token":"c1","kind":"live_activity","activity":"y"}"#)
    guard case .moved(_, let tokens) = moved, let replaced = tokens.first else { throw TestFailure("\(moved)") }
    #expect(text(replaced.token) == "c2" && text(replaced.newToken) == "c1")
    #expect(try registry.change(#"{"platform":"apns","token":"c1","kind":"voip"}"#).registration != nil)
    let all = try registry.store.device(.installation(Array("i".utf8)), app: TestRegistry.app)
    #expect(all.map { text($0.device.token) }.sorted() == ["a1", "c1"])
    // Many at once, among which the database stores sets.
    let app = TestRegistry.app
    _ = try register(registry, "e1", #""installation":"j","kind":"live_activity","activity":"x""#)
    _ = try register(registry, "e2", #""installation":"j","kind":"live_activity","activity":"y""#)
    var rows = (0..<40).map { Registration(app: app, platform: .apns, token: Array("f\($0)".utf8)) }
    rows[20] = Registration(app: app, platform: .apns, token: Array("e1".utf8))
    rows[20].kind = .liveActivity
    rows[20].activity = Array("y".utf8)
    #expect(try registry.store.load(rows, now: 2_000).allSatisfy { $0.registration != nil })
    #expect(try registry.store.device(.installation(Array("j".utf8)), app: app).map { text($0.device.token) } == ["e1"])
  }

  @Test("a dead activity's token never marks a device, nor the other way round", arguments: Backend.all)
  func marks(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try register(registry, "a1", #""installation":"i""#)
    _ = try register(registry, "c1", #""installation":"i","kind":"live_activity","activity":"x""#)
    func mark(_ token: String, isForActivity: Bool) -> DeviceMark {
      DeviceMark(
        app: TestRegistry.app, platform: .apns, token: Array(token.utf8), isForActivity: isForActivity,
        verdict: .gone(since: 5_000), reason: Array("ExpiredToken".utf8))
    }
    let outcomes = try registry.store.mark([mark("a1", isForActivity: true), mark("c1", isForActivity: false)], now: 9_000)
    #expect(outcomes == [.unknown, .unknown])
    guard case .marked = try registry.store.mark([mark("c1", isForActivity: true)], now: 9_000)[0] else {
      throw TestFailure("not marked")
    }
    let gone = try registry.store.devices(app: TestRegistry.app, in: .gone, since: 9_000, after: 0, limit: 9)
    #expect(gone.map { text($0.device.token) } == ["c1"] && gone.first?.markedAt == 9_000)
    #expect(try registry.store.devices(app: TestRegistry.app, in: .gone, since: 9_001, after: 0, limit: 9).isEmpty)
  }

  @Test("kinds survive a bulk load and an export", arguments: Backend.all)
  func bulk(_ backend: Backend) throws {
    let registry = try backend.open()
    let registrations = (0..<80).map { number in
      var registration = Registration(app: TestRegistry.app, platform: .apns, token: Array("\(1_000 + number)".utf8))
      registration.installation = Array("i\(number / 4)".utf8)
      registration.kind = TokenKind(rawValue: UInt8(number % 4))
      registration.activity = registration.kind == .liveActivity ? Array("a".utf8) : nil
      return registration
    }
    let answers = try registry.store.load(registrations, now: 1_000)
    #expect(answers.allSatisfy { $0.registration != nil })
    let records = try registry.store.devices(app: TestRegistry.app, after: 0, limit: 100)
    #expect(records.count == 80 && records.allSatisfy { ($0.device.activity != nil) == ($0.device.kind == .liveActivity) })
    for format in BulkFormat.allCases {
      let other = try backend.open()
      let export = BulkExport(from: registry.store, format: format, app: TestRegistry.app)
      var reasons: [String] = []
      let load = BulkImport(into: other.store, format: format, apps: [TestRegistry.app], defaultApp: nil, now: 2_000) {
        reasons.append($0.reason)
      }
      while let bytes = try export.next() { try load.feed(bytes) }
      try load.finish()
      #expect(load.count.stored == 80 && reasons.isEmpty, "\(reasons.prefix(2))")
      #expect(
        try other.store.devices(app: TestRegistry.app, after: 0, limit: 100).map(\.device.kind) == records.map(\.device.kind))
    }
  }

  @Test(
    "an unknown kind, an activity without its kind and a kind of FCM are refused",
    arguments: [
      (#""platform":"apns","kind":"banner""#, "kind: expected"),
      (#""platform":"apns","kind":"live_activity""#, "activity: missing"),
      (#""platform":"apns","activity":"x""#, "activity: only"),
      (#""platform":"apns","kind":"voip","activity":"x""#, "activity: only"),
      (#""platform":"fcm","kind":"voip""#, "kind: voip only for apns"),
      (#""platform":"apns","kind":1"#, "kind: expected a string"),
    ])
  func refused(_ fields: String, _ reason: String) {
    let body = #"{"app":"a.b","token":"00ff",\#(fields)}"#
    guard case .failure(let refusal) = RegistryChange.parse(Array(body.utf8)) else {
      Issue.record("taken: \(body)")
      return
    }
    #expect(refusal.code == .invalidParameters && refusal.reason.hasPrefix(reason), "\(refusal)")
  }

  @Test(
    "a stale device is claimed once, skipped by topics after its feedback, and back after registering",
    arguments: Backend.all)
  func stale(_ backend: Backend) throws {
    let registry = try backend.open()
    let another = try registry.another()
    for number in 0..<5 {
      _ = try registry.register("t\(number)", #""topics":["news"],"user":"u""#, now: Int64(1_000 + number))
    }
    func claim(_ store: DeviceStore, claimedBefore: Int64 = 0, now: Int64) throws -> StaleDevices {
      try store.claimStale(after: 0, portion: 3, seenBefore: 1_002, claimedBefore: claimedBefore, limit: 10, now: now)
    }
    let found = try claim(registry.store, now: 50_000)
    #expect(found.devices.map { text($0.device.token) } == ["t0", "t1"] && found.next == 3)
    #expect(try claim(another, now: 50_001) == StaleDevices(devices: [], next: 3))
    #expect(
      try another.claimStale(after: 5, portion: 3, seenBefore: 1, claimedBefore: 0, limit: 9, now: 1).next == nil)
    #expect(try claim(another, claimedBefore: 50_001, now: 60_000).devices.count == 2)
    _ = try registry.register("t0", now: 60_000)
    try registry.store.markStale(found.devices.map(\.id), seenBefore: 1_002, now: 61_000)
    #expect(try registry.topic("news") == ["t0", "t2", "t3", "t4"] && registry.user("u").count == 5)
    let listed = try registry.store.devices(app: TestRegistry.app, in: .stale, since: 61_000, after: 0, limit: 9)
    #expect(listed.map { text($0.device.token) } == ["t1"])
    _ = try registry.register("t1", now: 70_000)
    #expect(try registry.topic("news").count == 5)
  }

  @Test("a registration repeated after a lost answer reports again what it replaced", arguments: Backend.all)
  func movedAgain(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""installation":"i""#, now: 1_000)
    var new = Registration(app: TestRegistry.app, platform: .fcm, token: Array("t2".utf8))
    new.installation = Array("i".utf8)
    guard case .moved(let id, let replaced) = try registry.store.apply([.register(new)], now: 2_000)[0] else {
      throw TestFailure("not moved")
    }
    #expect(replaced.map { text($0.token) } == ["t1"])
    #expect(try registry.store.apply([.repeated(.register(new))], now: 3_000) == [.moved(id, replaced)])
    #expect(try registry.store.apply([.register(new)], now: 3_000) == [.registration(id)])
  }

  @Test("two registrations repeated after each other report all that they replaced", arguments: Backend.all)
  func bothMovedAgain(_ backend: Backend) throws {
    let registry = try backend.open()
    func register(_ token: String, again: Bool = false, now: Int64) throws -> [String] {
      var new = Registration(app: TestRegistry.app, platform: .fcm, token: Array(token.utf8))
      new.installation = Array("i".utf8)
      let change = RegistryChange.register(new)
      let answer = try registry.store.apply([again ? change.asRepeated : change], now: now)[0]
      guard case .moved(_, let replaced) = answer else { return [] }
      return replaced.map { "\(text($0.token)) \(text($0.newToken))" }
    }
    #expect(try register("t1", now: 1_000) == [])
    #expect(try register("t2", now: 2_000) == ["t1 t2"])
    #expect(try register("t3", now: 3_000) == ["t2 t3"])
    // The second token is back, until the third comes once more.
    #expect(try register("t2", again: true, now: 4_000) == ["t1 t2", "t3 t2"])
    #expect(try register("t3", again: true, now: 5_000) == ["t2 t3"])
    #expect(try register("t3", again: true, now: 6_000) == ["t2 t3"])
    #expect(try register("t4", again: true, now: 7_000) == ["t3 t4"])
    // There and back, through any of them.
    #expect(try register("t2", now: 8_000) == ["t4 t2"])
    #expect(try register("t2", again: true, now: 9_000) == ["t1 t2", "t3 t2", "t4 t2"])
  }
}
