import Foundation
import TestSupport
import Testing

@Suite("A registry that fails under a worker", .blocking)
struct RegistryFaultTests {
  /// What must hold whatever is wrong: sends to provider tokens go on, the rest waits, nothing is lost, the reason is in the log.
  ///
  /// - Parameters:
  ///   - canRead: what needs only to be read is answered all the same.
  ///   - isLocked: only what writes fails.
  private func check(
    _ site: Site, _ reason: String, canRead: Bool, isLocked: Bool = false, begin: () throws -> Void, end: () throws -> Void
  ) throws {
    let worker = try site.startWorker()
    let registration = try #require(
      try site.change([["platform": "apns", "token": token(1_000), "topics": ["late"]]])[0]["registration"] as? String)
    try begin()
    try site.broadcast("topic", to: ["to": "/topics/all"])
    let sentence = isLocked ? "the registry can't be written to" : "the registry can't be used"
    #expect(worker.waitForOutput(sentence, seconds: 90), "\(worker.outputSoFar)")
    #expect(worker.outputSoFar.contains(reason), "\(worker.outputSoFar)")
    if canRead, !isLocked {
      // The worker connects again, and answers nothing meanwhile.
      let isUp = eventually {
        worker.outputSoFar.components(separatedBy: sentence).last?.contains("the registry is in use") == true
      }
      #expect(isUp, "\(worker.outputSoFar)")
    }
    try site.broadcast("token", to: ["to": token(2_000)])
    try site.broadcast("now", to: ["to": "/users/nobody", "time_to_live": 0])
    try site.broadcast("registration", to: ["to": registration])
    try site.askForChanges([
      ["platform": "fcm", "token": "new", "topics": ["late"]], ["op": "unsubscribe", "topic": "late", "tokens": ["fcm:new"]],
    ])
    #expect(try eventually { try site.deliveries(of: "token")[token(2_000)] == 1 }, "\(worker.outputSoFar)")
    if isLocked {
      // A worker renews its answer once a second.
      var status: [[String: Any]] = []
      #expect(
        try eventually {
          status = Site.objects(try site.run(["status", "--json", "--config", site.file("pushfleet.json5")]).output)
          return (status.last?["registry_problem"] as? String)?.hasPrefix("1 of 1 workers can't write") == true
        }, "\(status)")
      // The counter can't be set then; the push is sent nevertheless.
      let say = ["to": registration, "time_to_live": 0, "notification": ["body": "b", "badge": 7]] as [String: Any]
      try site.broadcast("number", to: say)
      #expect(try eventually { try site.deliveries(of: "number")[token(1_000)] == 1 }, "\(worker.outputSoFar)")
    }
    #expect(try eventually { try site.depths(["dead"]) == [1] })
    #expect(try site.deliveries(of: "topic").isEmpty && site.depths(["answers"]) == [0])
    try end()
    #expect(try eventually(seconds: 60) { try site.deliveries(of: "topic").count == 50 }, "\(worker.outputSoFar)")
    let answers = try site.takeAll(from: "\(site.prefix).answers", count: 2)
    #expect(answers.map { $0.json["registration"] != nil } == [true, false])
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    #expect(try site.deliveries(of: "topic").values.allSatisfy { $0 == 1 })
    #expect(try site.deliveries(of: "registration")[token(1_000)] == 1)
    let results = try site.results()
    #expect(results["topic"]! == (50, 0, 1) && results["token"]! == (1, 0, 1) && results["now"]! == (0, 1, 1))
    let dead = try site.take("dead")
    #expect(
      dead.map(\.id) == ["now"] && dead.first?.header("x-push-error") == (canRead ? "InvalidRegistration" : "Unavailable"))
  }

  private func site(_ registry: String) throws -> Site {
    let site = try Site()
    try site.startFleet(registry, settings: "fanOut: { pageSize: 10 },")
    try site.importDevices(0..<50, #""topics":["all"]"#)
    return site
  }

  @Test("locked by another program")
  func locked() throws {
    let site = try site("sqlite:registry.db")
    var holder: LockHolder?
    try check(site, "registry locked", canRead: true, isLocked: true) {
      holder = try LockHolder(site.file("registry.db"), "EXCLUSIVE")
    } end: {
      holder?.end()
    }
  }

  @Test("PostgreSQL read-only, like a standby", .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func readOnly() throws {
    let server = try #require(try Postgres.shared?.get())
    let location = try server.makeDatabase()
    let name = try server.execute("SELECT current_database()", at: location)
    try check(try site(location), "registry read-only", canRead: true) {
      try server.execute(
        """
        ALTER DATABASE \(name) SET default_transaction_read_only = on;
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'
        """)
    } end: {
      try server.execute(
        """
        ALTER DATABASE \(name) RESET default_transaction_read_only;
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'
        """)
    }
  }

  @Test(
    "PostgreSQL unreachable, every connection cut", .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func down() throws {
    let server = try #require(try Postgres.shared?.get())
    let location = try server.makeDatabase()
    let name = try server.execute("SELECT current_database()", at: location)
    try check(try site(location), "registry ", canRead: false) {
      try server.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
      try server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'")
    } end: {
      try server.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
    }
  }

  @Test("locked in the middle of a broadcast: sent pushes aren't repeated, and are counted later")
  func lockedInTheMiddle() throws {
    let site = try Site()
    let devices = 400
    try site.startFleet(
      script: ["*": ["delay_ms": 30]], options: ["--streams", "10"], settings: "fanOut: { pageSize: 20, prefetch: 2 },")
    try site.importDevices(0..<devices, #""topics":["all"]"#)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    try site.broadcast("b")
    #expect(journal.waitForLines(100, seconds: 60))
    let holder = try LockHolder(site.file("registry.db"), "IMMEDIATE")
    #expect(worker.waitForOutput("the registry can't be written to", seconds: 90))
    holder.end()
    #expect(try eventually(seconds: 60) { try site.depths(["results"]) == [1] }, "\(worker.outputSoFar)")
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries(of: "b") == Dictionary(uniqueKeysWithValues: (0..<devices).map { (token($0), 1) }))
    #expect(try site.results()["b"]! == (devices, 0, 1))
  }

  @Test("damaged: the worker says so and serves provider tokens; with the file restored, the rest follows")
  func damaged() throws {
    let site = try site("sqlite:registry.db")
    let files = FileManager.default
    let sound = try Data(contentsOf: URL(fileURLWithPath: site.file("registry.db")))
    for suffix in ["-wal", "-shm"] { try? files.removeItem(atPath: site.file("registry.db" + suffix)) }
    try Data(repeating: 0x55, count: sound.count).write(to: URL(fileURLWithPath: site.file("registry.db")))
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("the registry can't be used", seconds: 90))
    try site.broadcast("topic")
    try site.broadcast("token", to: ["to": token(2_000)])
    #expect(try eventually { try site.deliveries(of: "token").count == 1 })
    #expect(try site.deliveries(of: "topic").isEmpty && site.depths(["dead"]) == [0])
    try sound.write(to: URL(fileURLWithPath: site.file("registry.db")), options: .atomic)
    #expect(try eventually(seconds: 60) { try site.deliveries(of: "topic").count == 50 }, "\(worker.outputSoFar)")
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    #expect(try site.results()["topic"]! == (50, 0, 1))
  }
}
