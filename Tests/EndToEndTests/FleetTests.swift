import Foundation
import TestSupport
import Testing

@Suite("Several workers at one provider", .serialized)
struct FleetTests {
  @Test("have one provider token of a key between them, though they know nothing of each other")
  func oneToken() throws {
    let site = try Site()
    try site.startSimulator(script: ["*": ["delay_ms": 5]], options: ["--streams", "4"], settings: "prefetch: 20, shards: 2,")
    try site.declareTopology()
    let journal = try site.followJournal()
    let begin = Self.halfHour
    let workers = [try site.startWorker(), try site.startWorker()]
    try site.send(tokens: (0..<500).map(token))
    #expect(journal.waitForLines(500, seconds: 30))
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(worker.wait() == 0) }
    let pushes = try site.pushes()
    #expect(Set(pushes.map(\.connection)).count > 2 && pushes.allSatisfy { $0.violations.isEmpty && $0.status == 200 })
    let text = try String(contentsOfFile: site.file("journal.ndjson"), encoding: .utf8)
    let issued = Set(
      Site.objects(text).compactMap { entry in
        ((entry["headers"] as? [String: Any])?["authorization"] as? [String: Any])?["iat"] as? Int
      })
    // Unless a half hour ended meanwhile.
    if begin == Self.halfHour { #expect(issued == [begin * 1800]) }
  }

  private static var halfHour: Int { Int(Date().timeIntervalSince1970) / 1800 }
}
