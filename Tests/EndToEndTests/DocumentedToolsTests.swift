import Foundation
import TestSupport
import Testing

/// Runs the documents' lines for other programs, line by line.
@Suite("The documents' use of openssl, sqlite3 and PostgreSQL", .blocking)
struct DocumentedToolsTests {
  /// Runs unchanged lines in the site's folder.
  private static func run(_ lines: String, in site: Site, _ environment: [String: String] = [:]) throws {
    let log = site.file("tool-\(UUID().uuidString)")
    let child = try ChildProcess(
      ["/bin/bash", "-c", "set -euo pipefail; cd '\(site.folder.path)'\n" + lines],
      environment: ["PATH": "/usr/bin:/bin"].merging(environment) { $1 }, output: log)
    let status = child.wait()
    #expect(status == 0, "\(lines)\n\((try? String(contentsOfFile: log, encoding: .utf8)) ?? "")")
  }

  @Test("a certificate made as in docs/send/gateway-apns.md lets an old sender in, for its application")
  func certificates() throws {
    let block = try #require(try DocumentTests.blocks("sh", in: "docs/send/gateway-apns.md").first)
    let site = try Site()
    for (from, to) in [("ca.pem", "clients-ca.pem"), ("ca.key", "clients-ca.key")] {
      try FileManager.default.copyItem(atPath: site.certificates.path(from), toPath: site.file(to))
    }
    let door = try OldDoor(site)
    let identity = ["--certificate", site.file("sender.pem"), "--key", site.file("sender.key")]
    try Self.run(block, in: site)
    #expect(try door.send([OldDoor.hello(1, token(1))], ["--wait", "0.2"], identity: identity) == ["silent": 1])
    #expect(try eventually { try site.depths(["send.high"]) == [1] })
    try Self.run(block.replacing("UID=com.example.app", with: "UID=com.example.other"), in: site)
    #expect(try door.send([OldDoor.hello(2, token(2))], identity: identity) == ["status": 3, "identifier": 2])
    try site.drain()
    #expect(try site.deliveries() == [token(1): 1])
  }

  /// Stores a device, makes a backup while a worker runs, stores another, restores: the first device's registration stays
  /// valid.
  private static func backup(_ site: Site, _ location: String, _ make: () throws -> Void, restore: () throws -> Void) throws {
    try site.startFleet(location)
    let worker = try site.startWorker()
    let config = ["--config", site.file("pushfleet.json5")]
    let registration = try #require(
      try site.change([["platform": "apns", "token": token(1)]])[0]["registration"] as? String)
    try make()
    try site.importDevices([2], #""user":"u""#)
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.run(["devices", "export"] + config).output.contains(token(2)))
    try restore()
    let restored = try site.run(["devices", "show", "--registration", registration] + config)
    #expect(restored.status == 0 && restored.output.contains(token(1)), "\(restored.output)")
    #expect(try !site.run(["devices", "export"] + config).output.contains(token(2)))
    try site.send(lines: [#"{"to":"\#(registration)","notification":{"body":"x"}}"#])
    try site.drain()
    #expect(try site.deliveries() == [token(1): 1])
  }

  /// The line of docs/send/registry.md with this beginning.
  private static func line(_ start: String) throws -> String {
    let lines = try DocumentTests.text("docs/send/registry.md").split(separator: "\n")
    return String(try #require(lines.first { $0.hasPrefix("    " + start) }))
  }

  @Test("the backup of docs/send/registry.md is the whole SQLite registry, with or without workers")
  func sqlite() throws {
    let site = try Site()
    let line = try Self.line("sqlite3 registry.db")
    try Self.backup(
      site, "sqlite:registry.db", { try Self.run(line, in: site) },
      restore: { try Self.run("mv backup.db registry.db; rm -f registry.db-wal registry.db-shm", in: site) })
  }

  @Test(
    "pg_restore brings back a PostgreSQL registry from pg_dump",
    .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func postgres() throws {
    let site = try Site()
    let location = try #require(try Postgres.shared?.get()).makeDatabase()
    let lines = try (dump: Self.line("pg_dump"), restore: Self.line("pg_restore"))
    try Self.backup(
      site, location, { try Self.run(lines.dump, in: site, ["DATABASE": location]) },
      restore: { try Self.run(lines.restore, in: site, ["DATABASE": location]) })
  }
}
