import Foundation
import TestSupport
import Testing

/// A worker's treatment of pages that a newer one has written. Both have this build: the test only changes the version byte of
/// their tickets, so it doesn't show how two builds share a broker or a registry.
@Suite("Pages of a newer version", .blocking)
struct NewerPagesTests {
  /// Gives every waiting page another version byte.
  private func rewritePages(_ site: Site, version: Int) throws -> Int {
    let words = ["move", "\(site.prefix).fanout.normal", "--exchange", "\(site.prefix).fanout", "--routing-key", "normal"]
    let count = try site.peer(words + ["--header", "x-push-page", "--first-byte", "\(version)"])
    return Int(count.trimmingCharacters(in: .whitespacesAndNewlines)) ?? -1
  }

  @Test(
    "a broadcast whose pages have a later version byte waits for a newer worker: nothing is repeated, lost or restarted")
  func newerPages() throws {
    let devices = 400
    let site = try Site()
    try site.startFleet(
      script: ["*": ["delay_ms": 20]], options: ["--streams", "10"], settings: "fanOut: { pageSize: 20, prefetch: 2 },")
    try site.importDevices(0..<devices, #""topics":["all"]"#)
    let journal = try site.followJournal()
    var worker = try site.startWorker()
    try site.broadcast("b")
    #expect(journal.waitForLines(60, seconds: 60))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try eventually { try site.depths(["retry.200ms", "retry.1s"]) == [0, 0] })
    let sent = try site.pushes().count
    let waiting = try rewritePages(site, version: 4)
    #expect(waiting > 0 && sent < devices)

    worker = try site.startWorker()
    #expect(worker.waitForOutput("messages wait for a newer worker", seconds: 90))
    // Between two rounds the ladder is empty only for moments, too short to observe.
    #expect(try eventually { try site.depths(["retry.1s"]) == [waiting] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().count == sent && site.depths(["dead", "results", "send.normal"]) == [0, 0, 0])
    #expect(try site.campaigns()["b"]?["state"] as? String == "running")

    #expect(try eventually { try site.depths(["fanout.normal"]) == [waiting] })
    #expect(try rewritePages(site, version: 2) == waiting)
    try site.drain()
    #expect(try site.deliveries(of: "b") == Dictionary(uniqueKeysWithValues: (0..<devices).map { (token($0), 1) }))
    #expect(try site.results()["b"]! == (devices, 0, 1))
  }
}
