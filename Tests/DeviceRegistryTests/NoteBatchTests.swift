import Foundation
import PushCore
import Reactor
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Batches of notes on both databases")
struct NoteBatchTests {
  private static let apps = ["com.example.app", "com.example.other"].map { Array($0.utf8) }

  private static func token(_ number: Int) -> BadgeCount.Device { .token(.fcm, Array("t\(number)".utf8)) }

  private static func count(
    _ message: String, _ devices: [BadgeCount.Device], _ rule: BadgeCount.Rule = .up, app: Int = 0
  ) -> BadgeCount {
    BadgeCount(app: apps[app], messageID: Array(message.utf8), rule: rule, devices: devices)
  }

  /// Twelve devices of each application; every third shares the counter of the one before it, and one has replaced its token.
  private static func register(_ store: DeviceStore) throws {
    for app in apps {
      for number in 0..<12 {
        var device = Registration(app: app, platform: .fcm, token: Array("t\(number)".utf8))
        device.installation = Array("i\(number - (number % 3 == 2 ? 1 : 0))".utf8)
        device.sender = Array("s\(number % 3)".utf8)
        _ = try #require(try store.apply([.register(device)], now: 1)[0].registration)
      }
      var replaced = Registration(app: app, platform: .fcm, token: Array("new".utf8))
      replaced.installation = Array("i0".utf8)
      replaced.sender = Array("s0".utf8)
      _ = try #require(try store.apply([.register(replaced)], now: 2)[0].registration)
    }
  }

  // MARK: by the thread

  @Test("Badges that are asked for at once share a transaction, each answered under its tag", arguments: Backend.all)
  func together(_ backend: Backend) throws {
    let registry = try backend.open()
    for index in 0..<50 { _ = try registry.register("t\(index)") }
    let (loop, recorder) = (try EventLoop(), Recorder())
    let door = try Registry(backend.place(registry.location), loop: loop, handler: recorder)
    #expect(loop.run { door.condition == .available })
    let before = try backend.writes(registry)
    for tag in 0..<100 {
      try door.submit(RegistryCall.countBadges(Self.count("m\(tag)", [Self.token(tag % 50)])).request, tag: tag)
    }
    #expect(loop.run { recorder.settled == 100 })
    #expect(recorder.answers.map(\.tag) == Array(0..<100))
    #expect(recorder.answers.map { $0.answer as? [Int64?] } == (0..<100).map { [$0 < 50 ? 1 : 2] })
    let writes = try backend.writes(registry) - before
    #expect(writes <= 10, "\(writes) transactions")
  }

  @Test(
    "Calls of one turn of the loop are submitted together, and not delayed beyond it", arguments: Backend.all)
  func oneTurn(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t0")
    let (loop, recorder) = (try EventLoop(), Recorder())
    let door = try Registry(backend.place(registry.location), loop: loop, handler: recorder)
    #expect(loop.run { door.condition == .available })
    let before = try backend.writes(registry)
    loop.schedule(after: 0) {
      for tag in 0..<100 {
        try? door.submit(RegistryCall.countBadges(Self.count("m\(tag)", [Self.token(0)])).request, tag: tag)
      }
    }
    #expect(loop.run { recorder.settled == 100 })
    #expect(recorder.answers.map { $0.answer as? [Int64?] } == (1...100).map { [$0] })
    #expect(try backend.writes(registry) - before == 1)
  }

  @Test("A value that the database refuses affects only its own note, and nothing is stored twice", arguments: Backend.all)
  func refused(_ backend: Backend) throws {
    let registry = try backend.open()
    for index in 0..<4 { _ = try registry.register("t\(index)") }
    try backend.refuseBadge(13, registry)
    let (loop, recorder) = (try EventLoop(), Recorder())
    let door = try Registry(backend.place(registry.location), loop: loop, handler: recorder)
    #expect(loop.run { door.condition == .available })
    loop.schedule(after: 0) {
      for (tag, rule) in [BadgeCount.Rule.up, .set(13), .up, .set(7)].enumerated() {
        try? door.submit(RegistryCall.countBadges(Self.count("m\(tag)", [Self.token(tag % 2)], rule)).request, tag: tag)
      }
      try? door.submit(RegistryCall.keepMessage(Array("m".utf8)).request, tag: 4)
    }
    #expect(loop.run { recorder.settled == 5 })
    #expect(recorder.failures.map(\.tag) == [1])
    guard case .refused = try #require(recorder.failures.first?.error) else { throw TestFailure("another error") }
    #expect(recorder.answers.map(\.tag) == [0, 2, 3, 4])
    #expect(recorder.answers.prefix(3).map { $0.answer as? [Int64?] } == [[1], [2], [7]])
    #expect(recorder.conditions == [nil] && recorder.writes.isEmpty)
  }

  @Test("Nothing is answered or counted before it is stored: a batch that can't be stored fails as a whole")
  func locked() throws {
    let registry = try Backend.sqlite.open()
    _ = try registry.register("t0")
    let (loop, recorder) = (try EventLoop(), Recorder())
    var options = RegistryOptions()
    options.store.lockTimeout = 50
    options.store.statementTimeout = 50
    let door = try Registry(.sqlite(path: registry.location), loop: loop, handler: recorder, options: options)
    #expect(loop.run { door.condition == .available })
    let other = try SQLiteConnection(path: registry.location, create: false, busyTimeout: 0)
    try other.execute("BEGIN IMMEDIATE")
    loop.schedule(after: 0) {
      for tag in 0..<20 {
        try? door.submit(RegistryCall.countBadges(Self.count("m\(tag)", [Self.token(0)])).request, tag: tag)
      }
      // Needs no write.
      try? door.submit(RegistryCall.countBadges(Self.count("look", [Self.token(0)], .look)).request, tag: 20)
    }
    #expect(loop.run { recorder.settled == 21 })
    #expect(recorder.failures.map(\.tag) == Array(0..<20) && recorder.answers.map { $0.answer as? [Int64?] } == [[1]])
    #expect(recorder.writes.map(\.kind) == [.notes])
    try other.execute("COMMIT")
    #expect(try registry.store.countBadges(Self.count("m0", [Self.token(0)]), now: 1) == [1])
  }

  // MARK: by the store

  @Test("A batch answers and stores the same as its notes one by one", arguments: Backend.all, [1, 2, 3] as [UInt64])
  func model(_ backend: Backend, _ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let (together, alone) = (try backend.open(), try backend.open())
    for registry in [together, alone] { try Self.register(registry.store) }
    var names: [Data: Data] = [:]
    for round in 0..<12 {
      let now = Int64(round * 100)
      let batch = (0..<Int.random(in: 1...40, using: &random)).map {
        (note: Self.note(using: &random, now), now: now + Int64($0 % 3))
      }
      let answers = try together.store.note(batch).answers
      let expected = try batch.map { try alone.store.note($0.note, now: $0.now) }
      for (index, (answer, expected)) in zip(answers, expected).enumerated() {
        guard case .page(let name?) = answer, case .page(let other?) = expected else {
          #expect(answer == expected, "seed \(seed), round \(round): \(batch[index])")
          continue
        }
        // Names are random, but the same two always belong together.
        #expect(names.updateValue(Data(other), forKey: Data(name)) ?? Data(other) == Data(other))
      }
      for registry in [together, alone] {
        var reads = SeededGenerator(seed: seed &+ UInt64(round))
        let said = (0..<5).map { _ in
          Acknowledgement(
            app: Self.apps[Int.random(in: 0...1, using: &reads)],
            device: .token(.fcm, Array("t\(Int.random(in: 0..<12, using: &reads))".utf8)),
            operation: .read(.id(Array("m\(Int.random(in: 0..<30, using: &reads))".utf8)), .keep), at: now)
        }
        _ = try registry.store.acknowledge(said, wantsReceipts: false, now: now)
      }
    }
    for app in Self.apps.indices {
      let everyone = Self.count("look", (0..<12).map(Self.token), .look, app: app)
      #expect(try together.store.countBadges(everyone, now: 1) == alone.store.countBadges(everyone, now: 1))
    }
  }

  private static func note(using random: inout SeededGenerator, _ now: Int64) -> Note {
    let name = [UInt8](repeating: UInt8.random(in: 0..<4, using: &random), count: 32)
    switch Int.random(in: 0..<16, using: &random) {
    case 0: return .message(Array("m\(Int.random(in: 0..<30, using: &random))".utf8))
    case 1:
      return .page(
        ContentPage(digest: name, app: [1], content: name, keep: Int64.random(in: 100...1_000, using: &random), most: 1_000))
    case 2, 3:
      return .claim(
        name: name, message: name, body: [UInt8.random(in: 0..<2, using: &random)],
        until: now + Int64.random(in: 1...300, using: &random))
    case 4, 5:
      let state = [GatewayRequest.State?.none, .again, .accepted, .result([1])].randomElement(using: &random) ?? nil
      return .settle(
        name: name, state, until: now + Int64.random(in: 1...300, using: &random), isLate: Bool.random(using: &random))
    default:
      let devices = (0..<Int.random(in: 1...4, using: &random)).map { _ -> BadgeCount.Device in
        switch Int.random(in: 0..<8, using: &random) {
        case 0: .number(Int64.random(in: 1...26, using: &random))
        case 1: .token(.apns, Array("t1".utf8))
        default: token(Int.random(in: 0..<14, using: &random))
        }
      }
      let rule =
        [BadgeCount.Rule.up, .up, .set(Int64.random(in: 0...9, using: &random)), .look].randomElement(using: &random) ?? .up
      let message = "m\(Int.random(in: 0..<30, using: &random))"
      let app = Int.random(in: 0..<20, using: &random) == 0 ? Array("unknown".utf8) : apps.randomElement(using: &random) ?? []
      return .badges(BadgeCount(app: app, messageID: Array(message.utf8), rule: rule, devices: devices))
    }
  }

  @Test(
    "Without anything to write, nothing is locked: unknown tokens, known requests and pages",
    arguments: Backend.all)
  func lookOnly(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t0")
    let (name, page) = (
      [UInt8](repeating: 1, count: 32), ContentPage(digest: [1], app: [1], content: [2], keep: 1_000, most: 10)
    )
    #expect(try registry.store.claimRequest(name, body: [1], until: 1_000, now: 1) == nil)
    let kept = try registry.store.keepPage(page, now: 1)
    let lock = try backend.lockNotes(registry)
    defer { lock.rollback() }
    let (answers, hasWritten) = try registry.store.note([
      (.badges(Self.count("m", [.token(.fcm, Array("nobody".utf8))], .set(2))), 1),
      (.claim(name: name, message: [], body: [1], until: 1_000), 2),
      (.page(page), 2), (.badges(Self.count("m", [Self.token(0)], .look)), 1),
    ])
    #expect(
      !hasWritten
        && answers == [.badges([nil]), .claim(GatewayRequest(body: [1], state: .underWay)), .page(kept), .badges([1])])
  }

  @Test("On PostgreSQL badge counts only wait for those of the same application", .enabled(if: Postgres.shared != nil))
  func byApplication() throws {
    let registry = try Backend.postgres.open()
    try Self.register(registry.store)
    var options = StoreOptions()
    options.lockTimeout = 50
    let other = try DeviceStore(location: registry.location, options: options)
    let (app, session) = (try #require(try other.knownApp(Self.apps[0])), registry.store.session)
    try session.begin(.notes(of: [app]))
    #expect(try other.countBadges(Self.count("m", [Self.token(1)], app: 1), now: 1) == [1])
    #expect(throws: RegistryError.self) { try other.countBadges(Self.count("m", [Self.token(1)]), now: 1) }
    // The removal of old notes locks all of them.
    #expect(throws: RegistryError.self) { try other.purge(.notes, before: 1, limit: 1) }
    try session.commit()
    #expect(try other.countBadges(Self.count("m", [Self.token(1)]), now: 1) == [1])
  }

  @Test(
    "Several workers and gateways with concurrent batches count each message once, without deadlock", arguments: Backend.all)
  func concurrent(_ backend: Backend) throws {
    let registry = try backend.open()
    try Self.register(registry.store)
    let failures = Collected<String>()
    let location = registry.location
    DispatchQueue.concurrentPerform(iterations: 4) { worker in
      do {
        let store = try backend.connect(location)
        var random = SeededGenerator(seed: UInt64(worker))
        for round in 0..<20 {
          var notes: [(note: Note, now: Int64)] = []
          // All count the same messages, each in its own order.
          for message in (0..<10).shuffled(using: &random) {
            let app = message % 2
            notes.append((.badges(Self.count("m\(round)-\(message)", [Self.token(1), Self.token(4)], app: app)), 1))
            notes.append((.message(Array("m\(round)-\(message)".utf8)), 1))
            notes.append(
              (.page(ContentPage(digest: [UInt8(message), UInt8(round)], app: [1], content: [1], keep: 100, most: 1_000)), 1))
            let name = [UInt8](repeating: UInt8(message), count: 32)
            notes.append((.claim(name: name, message: [], body: name, until: 1_000), 1))
            notes.append((.settle(name: name, .again, until: 1_000), 1))
          }
          _ = try store.note(notes)
          if round % 5 == worker { _ = try store.purge(.notes, before: 0, limit: 10) }
        }
      } catch { failures.add("\(error)") }
    }
    #expect(failures.all == [])
    for app in Self.apps.indices {
      #expect(
        try registry.store.countBadges(Self.count("look", [Self.token(1), Self.token(4)], .look, app: app), now: 1) == [
          101, 101,
        ])
    }
  }
}

extension Backend {
  func place(_ location: String) -> RegistryLocation {
    switch self {
    case .sqlite: .sqlite(path: location)
    case .postgres: .postgres(location)
    }
  }

  /// The number of transactions that have stored notes: by the log's commit frames (sqlite.org/fileformat2.html#walformat), or
  /// by the rows' transaction ids.
  func writes(_ registry: TestRegistry) throws -> Int {
    switch self {
    case .sqlite:
      let log = [UInt8](try Data(contentsOf: URL(fileURLWithPath: registry.location + "-wal")))
      return stride(from: 32, to: log.count - 24, by: 24 + 4_096).count { log[$0 + 4..<$0 + 8] != [0, 0, 0, 0] }
    case .postgres:
      return Int(try #require(try registry.store.session.firstInt(Self.writers, [])))
    }
  }

  private static let writers = Statement("SELECT count(DISTINCT xmin::text) FROM notes")

  /// Makes the database refuse notes with this badge.
  func refuseBadge(_ badge: Int, _ registry: TestRegistry) throws {
    switch self {
    case .sqlite:
      try #require(registry.store.session as? SQLiteConnection).execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON notes WHEN NEW.badge = \(badge) BEGIN SELECT RAISE(ABORT, 'refused'); END")
    case .postgres:
      try #require(registry.store.session as? PostgresConnection).execute("ALTER TABLE notes ADD CHECK (badge <> \(badge))")
    }
  }

  /// Locks the notes until it is rolled back.
  func lockNotes(_ registry: TestRegistry) throws -> any SQLSession {
    switch self {
    case .sqlite:
      let session = try SQLiteConnection(path: registry.location, create: false, busyTimeout: 0)
      try session.begin(.allNotes)
      return session
    case .postgres:
      let session = try PostgresConnection(location: registry.location, options: StoreOptions())
      try session.begin(.allNotes)
      return session
    }
  }
}
