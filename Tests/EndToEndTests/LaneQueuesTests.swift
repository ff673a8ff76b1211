import Foundation
import TestSupport
import Testing

@Suite("Lanes of several queues", .blocking)
struct LaneQueuesTests {
  private func settings(_ queues: Int) -> String { "laneQueues: \(queues), retry: { steps: [\"200ms\"] }," }
  private static let names = ["send.normal"] + (1..<4).map { "send.normal.\($0)" }

  private func lines(_ site: Site, _ numbers: Range<Int>, to key: String = "normal") -> [[String: Any]] {
    numbers.map {
      [
        "body": ["to": token($0)], "exchange": "\(site.prefix).send", "routing_key": key,
        "properties": ["message_id": "m-\($0)", "timestamp": Int(Date().timeIntervalSince1970)],
      ]
    }
  }

  /// The consumers of the normal lane's queues.
  private func consumers(_ site: Site) throws -> [Int] {
    let queues = Site.objects(try site.run(["status", "--json", "--config", site.file("pushfleet.json5")]).output)
    return Self.names.map { name in
      queues.first { $0["queue"] as? String == "\(site.prefix).\(name)" }?["consumers"] as? Int ?? 0
    }
  }

  private func declare(_ site: Site) throws {
    let ended = try site.run(["topology", "--config", site.file("pushfleet.json5")])
    #expect(ended.status == 0, "\(ended.output)")
  }

  /// True if no request is ready or in hand. A worker that ends on a slow machine may lose its last acknowledgements.
  private func isProcessed(_ site: Site, _ queues: [String]) throws -> Bool {
    try queues.allSatisfy { try site.broker.messages(in: "\(site.prefix).\($0)") == 0 }
  }

  @Test("a repeated request comes to the worker that remembers it, on whichever queue and worker that is")
  func repeated() throws {
    let site = try Site()
    try site.startSimulator(settings: settings(4))
    try declare(site)
    let journal = try site.followJournal()
    let workers = try (0..<3).map { _ in try site.startWorker() }
    // Few at once, so that the preferred worker of each queue has room for all of them: a worker begins with a prefetch of 16.
    for first in stride(from: 0, to: 150, by: 30) {
      try site.publish(lines: lines(site, first..<first + 30))
      #expect(journal.waitForLines(first + 30, seconds: 60))
    }
    for first in Array(stride(from: 0, to: 150, by: 30)) + Array(stride(from: 0, to: 150, by: 30)) {
      try site.publish(lines: lines(site, first..<first + 30))
      #expect(try eventually { try isProcessed(site, Self.names) })
    }
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(worker.wait() == 0) }
    #expect(try site.depths(Self.names + ["dead"]).allSatisfy { $0 == 0 })
    let deliveries = try site.deliveries()
    #expect(deliveries.count == 150 && deliveries.values.allSatisfy { $0 == 1 }, "\(deliveries.filter { $0.value > 1 })")
  }

  @Test("queues are added and removed while requests are published and retried: each is sent once, none is lost")
  func changed() throws {
    let site = try Site()
    let count = 4_000
    let again = stride(from: 0, to: count, by: 50)
    let answers = Dictionary(
      uniqueKeysWithValues: again.map { (token($0), [["status": 500, "reason": "InternalServerError"], ["status": 200]]) })
    try site.startSimulator(script: answers, settings: settings(1))
    try declare(site)
    var workers = [try site.startWorker()]
    let publishing = try site.startPublishing(lines: lines(site, 0..<count))
    let journal = try site.followJournal()
    #expect(journal.waitForLines(100, seconds: 30))
    // As docs/operate/scaling.md says: all workers first, then the topology.
    try site.configure(port: site.port, settings: settings(4))
    workers += [try site.startWorker(), try site.startWorker()]
    workers[0].signal(SIGTERM)
    #expect(workers.removeFirst().wait() == 0)
    try declare(site)
    #expect(try eventually(seconds: 30) { try consumers(site).allSatisfy { $0 > 0 } })
    for queues in [2, 3, 1, 4, 1] {
      try site.configure(port: site.port, settings: settings(queues))
      try declare(site)
    }
    #expect(publishing.wait() == 0)
    #expect(journal.waitForLines(count + 80, seconds: 60))
    #expect(try eventually { try isProcessed(site, Self.names + ["retry.200ms"]) })
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(worker.wait() == 0) }
    let left = try site.depths(Self.names + ["dead", "retry.200ms"])
    #expect(left.allSatisfy { $0 == 0 }, "\(left)")
    let accepted = try site.pushes().filter { $0.status == 200 }
    #expect(accepted.count == count && Set(accepted.map(\.token)).count == count, "\(accepted.count)")
  }

  @Test("a worker reads only the first queue until `pushfleet topology` divides the lanes; the doctor says so")
  func undivided() throws {
    let site = try Site()
    try site.startSimulator(settings: settings(1))
    try declare(site)
    try site.configure(port: site.port, settings: settings(4))
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("`pushfleet topology` has not divided the lanes", seconds: 20))
    try site.publish(lines: lines(site, 0..<20))
    let journal = try site.followJournal()
    #expect(journal.waitForLines(20, seconds: 30))
    let doctor = ["doctor", "--config", site.file("pushfleet.json5")]
    #expect(try site.run(doctor).output.contains("has not divided the lanes among their 4 queues"))
    try declare(site)
    #expect(try !site.run(doctor).output.contains("laneQueues"))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    // A dead letter of the broker names its queue, and goes back to the lane.
    try site.publish(
      lines: lines(site, 100..<110).map { line in
        var line = line
        line["properties"] = ["message_id": "short", "expiration": "1"]
        return line
      })
    #expect(try eventually { try site.depths(["dead"]) == [10] })
    try site.publish(lines: lines(site, 0..<100))
    #expect(try site.depths(Self.names).allSatisfy { $0 > 5 })
    let replayed = try site.run(["dead", "replay", "--config", site.file("pushfleet.json5")])
    #expect(replayed.status == 0, "\(replayed.output)")
    #expect(try site.depths(Self.names).reduce(0, +) == 110)
    try site.configure(port: site.port, settings: settings(1))
    #expect(try site.run(doctor).output.contains("but `laneQueues` is 1"))
  }

  @Test("a new fleet's first worker divides the lanes; deleted parts come back, or the log says what to do")
  func new() throws {
    let site = try Site()
    try site.startSimulator(settings: settings(3))
    let worker = try site.startWorker()
    let journal = try site.followJournal()
    try site.publish(lines: lines(site, 0..<50))
    #expect(journal.waitForLines(50, seconds: 30))
    try site.peer(["delete", "--exchange", "\(site.prefix).send"])
    #expect(worker.waitForOutput("the topology is whole again", seconds: 20))
    try site.publish(lines: lines(site, 50..<100))
    #expect(journal.waitForLines(100, seconds: 30))
    try site.peer(["delete", "--exchange", "\(site.prefix).send.normal"])
    #expect(worker.waitForOutput("until `pushfleet topology` runs", seconds: 20))
    try declare(site)
    try site.publish(lines: lines(site, 100..<150))
    #expect(journal.waitForLines(150, seconds: 30))
    #expect(try site.depths(["dead"]) == [0])
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test("a lane's requests are dropped from all of its queues; the doctor finds requests that no worker reads")
  func discarded() throws {
    let site = try Site()
    try site.startSimulator(settings: settings(4) + "registry: \"sqlite:\(site.file("registry.db"))\",")
    try declare(site)
    let config = ["--config", site.file("pushfleet.json5")]
    try site.importDevices([1], #""topics":["all"]"#)
    #expect(try site.run(["lanes", "pause", "send.normal"] + config).status == 0)
    try site.publish(lines: lines(site, 0..<100))
    let discarded = try site.run(["lanes", "discard", "send.normal", "--yes"] + config)
    #expect(discarded.status == 0 && discarded.output.contains("100 requests dropped"), "\(discarded.output)")
    #expect(try site.depths(Self.names).allSatisfy { $0 == 0 })
    try site.publish(lines: lines(site, 0..<100))
    try site.configure(port: site.port, settings: settings(2))
    let doctor = try site.run(["doctor"] + config)
    #expect(doctor.output.contains("requests wait in \(site.prefix).send.normal.3, which workers"), "\(doctor.output)")
    // A crash between two lanes: the exchange of one of them is gone.
    try site.peer(["delete", "--exchange", "\(site.prefix).send.normal"])
    try site.configure(port: site.port, settings: settings(1))
    try declare(site)
    let before = try site.depths(["send.high"] + (1..<4).map { "send.high.\($0)" })
    try site.publish(lines: lines(site, 0..<40, to: "high"))
    let after = try site.depths(["send.high"] + (1..<4).map { "send.high.\($0)" })
    #expect(before == [0, 0, 0, 0] && after == [40, 0, 0, 0])
  }

  @Test("a result is never published to a queue of a lane, whatever its number")
  func replies() throws {
    let site = try Site()
    try site.startSimulator(settings: settings(2))
    try declare(site)
    let queue = "\(site.prefix).send.normal.1"
    let worker = try site.startWorker()
    try site.publish([(#"{"to":"\#(token(1))"}"#, ["message_id": "m", "reply_to": queue])])
    let journal = try site.followJournal()
    #expect(journal.waitForLines(1, seconds: 30))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.depths([String(queue.dropFirst(site.prefix.count + 1)), "dead"]) == [0, 0])
  }
}
