import DeviceRegistry
import Foundation
import TestSupport
import Testing

@testable import pushfleet

@Suite("pushfleet keys")
struct KeysTests {
  private static let created: Int64 = 1_795_209_720_000  // 2026-11-20T21:22:00Z

  private static func key(_ id: String, apps: [String] = [RegistrySite.app]) -> GatewayKey {
    GatewayKey(
      id: Array(id.utf8), hash: [], apps: apps.map { Array($0.utf8) }, rights: [.send, .register, .ack], rate: 1_000,
      createdAt: created)
  }

  @Test("are listed in a table, without their secrets")
  func listed() throws {
    let site = try RegistrySite()
    let made = try #require(
      try site.run(["keys", "create", "--rights", "send", "--rate", "5", "--name", "billing", "--json"]).objects.first?["id"]
        as? String)
    let lines = try site.run(["keys", "list"]).lines.map { $0.split(separator: " ").map(String.init) }
    #expect(lines.first == ["ID", "NAME", "APPS", "RIGHTS", "RATE", "CREATED", "USED"])
    let key = try #require(lines.last)
    #expect(
      key.prefix(5) == [made, "billing", RegistrySite.app, "send", "5/s"] && key.last == "never" && lines.count == 2, "\(lines)"
    )
    #expect(try site.run(["keys", "revoke", made, "--reason", "lost"]).status == 0)
    #expect(try site.run(["keys", "list"]).lines.last?.contains("revoked 20") == true)
    let json = try site.run(["keys", "list", "--json"]).objects
    #expect(json.first?["id"] as? String == made && json.first?["revoked_at"] as? String != nil)
    #expect(json.first?["name"] as? String == "billing")
    let events = try site.run(["audit", "--json"]).objects
    #expect(events.map { $0["action"] as? String } == ["key revoke", "key create"])
    #expect(events.allSatisfy { $0["subject"] as? String == "key:\(made)" && $0["app"] as? String == RegistrySite.app })
    #expect((events.last?["after"] as? [String: Any])?["rights"] as? [String] == ["send"])
    #expect(events.first?["reason"] as? String == "lost")
    for name in ["", "a\nb", String(repeating: "a", count: 65)] {
      #expect(try site.run(["keys", "create", "--rights", "send", "--name", name]).status == 64)
    }
    // One that names no rate has one.
    #expect(try site.run(["keys", "create", "--rights", "ack"]).status == 0)
    #expect(try site.run(["keys", "list", "--json"]).objects.contains { $0["rate"] as? Int == 5_000 })
  }

  @Test("that there are none of is said on standard error, and nothing on standard output")
  func none() throws {
    let site = try RegistrySite()
    for (word, words) in [("keys", "no keys\n"), ("topics", "no topics\n")] {
      // Made by the first command that changes it.
      try site.run(["devices", "register", "--platform", "fcm", "--token", "x"])
      let ended = try site.run([word, "list"])
      #expect(ended.status == 0 && ended.output.isEmpty && ended.errors == words, "\(ended)")
      let json = try site.run([word, "list", "--json"])
      #expect(json.status == 0 && json.output.isEmpty && json.errors.isEmpty, "\(json)")
    }
  }

  @Test("in 80 columns keep their ids, rights and use whole; in 200 all")
  func narrow() {
    let app = "com.example.an-application-with-a-long-name"
    let keys = [Self.key("0123456789abcdef", apps: [app]), Self.key("fedcba9876543210")]
    let lines = TextTable(keys).text(width: 80).split(separator: "\n")
    #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
    for head in ["ID", "APPS", "RIGHTS", "USED"] { #expect(lines[0].contains(head), "\(lines)") }
    for cell in ["0123456789abcdef", "ack,register,send", "never"] { #expect(lines[1].contains(cell), "\(lines)") }
    let wide = TextTable(keys).text(width: 200)
    #expect(wide.contains(app) && wide.contains("2026-11-20T21:22:00Z"))
  }
}
