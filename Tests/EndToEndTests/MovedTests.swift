import Foundation
import TestSupport
import Testing

@Suite("Replaced tokens", .blocking)
struct MovedTests {
  @Test("kill -9 of a worker that has stored them unreported: the next one reports each, and no other device's")
  func killed() throws {
    let site = try Site()
    try site.startFleet()
    let queue = "\(site.prefix).feedback"
    // Full before the worker publishes: the broker accepts some messages above the limit that arrive together.
    try site.publish(lines: Array(repeating: ["body": ["event": "None"], "exchange": "", "routing_key": queue], count: 2))
    try site.broker.limit(queue, to: 1)
    var worker = try site.startWorker()
    // There and back, and on: each time one of the installation's tokens replaces another.
    let tokens = ["t0", "t1", "t2", "t1", "t3", "t4", "t5", "t6"]
    try site.askForChanges(tokens.map { ["platform": "fcm", "token": $0, "installation": "i", "user": "anna"] })
    #expect(worker.waitForOutput("the queue refuses it", seconds: 90), "\(worker.outputSoFar)")
    #expect(
      try eventually {
        let devices = try site.run([
          "devices", "show", "--config", site.file("pushfleet.json5"), "--json", "--installation", "i",
        ])
        return Site.objects(devices.output).map { $0["token"] as? String } == ["t6"]
      })
    worker.end()
    #expect(try eventually { try site.depths(["registry"])[0] > 0 })
    try site.broker.limit(queue, to: nil)
    worker = try site.startWorker()
    // The broker applies the new limit a moment later, so the worker may hold the changes until then.
    #expect(try eventually { try site.broker.messages(in: "\(site.prefix).registry") == 0 })
    worker.signal(15)
    #expect(worker.wait() == 0)

    let events = try site.take("feedback").map(\.json).filter { $0["event"] as? String != "None" }
    let moves = Set(events.map { "\($0["token"] ?? "") \($0["new_token"] ?? "")" })
    #expect(moves.isSuperset(of: zip(tokens, tokens.dropFirst()).map { "\($0) \($1)" }), "\(moves)")
    #expect(events.allSatisfy { $0["event"] as? String == "Moved" && $0["installation"] as? String == "i" })
    #expect(events.last?["new_token"] as? String == "t6")
    let devices = try site.run(["devices", "export", "--config", site.file("pushfleet.json5")])
    #expect(Site.objects(devices.output).map { $0["token"] as? String } == ["t6"])
    #expect(try site.depths(["dead"]) == [0])
  }
}
