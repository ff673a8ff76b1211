import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Marks on both databases")
struct MarkTests {
  @Test("A device is gone only when the provider's time is later than its registration (UP-22)", arguments: Backend.all)
  func gone(_ backend: Backend) throws {
    let registry = try backend.open()
    let id = try registry.register("t1", now: 5_000)
    for since in [0, 4_999, 5_000] as [Int64] {
      #expect(try registry.mark("t1", .gone(since: since)) == .registeredSince(registration: id))
    }
    #expect(try registry.resolve(id)?.state == .active)
    #expect(try registry.mark("t1", .gone(since: 5_001)) == .marked(registration: id))
    #expect(try registry.mark("t1", .gone(since: 5_001)) == .unchanged(registration: id))
    #expect(try registry.resolve(id)?.state == .gone)
    #expect(try registry.record("t1")?.reason == Array("Unregistered".utf8))
    #expect(try registry.mark("never", .gone(since: 5_001)) == .unknown)
  }

  @Test("A dead answer for an old token that comes after a new registration changes nothing", arguments: Backend.all)
  func race(_ backend: Backend) throws {
    let registry = try backend.open()
    let id = try registry.register("t1", #""installation":"i""#, now: 1_000)
    let new = try registry.register("t2", #""installation":"i""#, now: 5_000)
    #expect(try registry.mark("t1", .gone(since: 9_999)) == .unknown)
    #expect(try registry.resolve(new)?.state == .active)
    _ = try registry.register("t3", now: 1_000)
    _ = try registry.register("t3", now: 7_000)
    guard case .registeredSince = try registry.mark("t3", .gone(since: 6_000)) else { throw TestFailure("pruned") }
    #expect(try registry.resolve(id)?.state == .active)
  }

  @Test("A suspicion never makes a device gone, and registering again lifts it", arguments: Backend.all)
  func suspect(_ backend: Backend) throws {
    let registry = try backend.open()
    let id = try registry.register("t1")
    for _ in 0..<3 { _ = try registry.mark("t1", .suspect) }
    #expect(try registry.resolve(id)?.state == .suspect)
    #expect(try registry.register("t1", now: 20_000) == id)
    #expect(try registry.resolve(id)?.state == .active)
    _ = try registry.mark("t1", .gone(since: 30_000))
    #expect(try registry.mark("t1", .suspect) == .unchanged(registration: id))
    #expect(try registry.resolve(id)?.state == .gone)
  }

  @Test("Many marks at once are independent: by app, by platform, twice the same, unknown", arguments: Backend.all)
  func many(_ backend: Backend) throws {
    let registry = try backend.open()
    let ids = try (0..<600).map { try registry.register("t\($0)", now: 5_000) }
    let other = Array("com.example.other".utf8)
    _ = try registry.change(#"{"app":"com.example.other","platform":"fcm","token":"t0"}"#)
    func mark(_ token: String, _ verdict: DeviceMark.Verdict, app: [UInt8] = TestRegistry.app, _ platform: Platform = .fcm)
      -> DeviceMark
    {
      DeviceMark(app: app, platform: platform, token: Array(token.utf8), verdict: verdict, reason: Array("Ünregistered".utf8))
    }
    var marks = (0..<600).map {
      mark("t\($0)", $0 % 3 == 0 ? .gone(since: 6_000) : $0 % 3 == 1 ? .suspect : .gone(since: 4_000))
    }
    marks += [
      mark("t0", .suspect), mark("t1", .gone(since: 7_000)), mark("t2", .suspect, .apns), mark("t0", .suspect, app: other),
      mark("t0", .suspect, app: Array("com.example.none".utf8)), mark("nobody", .gone(since: 9_999)),
    ]
    let outcomes = try registry.store.mark(marks, now: 9_000)
    for (index, id) in ids.enumerated() {
      #expect(outcomes[index] == (index % 3 == 2 ? .registeredSince(registration: id) : .marked(registration: id)))
    }
    guard case .marked = outcomes[603] else { throw TestFailure("\(outcomes[603])") }
    #expect(
      outcomes[600..<603] == [.unchanged(registration: ids[0]), .marked(registration: ids[1]), .unknown]
        && outcomes[604...] == [.unknown, .unknown])
    let states = try ids.map { try registry.resolve($0)?.state }
    #expect(states[0..<6] == [.gone, .gone, .active, .gone, .suspect, .active])
    #expect(try registry.record("t0")?.reason == Array("Ünregistered".utf8))
    #expect(try registry.store.mark(marks, now: 9_500).allSatisfy { if case .marked = $0 { false } else { true } })
  }

  @Test(
    "Marks don't wait for writers of devices; a device under change is busy",
    .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func neverWait() throws {
    let registry = try Backend.postgres.open()
    let ids = [try registry.register("t0"), try registry.register("t1")]
    let other = try PostgresConnection(location: registry.location, options: StoreOptions())
    try other.begin(.devices)
    try other.execute("UPDATE devices SET last_seen = 2 WHERE token = 't0'")
    let marks = ["t0", "t1"].map {
      DeviceMark(app: TestRegistry.app, platform: .fcm, token: Array($0.utf8), verdict: .gone(since: 5_000), reason: [])
    }
    let begun = ContinuousClock.now
    #expect(try registry.store.mark(marks, now: 9_000) == [.busy, .marked(registration: ids[1])])
    #expect(ContinuousClock.now - begun < .seconds(2))
    try other.commit()
    #expect(try registry.store.mark(marks, now: 9_000) == [.marked(registration: ids[0]), .unchanged(registration: ids[1])])
  }

  @Test("Devices long gone are removed with all their data, others stay", arguments: Backend.all)
  func purges(_ backend: Backend) throws {
    let registry = try backend.open()
    let old = try registry.register("t1", #""topics":["news"],"installation":"i""#)
    let id = try registry.register("t1b", #""installation":"i""#)
    let kept = try registry.register("t2", #""topics":["news"]"#)
    _ = try registry.change(#"{"op":"group_create","notification_key_name":"g","registration_ids":["t1b"]}"#)
    _ = try registry.mark("t1b", .gone(since: 8_000), now: 9_000)
    #expect(try registry.store.purge(.devices, before: 9_000, limit: 10) == 0)
    #expect(try registry.store.purge(.devices, before: 9_001, limit: 10) == 1)
    #expect(try registry.resolve(id) == nil)
    #expect(try registry.resolve(old) == nil)
    #expect(try registry.resolve(kept) != nil)
    #expect(try registry.store.group(.name(Array("g".utf8)), app: TestRegistry.app) == nil)
    #expect(try registry.store.topics(app: TestRegistry.app, after: [], limit: 9).map(\.members) == [1])
  }
}
