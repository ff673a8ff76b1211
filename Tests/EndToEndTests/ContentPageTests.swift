import Foundation
import TestSupport
import Testing

@Suite("Pages of content while the registry is not writable", .blocking)
struct ContentPageTests {
  private static func request(_ bytes: Int, _ options: [String: Any] = [:]) -> [String: Any] {
    [
      "to": token(bytes), "notification": ["body": "b"], "data": ["ext": String(repeating: "x", count: bytes)],
    ].merging(options) { $1 }
  }

  @Test("a push waits until its page is stored, and there is one page even if its worker dies repeatedly")
  func outage() throws {
    let site = try Site()
    let fcm = try site.startFCM()
    try site.startFleet(
      settings: #"richPages: { url: "http://127.0.0.1:1" }, fanOut: { pageSize: 2 },"#, apps: "upmc: true, \(fcm)")
    let worker = try site.startWorker()
    try site.importDevices(1...5, #""topics":["all"]"#)
    let holder = try LockHolder(site.file("registry.db"), "IMMEDIATE")
    defer { holder.end() }
    try site.publish([
      (Self.request(100), ["message_id": "small"]), (Self.request(5_000), ["message_id": "large"]),
      (Self.request(6_000, ["time_to_live": 0]), ["message_id": "now"]),
    ])
    // Content with room needs no page; a request with a lifetime of 0 ends.
    #expect(try eventually { try site.deliveries() == [token(100): 1] && site.depths(["dead"]) == [1] })
    let letter = try #require(try site.take("dead").first)
    #expect(letter.id == "now" && letter.header("x-push-error") == "Unavailable")
    worker.signal(9)
    _ = worker.wait()
    holder.end()
    // A dry run stores no page, a broadcast stores one for all of its pages.
    try site.publish([
      (Self.request(5_000), ["message_id": "large"]), (Self.request(5_000, ["to": "fcm:a"]), ["message_id": "android"]),
      (Self.request(5_000, ["to": "/topics/all"]), ["message_id": "all"]),
      (
        Self.request(7_000, ["registration_ids": ["apns:00", "fcm:a"], "dry_run": true, "to": NSNull()]), ["message_id": "dry"]
      ),
    ])
    try site.drain()
    let all = try site.pushes().filter { $0.token != token(100) }
    #expect(Set(all.map(\.token)) == Set((Array(1...5) + [5_000]).map { token($0) }) && all.allSatisfy { $0.violations == [] })
    let addresses = all.map { ($0.payload["mps"] as? [String: Any])?["ext"] }
    #expect(!addresses.isEmpty && Set(addresses.map { $0 as? String ?? "" }).count == 1)
    let script =
      "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute('SELECT name, length(content) FROM content_pages'))"
    let kept = try site.foreign(["/usr/bin/python3", "-c", script, site.file("registry.db")])
    let name = (addresses.first as? String)?.split(separator: "/").last.map(String.init) ?? ""
    #expect(kept.trimmingCharacters(in: .whitespacesAndNewlines) == "('\(name)', 5000)")
    let messages = Site.objects(try String(contentsOfFile: site.file("fcm.ndjson"), encoding: .utf8))
      .compactMap { ($0["payload"] as? [String: Any])?["message"] as? [String: Any] }
    #expect(messages.contains { ($0["data"] as? [String: Any])?["ext"] as? String == addresses.first as? String })
    let dry = try #require(try site.take("results").first { $0.id == "dry" })
    #expect(dry.json["success"] as? Int == 2, "\(dry.body)")
    #expect(try site.depths(["dead"]) == [0])
  }
}
