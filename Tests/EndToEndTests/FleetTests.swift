import Foundation
import TestSupport
import Testing

@Suite("Several workers at one provider", .blocking)
struct FleetTests {
  @Test("share one provider token of a key, though they don't know of each other")
  func oneToken() throws {
    let site = try Site()
    try site.startSimulator(script: ["*": ["delay_ms": 5]], options: ["--streams", "4"], settings: "prefetch: 20, shards: 2,")
    try site.declareTopology()
    let journal = try site.followJournal()
    let begin = Self.halfHour
    let workers = [try site.startWorker(), try site.startWorker()]
    try site.send(tokens: (0..<500).map(token))
    #expect(journal.waitForLines(500, seconds: 90))
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(worker.wait() == 0) }
    let pushes = try site.pushes()
    #expect(Set(pushes.map(\.connection)).count > 2 && pushes.allSatisfy { $0.violations.isEmpty && $0.status == 200 })
    let text = try String(contentsOfFile: site.file("journal.ndjson"), encoding: .utf8)
    let issued = Set(
      Site.objects(text).compactMap { entry in
        ((entry["headers"] as? [String: Any])?["authorization"] as? [String: Any])?["iat"] as? Int
      })
    // Unless a half hour ended in between.
    if begin == Self.halfHour { #expect(issued == [begin * 1800]) }
  }

  @Test("share a project's quota, of which each knows the whole")
  func sharedQuota() throws {
    let site = try Site()
    let fcm = try site.startFCM().replacing("fcm: {", with: "fcm: { messagesPerMinute: 600,")
    try site.write(
      #"{ broker: "\#(site.brokerURI)", prefix: "\#(site.prefix)", apps: { "\#(Site.app)": { \#(fcm) } } }"#,
      to: "pushfleet.json5")
    try site.declareTopology()
    let workers = [try site.startWorker(), try site.startWorker()]
    for worker in workers { #expect(worker.waitForOutput(#""among_shards":2"#, seconds: 90)) }
    try site.send(tokens: (0..<200).map { "fcm:device-\($0)" })
    #expect(try site.followJournal("fcm.ndjson").waitForLines(70, seconds: 90))
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(worker.wait() == 0) }
    let text = try String(contentsOfFile: site.file("fcm.ndjson"), encoding: .utf8)
    let times = try site.times(in: "fcm.ndjson") { ($0["path"] as? String)?.hasSuffix("messages:send") == true }
    // Ten a second, and of each worker the burst of a second.
    let most = times.map { begin in times.count { (begin..<begin + 3).contains($0) } }.max() ?? 0
    #expect(times.count > 60 && most < 50, "\(most) in three seconds")
    #expect(Set(Site.objects(text).compactMap { $0["connection"] as? Int }).count >= 2)
  }

  private static var halfHour: Int { Int(Date().timeIntervalSince1970) / 1800 }
}
