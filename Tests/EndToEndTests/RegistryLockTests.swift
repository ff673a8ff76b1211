import Foundation
import TestSupport
import Testing

@Suite("Writers that wait for a lock of the registry", .blocking)
struct RegistryLockTests {
  @Test(
    "While another process holds the lock for writers, a dead token and a change wait for it, and no registration does",
    .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func lookUpsGoOn() throws {
    let server = try #require(try Postgres.shared?.get())
    let location = try server.makeDatabase()
    let site = try Site()
    let dead = token(7_000)
    try site.startFleet(location, script: [dead: ["status": 410, "reason": "Unregistered", "timestamp": 9_999_999_999_999]])
    let worker = try site.startWorker()
    let live = (0..<40).map { token($0) }
    let answers = try site.change((live + [dead]).map { ["platform": "apns", "token": $0] })
    let registrations = answers.compactMap { $0["registration"] as? String }
    #expect(registrations.count == live.count + 1)

    let end = try hold(location, site)
    defer { end() }

    try site.askForChanges([["platform": "fcm", "token": "late"]])
    try site.broadcast("dead", to: ["to": registrations[live.count]])
    #expect(worker.waitForOutput("the registry can't be written to", seconds: 90), "\(worker.outputSoFar)")
    for (number, registration) in registrations.prefix(live.count).enumerated() {
      try site.broadcast("live\(number)", to: ["to": registration])
    }
    #expect(try eventually { try live.allSatisfy { try site.deliveries()[$0] == 1 } }, "\(worker.outputSoFar)")
    // The mark needs none of these locks.
    let state = "SELECT state FROM pushfleet.devices WHERE token IN (decode('\(dead)', 'hex'), '\(dead)'::bytea)"
    #expect(try eventually { try server.execute(state, at: location) == "2" })
    #expect(try site.depths(["retry.200ms", "retry.1s", "answers"]) == [0, 0, 0])
    end()
    #expect(try site.takeAll(from: "\(site.prefix).answers", count: 1).first?.json["registration"] != nil)
    #expect(worker.waitForOutput("the registry can be written to again", seconds: 90))
    #expect(!worker.outputSoFar.contains("the registry can't be used"))
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  /// Holds the lock for writers of devices until the answer is called.
  private func hold(_ location: String, _ site: Site) throws -> () -> Void {
    guard location.hasPrefix("postgres"), let server = try Postgres.shared?.get() else {
      return try LockHolder(site.file("registry.db"), "IMMEDIATE").end
    }
    let input = Pipe()
    let holder = try ChildProcess(
      ["/bin/sh", "-c", "/usr/lib/postgresql/*/bin/psql -XAtq -d '\(location)'"], output: "/dev/null",
      input: input.fileHandleForReading)
    input.fileHandleForWriting.write(Data("BEGIN; SELECT pg_advisory_xact_lock(1885760628, 1);\n".utf8))
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 1"
    #expect(try eventually { try server.execute(held, at: location) != "0" })
    return {
      try? input.fileHandleForWriting.close()
      holder.wait()
    }
  }

  @Test(
    "An import that waits for a lock says so once, ends on a signal, and goes on when the lock is gone",
    arguments: Postgres.shared == nil ? [false] : [false, true])
  func importWaits(onPostgres: Bool) throws {
    let site = try Site()
    let location =
      onPostgres ? try #require(try Postgres.shared?.get()).makeDatabase() : "sqlite:\(site.file("registry.db"))"
    try site.write(
      "{ broker: \"\(site.brokerURI)\", prefix: \"\(site.prefix)\", registry: \"\(location)\", "
        + "apps: { \"\(Site.app)\": { apns: { key: \"k.p8\", keyID: \"ABC123DEFG\", teamID: \"DEF123GHIJ\" } } } }",
      to: "pushfleet.json5")
    func start(_ numbers: Range<Int>) throws -> ChildProcess {
      let file = try site.write((["token,platform"] + numbers.map { "\(token($0)),apns" }).joined(separator: "\n"), to: "d.csv")
      return try site.start(["devices", "import", "--config", site.file("pushfleet.json5"), file])
    }
    #expect(try start(0..<1).wait() == 0)
    let end = try hold(location, site)
    defer { end() }
    let interrupted = try start(1..<2)
    let waits = "pushfleet: the registry is locked by another process; waiting"
    #expect(interrupted.waitForOutput(waits, seconds: 90), "\(interrupted.outputSoFar)")
    interrupted.signal(2)
    #expect(interrupted.wait() == 130 && interrupted.outputSoFar.contains("interrupted in "), "\(interrupted.outputSoFar)")

    let patient = try start(2..<15_002)
    #expect(patient.waitForOutput(waits, seconds: 90), "\(patient.outputSoFar)")
    end()
    #expect(patient.wait() == 0 && patient.outputSoFar.contains("15000 of 15000 rows stored"), "\(patient.outputSoFar)")
    #expect(patient.outputSoFar.split(separator: "\n").count { $0 == waits } == 1)
  }
}
