import PushCore
import Testing

@testable import DeviceRegistry

@Suite("Registrations on both databases")
struct RegistrationTests {
  @Test(
    "Registering twice with equal inputs is one installation, one user and one registration (UP-01)", arguments: Backend.all)
  func twice(_ backend: Backend) throws {
    let registry = try backend.open()
    let fields = #""user":"u1","name":"Ann","installation":"i1""#
    let first = try registry.register("t1", fields)
    let second = try registry.register("t1", fields, now: 2_000)
    #expect(first == second)
    #expect(RegistryID.kind(of: first) == .registration)
    #expect(try registry.user("u1") == ["t1"])
    #expect(try registry.record("t1")?.registeredAt == 2_000)
    #expect(try registry.store.devices(app: nil, after: 0, limit: 10).count == 1)
  }

  @Test("A token registered for another user moves to that user (UP-02)", arguments: Backend.all)
  func movesUser(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""user":"a","name":"A""#)
    _ = try registry.register("t2", #""user":"a","name":"A""#)
    _ = try registry.register("t1", #""user":"b","name":"B""#)
    #expect(try registry.user("a") == ["t2"])
    #expect(try registry.user("b") == ["t1"])
  }

  @Test(
    "A registration with an empty, null or missing field is refused and stores nothing (UP-03)",
    arguments: Backend.all,
    [
      #"{"platform":"fcm","token":"t","user":"","name":"A"}"#, #"{"platform":"fcm","token":"t","user":"u","name":""}"#,
      #"{"platform":"fcm","token":"t","user":null,"name":"A"}"#, #"{"platform":"fcm","token":"t","name":"A"}"#,
      #"{"platform":"fcm","token":"","user":"u"}"#, #"{"platform":"fcm","user":"u"}"#, #"{"token":"t"}"#,
      #"{"platform":"apns","token":"not hex"}"#, #"{"platform":"fcm","token":"t","usr":"u"}"#,
      #"{"platform":"fcm","token":"t","topics":["a b"]}"#, #"{"platform":"fcm","token":"t","locale":7}"#,
    ])
  func refuses(_ backend: Backend, _ json: String) throws {
    let registry = try backend.open()
    #expect(try registry.change(json).isRefusal)
    #expect(try registry.store.devices(app: nil, after: 0, limit: 10).isEmpty)
    #expect(try registry.store.survey(.user(Array("u".utf8)), app: TestRegistry.app).exists == false)
  }

  @Test(
    "A Firebase installation is a device like a token, and each replaces the other of the same installation",
    arguments: Backend.all)
  func installations(_ backend: Backend) throws {
    let registry = try backend.open()
    let fid = "fid:cXyZ0123456789_-AbCdEf"
    let first = try registry.register("cXyZ0123456789_-AbCdEf:APA91b", #""installation":"i1","topics":["news"]"#)
    let second = try registry.register(fid, #""installation":"i1""#)
    #expect(first != second)
    #expect(try registry.topic("news") == [fid])
    let known = try registry.resolve(first)
    #expect(known?.state == .active && known?.token == fid)
    // The same id may come back after FCM has called it unregistered.
    try registry.mark(fid, .gone(since: 5_000))
    #expect(try registry.resolve(second)?.state == .gone)
    #expect(try registry.register(fid, #""installation":"i1""#, now: 6_000) == second)
    #expect(try registry.resolve(second)?.state == .active)
    #expect(try registry.change(#"{"op":"unregister","token":"\#(fid)"}"#) == .done)
    #expect(try registry.topic("news").isEmpty)
    for bad in ["fid:", "fid:bXyZ0123456789_-AbCdEf", "fcm:\(fid)", "fcm:/topics/a", "\(fid)x", "'a' in topics"] {
      #expect(try registry.change(#"{"platform":"fcm","token":"\#(bad)"}"#).isRefusal, "\(bad)")
    }
    #expect(try registry.change(#"{"platform":"apns","token":"\#(fid)"}"#).isRefusal)
  }

  @Test("A user's name is replaced by the one given last (UP-04)", arguments: Backend.all)
  func renames(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""user":"u","name":"Old""#)
    _ = try registry.register("t1", #""user":"u","name":"雑談 'new'""#)
    #expect(try registry.record("t1")?.device.name == Array("雑談 'new'".utf8))
  }

  @Test(
    "After unregister_user a push to the user misses the device, one to the device or a topic doesn't (UP-05)",
    arguments: Backend.all)
  func unregisterUser(_ backend: Backend) throws {
    let registry = try backend.open()
    let id = try registry.register("t1", #""user":"u","topics":["news"]"#)
    #expect(try registry.change(#"{"op":"unregister_user","token":"t1"}"#) == .done)
    #expect(try registry.user("u").isEmpty)
    #expect(try registry.resolve(id)?.state == .active)
    #expect(try registry.topic("news") == ["t1"])
  }

  @Test("After unregister nothing reaches the device, even if repeated (UP-06)", arguments: Backend.all)
  func unregister(_ backend: Backend) throws {
    let registry = try backend.open()
    let id = try registry.register("t1", #""user":"u","topics":["news"]"#)
    let group = try registry.change(#"{"op":"group_create","notification_key_name":"g","registration_ids":["\#(text(id))"]}"#)
    guard case .notificationKey(let key, _) = group else { throw TestFailure("no group") }
    for _ in 0..<2 { #expect(try registry.change(#"{"op":"unregister","registration":"\#(text(id))"}"#) == .done) }
    #expect(try registry.change(#"{"op":"unregister","token":"never-seen"}"#) == .done)
    #expect(try registry.user("u").isEmpty)
    #expect(try registry.topic("news").isEmpty)
    #expect(try registry.tokens(.group(key)).isEmpty)
    #expect(try registry.store.survey(.group(key), app: TestRegistry.app).exists == false)
    #expect(try registry.resolve(id)?.state == .gone)
    #expect(try registry.register("t1") == id)
    #expect(try registry.resolve(id)?.state == .active)
  }

  @Test("A new token of an installation replaces the old one, whose registration still answers", arguments: Backend.all)
  func replaces(_ backend: Backend) throws {
    let registry = try backend.open()
    let old = try registry.register("t1", #""installation":"i","user":"u","topics":["news"],"locale":"ko_KR""#)
    let new = try registry.register("t2", #""installation":"i""#, now: 5_000)
    let newest = try registry.register("t3", #""installation":"i""#, now: 6_000)
    #expect(Set([old, new, newest]).count == 3)
    for id in [old, new] {
      let found = try #require(try registry.resolve(id))
      #expect(found.token == "t3")
      #expect(!found.isCanonical)
    }
    let resolution = try registry.store.resolve([old, newest, new], app: TestRegistry.app)
    #expect(resolution.devices.count == 1)
    #expect(resolution.devices.registration(0) == newest)
    #expect(resolution.entries[1] == .device(0, isCanonical: true))
    #expect(try registry.topic("news") == ["t3"])
    #expect(try registry.user("u") == ["t3"])
    #expect(try registry.record("t1") == nil)
    #expect(try registry.record("t3")?.device.locale == Array("ko_KR".utf8))
    #expect(try registry.record("t3")?.registeredAt == 6_000)
  }

  @Test("A new token without an installation leaves the old one (UP-23)", arguments: Backend.all)
  func leavesOld(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""user":"u""#)
    _ = try registry.register("t2", #""user":"u""#)
    #expect(try registry.user("u") == ["t1", "t2"])
  }

  @Test(
    "An installation takes over a token that was registered alone, with its topics and both registrations",
    arguments: Backend.all)
  func merges(_ backend: Backend) throws {
    let registry = try backend.open()
    let held = try registry.register("t1", #""installation":"i","topics":["a"]"#)
    let loose = try registry.register("t2", #""topics":["b"]"#)
    let merged = try registry.register("t2", #""installation":"i""#)
    for id in [held, loose, merged] { #expect(try registry.resolve(id)?.token == "t2") }
    #expect(try registry.topic("a") == ["t2"])
    #expect(try registry.topic("b") == ["t2"])
    #expect(try registry.store.devices(app: nil, after: 0, limit: 10).count == 1)
  }

  @Test("A token that another installation had moves without that one's topics", arguments: Backend.all)
  func movesInstallation(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""installation":"i","topics":["a"]"#)
    _ = try registry.register("t2", #""installation":"j","topics":["b"]"#)
    _ = try registry.register("t2", #""installation":"i""#)
    #expect(try registry.topic("a") == ["t2"])
    #expect(try registry.topic("b").isEmpty)
    _ = try registry.register("t2", #""installation":"k""#)
    #expect(try registry.record("t2")?.device.installation == Array("k".utf8))
    #expect(try registry.topic("a") == ["t2"])
  }

  @Test("An installation has one registration a sender, at most 100 (GS-083, GS-084)", arguments: Backend.all)
  func senders(_ backend: Backend) throws {
    let registry = try backend.open()
    var ids: Set<[UInt8]> = []
    for sender in 0..<100 { ids.insert(try registry.register("s\(sender)", #""installation":"i","sender":"\#(sender)""#)) }
    #expect(ids.count == 100)
    let refused = try registry.change(#"{"platform":"fcm","token":"s100","installation":"i","sender":"100"}"#)
    #expect(refused.isRefusal)
    #expect(try registry.record("s100") == nil)
    _ = try registry.register("s7b", #""installation":"i","sender":"7""#)
    #expect(try registry.record("s7") == nil)
    #expect(try registry.record("s7b")?.device.sender == Array("7".utf8))
    #expect(try registry.change(#"{"op":"unregister","installation":"i"}"#) == .done)
    #expect(try registry.record("s50")?.state == .gone)
  }

  @Test("A user has at most as many devices as the limit says", arguments: Backend.all)
  func userLimit(_ backend: Backend) throws {
    var limits = RegistryLimits()
    limits.devicesPerUser = 2
    let registry = try backend.open(limits)
    _ = try registry.register("t1", #""user":"u""#)
    _ = try registry.register("t2", #""user":"u""#)
    #expect(try registry.change(#"{"platform":"fcm","token":"t3","user":"u"}"#).isRefusal)
    #expect(try registry.record("t3") == nil)
    _ = try registry.register("t2", #""user":"u""#)
    #expect(try registry.user("u") == ["t1", "t2"])
  }

  @Test(
    "APNs tokens are equal in upper and lower case; tokens of two apps and two platforms are different devices",
    arguments: Backend.all)
  func identity(_ backend: Backend) throws {
    let registry = try backend.open()
    let a = try registry.change(#"{"platform":"apns","token":"ABCDEF01","environment":"sandbox"}"#)
    let b = try registry.change(#"{"platform":"apns","token":"abcdef01"}"#)
    #expect(a == b)
    #expect(try registry.change(#"{"platform":"fcm","token":"abcdef01"}"#) != a)
    let other = try registry.change(#"{"app":"com.other","platform":"apns","token":"abcdef01"}"#)
    #expect(other != a)
    guard let id = other.registration else { throw TestFailure("refused") }
    #expect(try registry.resolve(id) == nil)
    let devices = try registry.store.devices(app: TestRegistry.app, after: 0, limit: 10)
    #expect(devices.map(\.device.environment) == [.sandbox, nil])
  }

  @Test("An unknown id, or one with a wrong random half, resolves to nothing", arguments: Backend.all)
  func unknown(_ backend: Backend) throws {
    let registry = try backend.open()
    var id = try registry.register("t1")
    id[30] = id[30] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
    #expect(try registry.resolve(id) == nil)
    #expect(try registry.resolve(RegistryID.make(.registration, high: 99, low: 1)) == nil)
    #expect(try registry.resolve(Array("t1".utf8)) == nil)
  }

  @Test("Resolving 1,000 registrations of mixed kinds keeps their order", arguments: Backend.all)
  func resolvesMany(_ backend: Backend) throws {
    let registry = try backend.open()
    let changes: [RegistryChange] = (0..<999).map {
      .register(Registration(app: TestRegistry.app, platform: .fcm, token: Array("t\($0)".utf8)))
    }
    var ids: [[UInt8]] = try registry.store.apply(changes, now: 1).map { answer in
      guard let id = answer.registration else { throw TestFailure("refused") }
      return id
    }
    ids.insert(RegistryID.make(.registration, high: 5, low: 5), at: 500)
    ids.reverse()
    let resolution = try registry.store.resolve(ids, app: TestRegistry.app)
    for (index, entry) in resolution.entries.enumerated() {
      switch entry {
      case .unknown: #expect(index == 499)
      case .devices: Issue.record("no user or group was asked for")
      case .device(let at, let isCanonical):
        #expect(isCanonical)
        #expect(resolution.devices.registration(at) == ids[index])
      }
    }
  }

  @Test("Registrations of several apps are looked up together, each in its own app only", arguments: Backend.all)
  func resolvesApps(_ backend: Backend) throws {
    let registry = try backend.open()
    let apps = (0..<3).map { Array("com.example.app\($0)".utf8) }
    var asked: [LookUp] = []
    for app in apps {
      for token in ["t1", "t2"] {
        let fields = #"{"app":"\#(text(app))","platform":"fcm","token":"\#(token)","user":"u","topics":["news"]}"#
        guard let id = try registry.change(fields).registration else { throw TestFailure("refused") }
        asked.append(LookUp(app: app, registration: id))
      }
      asked.append(LookUp(app: app, registration: Array("/users/u".utf8)))
    }
    let resolution = try registry.store.resolve(asked)
    #expect(
      resolution.entries
        == (0..<3).flatMap { app -> [ResolvedRegistration] in
          [.device(2 * app, isCanonical: true), .device(2 * app + 1, isCanonical: true), .devices([2 * app, 2 * app + 1])]
        })
    let strange = asked.map { LookUp(app: $0.app == apps[0] ? apps[1] : apps[0], registration: $0.registration) }
    let others = try registry.store.resolve(strange + [LookUp(app: Array("nobody".utf8), registration: asked[0].registration)])
    for (index, entry) in others.entries.enumerated() { #expect(index % 3 == 2 && index < 9 || entry == .unknown) }
  }

  @Test("All devices of an application, and none of another, are an audience", arguments: Backend.all)
  func everybody(_ backend: Backend) throws {
    let registry = try backend.open()
    #expect(try registry.tokens(.all).isEmpty)
    #expect(try !registry.store.survey(.all, app: TestRegistry.app).exists)
    for number in 0..<8 { _ = try registry.register("t\(number)", number % 2 == 0 ? #""topics":["news"]"# : "") }
    _ = try registry.change(#"{"app":"com.example.other","platform":"fcm","token":"o1"}"#)
    try registry.mark("t3", .gone(since: 8_000))
    #expect(try registry.tokens(.all) == ["t0", "t1", "t2", "t4", "t5", "t6", "t7"])
    let survey = try registry.store.survey(.all, app: TestRegistry.app)
    #expect(survey.exists && survey.estimate == 8)
    let resolution = try registry.store.resolve([Array("/all".utf8)], app: TestRegistry.app)
    guard case .devices(let rows) = resolution.entries[0] else { throw TestFailure("no devices") }
    #expect(rows.count == 7)
  }

  @Test("Users and groups among registrations resolve to their devices, each device once", arguments: Backend.all)
  func resolvesAudiences(_ backend: Backend) throws {
    let registry = try backend.open()
    var ids: [[UInt8]] = []
    for (token, user) in [("t1", "anna"), ("t2", "anna"), ("t3", "ben")] {
      let answer = try registry.change(#"{"platform":"fcm","token":"\#(token)","user":"\#(user)"}"#)
      guard let id = answer.registration else { throw TestFailure("refused") }
      ids.append(id)
    }
    let group = #"{"op":"group_create","notification_key_name":"g","registration_ids":["fcm:t2","fcm:t3"]}"#
    guard case .notificationKey(let key, _) = try registry.change(group) else { throw TestFailure("refused") }
    let asked = [ids[2], Array("/users/anna".utf8), key, Array("/users/nobody".utf8)]
    let resolution = try registry.store.resolve(asked, app: TestRegistry.app)
    let found = resolution.entries.dropFirst().map { entry -> [[UInt8]]? in
      guard case .devices(let rows) = entry else { return nil }
      return rows.map(resolution.devices.registration)
    }
    #expect(found == [[ids[0], ids[1]], [ids[1], ids[2]], []])
    #expect(resolution.entries.first == .device(0, isCanonical: true) && resolution.devices.count == 3)
  }

  @Test(
    "A device that registers again after unregistering is back, even if the worker's clock is behind",
    arguments: Backend.all)
  func clocks(_ backend: Backend) throws {
    let registry = try backend.open()
    let id = try registry.register("t1", now: 1_000)
    #expect(try registry.change(#"{"op":"unregister","token":"fcm:t1"}"#, now: 9_000) == .done)
    #expect(try registry.register("t1", now: 5_000) == id)
    #expect(try registry.resolve(id)?.state == .active)
  }

  @Test("A token with a sender is given to an installation that has that sender already", arguments: Backend.all)
  func sendersToken(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""installation":"i","sender":"s""#)
    _ = try registry.register("t2", #""sender":"s""#)
    let taken = try registry.register("t2", #""installation":"i""#)
    #expect(try registry.resolve(taken)?.token == "t2" && registry.record("t1") == nil)
    _ = try registry.register("t3", #""installation":"j","sender":"s""#)
    _ = try registry.register("t3", #""installation":"i""#)
    let devices = try registry.store.device(.installation(Array("i".utf8)), app: TestRegistry.app)
    #expect(devices.map { text($0.device.token) } == ["t3"])
    #expect(try registry.store.device(.installation(Array("j".utf8)), app: TestRegistry.app).isEmpty)
  }

  @Test("A device that comes back counts again among its user's", arguments: Backend.all)
  func revivedDevice(_ backend: Backend) throws {
    var limits = RegistryLimits()
    limits.devicesPerUser = 2
    let registry = try backend.open(limits)
    _ = try registry.register("t1", #""user":"u""#)
    try registry.mark("t1", .gone(since: 5_000), now: 6_000)
    for token in ["t2", "t3"] { _ = try registry.register(token, #""user":"u""#, now: 7_000) }
    let back = #"{"platform":"fcm","token":"t1","user":"u"}"#
    guard case .refused(.tooManyDevices, _) = try registry.change(back, now: 8_000) else { throw TestFailure("a third device") }
    #expect(try registry.user("u") == ["t2", "t3"])
  }

  @Test(
    "A registration older than the installation's, or than its token's death, replaces nothing", arguments: Backend.all)
  func stale(_ backend: Backend) throws {
    let registry = try backend.open()
    let since = { (time: String) in #""installation":"i","registered_at":"1970-01-01T00:00:0\#(time)Z""# }
    _ = try registry.register("old", since("1"), now: 1_000)
    let new = try registry.register("new", #""installation":"i""#, now: 5_000)
    // The device may have another user by now, so the new token must be named; its registration is the answer.
    #expect(try registry.register("old", since("1") + #","user":"u""#, now: 9_000) == new)
    #expect(try registry.record("new")?.registeredAt == 5_000 && registry.record("old") == nil)
    #expect(try registry.user("u").isEmpty)
    let current = #""installation":"i","registered_at":"1970-01-01T00:00:05Z","user":"u""#
    #expect(try registry.register("new", current, now: 9_000) == new && registry.user("u") == ["new"])
    _ = try registry.register("dead", now: 1_000)
    try registry.mark("dead", .gone(since: 7_500), now: 8_000)
    #expect(try registry.register("dead", since("7"), now: 9_000) == new)
    #expect(try registry.record("dead")?.state == .gone && registry.record("new")?.state == .active)
    let next = try registry.register("old", since("6"), now: 9_000)
    #expect(try registry.record("new") == nil && registry.resolve(next)?.token == "old")
  }
}
