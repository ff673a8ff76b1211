import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Import and export on both databases")
struct BulkTests {
  /// Imports a text in portions of so many bytes.
  private func load(
    _ text: String, _ format: BulkFormat, into registry: TestRegistry, step: Int = 1 << 20
  ) throws -> (BulkCount, [BulkRefusal]) {
    var refused: [BulkRefusal] = []
    let bulk = BulkImport(
      into: registry.store, format: format, apps: [TestRegistry.app], defaultApp: TestRegistry.app, now: 7_000,
      limits: registry.limits, keepsRows: true
    ) { refused.append($0) }
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: step) {
      try bulk.feed(Array(bytes[start..<min(start + step, bytes.count)]))
    }
    try bulk.finish()
    return (bulk.count, refused)
  }

  @Test("A row of an unknown application is refused alone", arguments: [BulkFormat.csv, .ndjson])
  func unknownApp(_ format: BulkFormat) throws {
    let registry = try Backend.sqlite.open()
    let text =
      format == .csv
      ? "app,platform,token\ncom.example.app,fcm,t1\ncom.nobody,fcm,t2\n,fcm,t3\n"
      : #"{"platform":"fcm","token":"t1"}"# + "\n" + #"{"app":"com.nobody","platform":"fcm","token":"t2"}"# + "\n"
        + #"{"platform":"fcm","token":"t3"}"#
    let (count, rows) = try load(text, format, into: registry)
    #expect(count.stored == 2 && count.refused == 1)
    #expect(rows.map(\.line) == [format == .csv ? 3 : 2] && rows[0].reason.contains("app"))
    #expect(try registry.store.devices(app: nil, after: 0, limit: 9).count == 2)
  }

  @Test("Refused rows are given back unchanged, in any portions of input", arguments: [1, 3, 1 << 20])
  func refusedRows(step: Int) throws {
    let registry = try Backend.sqlite.open()
    let bad = ["fcm,bad token,\"a \"\"b\"\"\r\nc\"", "xx,t2,", "fcm,t3,\"closed\" badly", "fcm,t4", "fcm,t5,\"never closed"]
    let text = "platform,token,name\r\nfcm,t0,\r\n" + bad[..<4].map { $0 + "\r\nfcm,t1,\n" }.joined() + bad[4]
    let (count, rows) = try load(text, .csv, into: registry, step: step)
    #expect(rows.map { String(decoding: $0.row, as: UTF8.self) } == bad && count.refused == 5 && count.stored == 5)
    let (_, lines) = try load("{}\n{\"platform\":1}\r\nx", .ndjson, into: registry, step: step)
    #expect(lines.map { String(decoding: $0.row, as: UTF8.self) } == ["{}", "{\"platform\":1}", "x"])
  }

  private static let csv = """
    platform,token,user,name,locale,topics,installation\r
    fcm,t1,u1,"Ann ""the"" first, of many",ko_KR,news|sport,i1\r
    fcm,t2,u1,,"ja
    ",,\r
    fcm,bad token,u2,,,,
    fcm,t3,,,,,
    fcm,t4,u4,B\u{0001},,news,
    apns,abc,,,,,

    apns,ABCD,,雑談,,a b,
    apns,ABCD,,,,news,
    fcm,t5,u5,"closed" badly,,,
    fcm,t6
    fcm,t7,u7,last,,,i7
    """

  @Test(
    "Rows of CSV are stored; a bad one is reported with its line and affects no other", arguments: Backend.all, [1, 7, 1 << 20])
  func csv(_ backend: Backend, _ step: Int) throws {
    let registry = try backend.open()
    let (count, rows) = try load(Self.csv, .csv, into: registry, step: step)
    #expect(rows.map(\.line) == [3, 5, 7, 8, 10, 12, 13])
    #expect(
      rows.map(\.error) == [
        .invalidParameters, .invalidRegistration, .invalidParameters, .invalidRegistration, .invalidParameters,
        .invalidParameters, .invalidParameters,
      ])
    #expect(!rows.contains { $0.reason.contains("bad token") })
    #expect(count.rows == 11 && count.stored == 4 && count.refused == 7 && count.bytes == Self.csv.utf8.count)
    let devices = try registry.store.devices(app: nil, after: 0, limit: 50)
    #expect(devices.map { text($0.device.token) } == ["t1", "t3", "abcd", "t7"])
    #expect(devices[0].device.name == Array("Ann \"the\" first, of many".utf8))
    #expect(devices[0].device.locale == Array("ko_KR".utf8))
    #expect(devices[0].registeredAt == 7_000)
    #expect(try registry.topic("news") == ["t1", "abcd"])
    #expect(try registry.user("u1") == ["t1"])
  }

  @Test(
    "An invalid header is refused before anything is stored",
    arguments: ["", "platform,tokken\n", "platform\nfcm\n", "platform,token,token\n", "\"platform\n", "platform,token,op\n"])
  func header(_ text: String) throws {
    let registry = try Backend.sqlite.open()
    #expect(throws: BulkError.self) { try load(text, .csv, into: registry) }
    #expect(try registry.store.devices(app: nil, after: 0, limit: 1).isEmpty)
  }

  @Test("Lines of NDJSON are any changes, in order", arguments: Backend.all, [1, 1 << 20])
  func ndjson(_ backend: Backend, _ step: Int) throws {
    let registry = try backend.open()
    let (count, rows) = try load(
      """
      {"platform":"fcm","token":"t1"}
      {"op":"subscribe","topic":"news","tokens":["t1","t2"]}

      {"op":"register","platform":"fcm","token":"t2","topics":["news"]}\r
      {"platform":"fcm"
      {"op":"unregister","token":"t1"}
      {"op":"fly"}
      """, .ndjson, into: registry, step: step)
    #expect(rows.map(\.line).sorted() == [2, 5, 7])
    #expect(rows.first { $0.line == 2 }?.reason == "tokens[1]: NOT_FOUND")
    #expect(count.stored == 3 && count.rows == 6 && count.refused == 3)
    #expect(try registry.topic("news") == ["t2"])
  }

  @Test("An export and import gives the same registry", arguments: Backend.all, BulkFormat.allCases)
  func roundTrip(_ backend: Backend, _ format: BulkFormat) throws {
    let registry = try backend.open()
    for index in 0..<1_100 {
      var device = Registration(
        app: TestRegistry.app, platform: index % 2 == 0 ? .apns : .fcm, token: Array("00\(1000 + index)".utf8))
      if index % 3 == 0 { device.user = Array("user\(index % 50)".utf8) }
      if index % 6 == 0 { device.name = Array("Name \"\(index % 50)\", 雑談".utf8) }
      if index % 5 == 0 { device.installation = Array("inst,\(index)".utf8) }
      if index % 7 == 0 { device.sender = Array("sender\(index % 2)".utf8) }
      if index % 4 == 0 { device.environment = .sandbox }
      if index % 9 == 0 { device.topics = [Array("a".utf8), Array("b%\(index % 10)".utf8)] }
      device.locale = Array("ja_JP".utf8)
      device.timeZone = Array("Asia/Tokyo".utf8)
      device.appVersion = Array("1.0 (\(index))".utf8)
      if index % 10 == 9 {
        device.platform = .webpush
        device.token = try token("\(index)", keyID: index % 20 == 9 ? 0 : UInt8(index % 7))
      }
      #expect(try registry.store.apply([.register(device)], now: 1)[0].isRefusal == false)
    }
    _ = try registry.change(#"{"op":"unregister","token":"fcm:001001"}"#)
    var exported: [UInt8] = []
    let export = BulkExport(from: registry.store, format: format, app: nil, withTimes: true)
    while let bytes = try export.next() { exported += bytes }
    #expect(export.exported == 1_099)

    let copy = try backend.open()
    let (count, rows) = try load(text(exported), format, into: copy)
    #expect(rows.isEmpty && count.stored == 1_099)
    let before = try registry.store.devices(app: nil, after: 0, limit: 5_000).filter { $0.state != .gone }.map(\.device)
    let after = try copy.store.devices(app: nil, after: 0, limit: 5_000).map(\.device)
    #expect(before.count == after.count)
    for (old, new) in zip(before, after) { #expect(old == new) }
  }

  private func token(_ name: String, key: String = Subscriptions.key, keyID: UInt8) throws -> [UInt8] {
    let document = try JSONDocument(Array(Subscriptions.object(name, key: key).utf8))
    return try WebPushSubscription(document, document.root).token(keyID: [UInt8](repeating: keyID, count: 8))
  }

  @Test("Columns of a subscription are a device, with the rules of the application")
  func subscriptionColumns() throws {
    let registry = try Backend.sqlite.open()
    let key = Subscriptions.key
    let file = """
      platform,token,endpoint,p256dh,auth,application_server_key
      webpush,,https://push.example/a,\(key),\(Subscriptions.auth),
      webpush,,https://push.example/b,\(key),\(Subscriptions.auth)==,0102030405060708
      webpush,,https://other.example/c,\(key),\(Subscriptions.auth),
      webpush,,https://push.example/d,\(key),,
      webpush,,https://push.example/e,AAAA,\(Subscriptions.auth),
      webpush,,,,,
      fcm,t1,https://push.example/f,\(key),\(Subscriptions.auth),
      fcm,t2,,,,
      """
    var refused: [BulkRefusal] = []
    let rules = SubscriptionRules(keyID: [UInt8](repeating: 9, count: 8)) { $0.host == "push.example" }
    let bulk = BulkImport(
      into: registry.store, format: .csv, apps: [TestRegistry.app], defaultApp: TestRegistry.app, now: 7_000,
      rules: { _, _ in rules }
    ) { refused.append($0) }
    try bulk.feed(Array(file.utf8))
    try bulk.finish()
    #expect(
      refused.map(\.reason) == [
        "subscription.endpoint: its host or port isn't allowed by the application's webpush.hosts", "auth: missing",
        "p256dh: no point of P-256, expected 65 bytes in Base64, the first of them 4", "subscription: missing",
        "endpoint: only for webpush",
      ])
    let devices = try registry.subscriptions().map(\.device)
    #expect(devices.map(\.keyID) == [[UInt8](repeating: 9, count: 8), [1, 2, 3, 4, 5, 6, 7, 8], nil])
    #expect(throws: BulkError.self) { try load("platform,p256dh,auth\n", .csv, into: registry) }
  }

  @Test(
    "A bulk load of subscriptions gives the same registry and the same answers as single registrations (seeded)",
    arguments: 0..<4 as Range<UInt64>)
  func loadsSubscriptionsAlike(_ seed: UInt64) throws {
    let one = try Backend.sqlite.open()
    let others = try Backend.all.map { try $0.open() }
    var generator = SeededGenerator(seed: seed)
    for round in 0..<5 {
      let portion: [Registration] = try (0..<40).map { _ in
        let name = "\(Int.random(in: 0..<60, using: &generator))"
        let key = Int.random(in: 0..<6, using: &generator) == 0 ? Subscriptions.otherKey : Subscriptions.key
        let keyID = Int.random(in: 0..<4, using: &generator) == 0 ? UInt8(1) : 0
        var device = Registration(app: TestRegistry.app, platform: .webpush, token: try token(name, key: key, keyID: keyID))
        if Bool.random(using: &generator) { device.installation = Array("i\(Int.random(in: 0..<25, using: &generator))".utf8) }
        let rules = SubscriptionRules(keyID: [UInt8](repeating: UInt8(2 + round), count: 8)) { _ in true }
        guard case .register(let registration) = try RegistryChange.register(device).following({ _, _ in rules }).get() else {
          throw TestFailure("another change")
        }
        return registration
      }
      let expected = try portion.map { try one.store.apply([.register($0)], now: Int64(round))[0] }
      for other in others {
        let found = try other.store.load(portion, now: Int64(round))
        #expect(found.map(\.isRefusal) == expected.map(\.isRefusal), "seed \(seed), \(other.backend)")
      }
    }
    func state(_ registry: TestRegistry) throws -> [String] {
      try registry.subscriptions().map { "\($0.device) \($0.state)" }.sorted()
    }
    for other in others { #expect(try state(other) == state(one), "seed \(seed), \(other.backend)") }
  }

  @Test(
    "A bulk load gives the same registry and the same answers as single registrations (seeded)",
    arguments: 0..<6 as Range<UInt64>)
  func loadsAlike(_ seed: UInt64) throws {
    var limits = RegistryLimits()
    limits.devicesPerUser = 4
    limits.topicsPerDevice = 3
    limits.sendersPerInstallation = 2
    let backends = Backend.all
    let one = try Backend.sqlite.open(limits)
    let others = try backends.map { try $0.open(limits) }
    var generator = SeededGenerator(seed: seed)
    for round in 0..<6 {
      let portion: [Registration] = (0..<40).map { _ in
        var device = Registration(
          app: TestRegistry.app, platform: .fcm, token: Array("t\(Int.random(in: 0..<60, using: &generator))".utf8))
        if Bool.random(using: &generator) { device.installation = Array("i\(Int.random(in: 0..<25, using: &generator))".utf8) }
        if Int.random(in: 0..<4, using: &generator) == 0 {
          device.sender = Array("s\(Int.random(in: 0..<3, using: &generator))".utf8)
        }
        if Bool.random(using: &generator) {
          device.user = Array("u\(Int.random(in: 0..<8, using: &generator))".utf8)
          if Bool.random(using: &generator) { device.name = Array("n\(Int.random(in: 0..<9, using: &generator))".utf8) }
        }
        if Bool.random(using: &generator) { device.locale = Array("l\(Int.random(in: 0..<9, using: &generator))".utf8) }
        if Int.random(in: 0..<4, using: &generator) == 0 { device.registeredAt = Int64.random(in: 0..<9, using: &generator) }
        if Int.random(in: 0..<3, using: &generator) == 0 {
          device.topics = Array(Set((0..<2).map { _ in Int.random(in: 0..<5, using: &generator) })).sorted().map {
            Array("topic\($0)".utf8)
          }
        }
        return device
      }
      let expected = try portion.map { try one.store.apply([.register($0)], now: Int64(round))[0] }
      #expect(!expected.contains { text($0.json).contains("constraint") }, "seed \(seed): \(expected.map { text($0.json) })")
      // Some are gone before the next round, at a time that may be after a later row's.
      let lost = (0..<8).map { _ in "t\(Int.random(in: 0..<60, using: &generator))" }
      for other in others {
        let found = try other.store.load(portion, now: Int64(round))
        #expect(found.map(\.isRefusal) == expected.map(\.isRefusal), "seed \(seed), \(other.backend)")
      }
      for registry in [one] + others {
        for token in lost { try registry.mark(token, .gone(since: 100), now: Int64(round) + 2) }
      }
    }
    func state(_ registry: TestRegistry) throws -> [String] {
      try registry.store.devices(app: nil, after: 0, limit: 5_000).map { "\($0.device) \($0.state) \($0.reason ?? [])" }
        .sorted()
    }
    for other in others { #expect(try state(other) == state(one), "seed \(seed), \(other.backend)") }
  }

  @Test("Long rows are stored before the input ends", arguments: BulkFormat.allCases)
  func longPortions(_ format: BulkFormat) throws {
    let registry = try Backend.sqlite.open()
    let load = BulkImport(
      into: registry.store, format: format, apps: [TestRegistry.app], defaultApp: TestRegistry.app, now: 7_000
    ) { Issue.record("\($0.reason)") }
    load.portionBytes = 100
    if format == .csv { try load.feed(Array("platform,token\n".utf8)) }
    for number in 1...5 {
      let row = format == .csv ? "fcm,the-token-number-\(number)\n" : #"{"platform":"fcm","token":"\#(number)"}"# + "\n"
      try load.feed(Array(row.utf8))
    }
    #expect(load.count.stored == 4)
    try load.finish()
    #expect(load.count.stored == 5)
  }

  @Test("A bulk load revives devices that ended after it began, as single registrations do", arguments: Backend.all)
  func revives(_ backend: Backend) throws {
    let registry = try backend.open()
    let portion = (0..<40).map { Registration(app: TestRegistry.app, platform: .fcm, token: Array("t\($0)".utf8)) }
    _ = try registry.store.load(portion, now: 1_000)
    _ = try registry.change(#"{"op":"unregister","token":"fcm:t7"}"#, now: 9_000)
    _ = try registry.store.load(portion, now: 5_000)
    #expect(try registry.record("t7")?.state == .active)
  }

  @Test("A device with the maximum number and length of topics is accepted; one beyond that is reported")
  func longRows() throws {
    let registry = try Backend.sqlite.open()
    let topics = (0..<2_000).map { "\($0)" + String(repeating: "t", count: 890) }
    _ = try registry.register("t1", #""topics":[\#(topics.map { "\"\($0)\"" }.joined(separator: ","))]"#)
    var exported: [UInt8] = []
    let export = BulkExport(from: registry.store, format: .csv, app: nil)
    while let bytes = try export.next() { exported += bytes }
    let copy = try Backend.sqlite.open()
    #expect(try load(text(exported), .csv, into: copy).0.stored == 1)
    #expect(try copy.record("t1")?.device.topics.count == 2_000)
    let (count, rows) = try load(
      "platform,token\nfcm,\(String(repeating: "t", count: 9 << 20))\nfcm,t2\n", .csv, into: copy)
    #expect(count.stored == 1 && rows.map(\.line) == [2])
    #expect(rows.first?.reason == "the row is longer than 4194304 bytes")
  }

  @Test(
    "A device that was dead before its import is found later, and stays gone when the file is imported again",
    arguments: Backend.all)
  func registeredBefore(_ backend: Backend) throws {
    let registry = try backend.open()
    let file = "platform,token,registered_at\nfcm,t1,1970-01-01T00:00:02.5Z\nfcm,t2,\nfcm,t3,1970-01-01T01:00:09+01:00\n"
    _ = try load(file, .csv, into: registry)
    #expect(try ["t1", "t2", "t3"].map { try registry.record($0)?.registeredAt } == [2_500, 7_000, 7_000])
    for token in ["t1", "t2"] { try registry.mark(token, .gone(since: 5_000), now: 6_000) }
    #expect(try ["t1", "t2"].map { try registry.record($0)?.state } == [.gone, .active])
    _ = try load(file, .csv, into: registry)
    #expect(try ["t1", "t2"].map { try registry.record($0)?.state } == [.gone, .active])
    _ = try registry.register("t1", now: 8_000)
    #expect(try registry.record("t1")?.state == .active && registry.record("t1")?.registeredAt == 8_000)
    // An older time doesn't make a registration older.
    _ = try load(file, .csv, into: registry)
    #expect(try registry.record("t1")?.registeredAt == 8_000)
  }
}
