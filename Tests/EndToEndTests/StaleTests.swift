import Foundation
import TestSupport
import Testing

@Suite("Devices that haven't registered for long", .blocking)
struct StaleTests {
  @Test("are reported once each, and broadcasts skip them until they register again", arguments: RegistryKind.all)
  func stale(_ registry: RegistryKind) throws {
    let site = try Site()
    try site.startFleet(try registry.make(), settings: #"registryStaleAfter: "3s","#)
    try site.importDevices(1...2, #""topics":["all"],"user":"anna""#)
    let worker = try site.startWorker()
    var events: [[String: Any]] = []
    #expect(
      try eventually {
        events += try site.take("feedback").map(\.json)
        return events.count >= 2
      })
    #expect(events.allSatisfy { $0["event"] as? String == "Stale" && $0["user"] as? String == "anna" }, "\(events)")
    #expect(events.compactMap { $0["token"] as? String }.sorted() == [token(1), token(2)])
    _ = try site.change([["platform": "apns", "token": token(1)]])
    try site.broadcast("after")
    #expect(try eventually { try site.depths(["results"]) == [1] })
    #expect(try site.results()["after"]! == (1, 0, 1))
    #expect(try site.deliveries(of: "after") == [token(1): 1])
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try !site.take("feedback").contains { $0.json["token"] as? String == token(2) })
  }
}
