import Foundation
import TestSupport
import Testing

@Suite("Crashes and refusals", .blocking)
struct CrashTests {
  @Test("kill -9 of the worker, again and again at random moments: nothing is lost, at most pushes in flight repeat")
  func workerKilled() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    let site = try Site()
    let prefetch = 400
    try site.startSimulator(settings: "prefetch: \(prefetch),")
    try site.declareTopology()
    let kills = Site.rounds("KILLS", usually: 10)
    let tokens = (0..<kills * 900).map(token)
    try site.send(tokens: tokens)
    let journal = try site.followJournal()
    for _ in 0..<kills {
      let moment = journal.linesSoFar + Int.random(in: 0...700, using: &generator)
      let worker = try site.startWorker()
      #expect(journal.waitForLines(moment, seconds: 60), "seed \(seed)")
      worker.end()
    }
    try site.drain()
    // Each worker has its own connection. A push that two workers sent was repeated because the first one ended.
    let senders = Dictionary(grouping: try site.pushes(), by: \.token).mapValues { $0.map(\.connection).sorted() }
    let lost = tokens.count { senders[$0] == nil }
    var doubled: [Int: Int] = [:]
    for connections in senders.values { for connection in connections.dropLast() { doubled[connection, default: 0] += 1 } }
    let distribution = doubled.sorted { $0.key < $1.key }.map(\.value)
    print("worker killed \(kills) times, seed \(seed): \(lost) of \(tokens.count) lost, doubled by each kill \(distribution)")
    #expect(lost == 0, "seed \(seed)")
    // And the one that it may have had alone from the quarantine.
    #expect(distribution.allSatisfy { $0 <= prefetch + 1 }, "seed \(seed): \(distribution)")
    #expect(try site.depths(["send.normal", "dead", "feedback"]) == [0, 0, 0])
  }

  @Test("a deleted queue and a deleted exchange are restored, and later requests are served")
  func deletedParts() throws {
    let site = try Site()
    try site.startSimulator(script: [token(2): ["status": 410, "reason": "Unregistered"]])
    try site.declareTopology()
    let worker = try site.startWorker()
    try site.peer(["delete", "\(site.prefix).send.normal"])
    #expect(worker.waitForOutput(#""consuming""#, times: 2, seconds: 90))
    let journal = try site.followJournal()
    try site.send(tokens: [token(1)])
    #expect(journal.waitForLines(1, seconds: 90))
    try site.peer(["delete", "--exchange", "\(site.prefix).events"])
    try site.send(tokens: [token(2)])
    #expect(worker.waitForOutput("the broker refuses publications", seconds: 90))
    #expect(try site.take("feedback", count: 1).count == 1)
    try site.peer(["delete", "\(site.prefix).feedback"])
    try site.send(tokens: [token(2)])
    #expect(worker.waitForOutput("the broker refuses publications", times: 2, seconds: 90))
    #expect(eventually { (try? site.depths(["feedback"])) != nil }, "the queue exists again")
    #expect(try site.take("feedback", count: 1).count == 1)
  }

  @Test("a full feedback queue: the request stays unacknowledged until its event is confirmed")
  func fullFeedbackQueue() throws {
    let site = try Site()
    let gone = (0..<6).map(token)
    try site.startSimulator(
      script: Dictionary(uniqueKeysWithValues: gone.map { ($0, ["status": 410, "reason": "Unregistered"]) }))
    try site.declareTopology()
    let queue = "\(site.prefix).feedback"
    try site.broker.limit(queue, to: 2)
    var worker = try site.startWorker()
    // One after the other, because a queue that fills up may accept more than its limit.
    for device in gone { try site.send(tokens: [device]) }
    #expect(worker.waitForOutput("the queue refuses it", seconds: 90))
    // A request whose event has no place is not acknowledged: the killed worker leaves it to the next one.
    worker.end()
    #expect(try eventually(seconds: 90) { try site.depths(["send.normal"])[0] > 0 })
    worker = try site.startWorker()
    #expect(worker.waitForOutput("the queue refuses it", seconds: 90))
    var events: [Site.Message] = []
    while Set(events.compactMap { $0.json["token"] as? String }).count < gone.count {
      let taken = try site.take("feedback", count: 1)
      guard !taken.isEmpty else { break }
      events += taken
    }
    #expect(Set(events.compactMap { $0.json["token"] as? String }) == Set(gone))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.depths(["send.normal"]) == [0])
  }

  @Test("a full feedback queue delays no request without an event for it")
  func fullFeedbackQueueAside() throws {
    let site = try Site()
    let (gone, others) = ((0..<900).map(token), (1_000..<1_100).map(token))
    let script = Dictionary(
      uniqueKeysWithValues: gone.map { ($0, ["status": 410, "reason": "Unregistered"] as [String: Any]) })
    try site.startSimulator(script: script, settings: "prefetch: 200,")
    try site.declareTopology()
    let queue = "\(site.prefix).feedback"
    try site.broker.limit(queue, to: 2)
    try site.send(tokens: gone + others)
    let worker = try site.startWorker()
    #expect(try eventually(seconds: 90) { Set(try site.pushes().filter { $0.status == 200 }.map(\.token)) == Set(others) })
    // No request whose event has no place is acknowledged.
    worker.end()
    #expect(try eventually(seconds: 90) { try site.depths(["send.normal", "feedback"]).reduce(0, +) >= gone.count })
  }

  @Test(
    "a full outcome queue is used again as soon as it accepts messages, even if the broker refuses on the old channel"
  )
  func fullQueueMended() throws {
    let site = try Site()
    let gone = (0..<6).map(token)
    try site.startSimulator(
      script: Dictionary(uniqueKeysWithValues: gone.map { ($0, ["status": 410, "reason": "Unregistered"]) }))
    try site.declareTopology()
    let queue = "\(site.prefix).feedback"
    try site.broker.limit(queue, to: 2)
    let worker = try site.startWorker()
    // One after the other, because a queue that fills up may accept more than its limit.
    for device in gone { try site.send(tokens: [device]) }
    #expect(worker.waitForOutput("the queue refuses it", seconds: 90))
    try site.broker.limit(queue, to: nil)
    #expect(try site.take("feedback", count: gone.count).count == gone.count)
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
  }

  @Test(
    "dead letters without a place, because push.dead is full or its exchange is gone, keep their requests unacknowledged until there is one"
  )
  func deadLettersWithoutPlace() throws {
    let site = try Site()
    let refused = (0..<6).map(token)
    try site.startSimulator(
      script: Dictionary(uniqueKeysWithValues: refused.map { ($0, ["status": 400, "reason": "PayloadEmpty"]) }))
    try site.declareTopology()
    let queue = "\(site.prefix).dead"
    try site.broker.limit(queue, to: 1)
    let worker = try site.startWorker()
    for device in refused { try site.send(tokens: [device]) }
    #expect(worker.waitForOutput("the queue refuses it", seconds: 90))
    try site.broker.limit(queue, to: nil)
    #expect(try site.take("dead", count: refused.count).count == refused.count)
    try site.peer(["delete", "--exchange", "\(site.prefix).dead"])
    try site.send(tokens: refused)
    #expect(try site.take("dead", count: refused.count).count == refused.count)
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.depths(["send.normal"]) == [0])
  }
}
