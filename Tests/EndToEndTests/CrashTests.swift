import Foundation
import TestSupport
import Testing

@Suite("Crashes and faults of the broker")
struct CrashTests {
  @Test("kill -9 of the worker, again and again at random moments: nothing is lost, at most what was in flight is doubled")
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
    // Each worker has its own connection: what one has sent and a later one sends again was doubled by the first one's end.
    let senders = Dictionary(grouping: try site.pushes(), by: \.token).mapValues { $0.map(\.connection).sorted() }
    let lost = tokens.count { senders[$0] == nil }
    var doubled: [Int: Int] = [:]
    for connections in senders.values { for connection in connections.dropLast() { doubled[connection, default: 0] += 1 } }
    let distribution = doubled.sorted { $0.key < $1.key }.map(\.value)
    print("worker killed \(kills) times, seed \(seed): \(lost) of \(tokens.count) lost, doubled by each kill \(distribution)")
    #expect(lost == 0, "seed \(seed)")
    #expect(distribution.allSatisfy { $0 <= prefetch }, "seed \(seed): \(distribution)")
    #expect(try site.depths(["send.normal", "dead", "feedback"]) == [0, 0, 0])
  }

  @Test("a broker killed, frozen, cut off and full loses nothing; the worker comes back by itself and doubles nothing")
  func brokerFaults() throws {
    let certificates = try TestCertificates.make()
    let broker = try Broker(certificates: (certificates.authority, certificates.server, certificates.serverKey))
    defer { broker.stop() }
    let site = try Site(broker: broker)
    site.brokerURI = broker.tlsURI
    let gone = (0..<40).map { token(1_000_000 + $0) }
    let port = try FreePorts.take(1)[0]
    try site.startSimulator(
      script: Dictionary(uniqueKeysWithValues: gone.map { ($0, ["status": 410, "reason": "Unregistered"]) }),
      settings: "brokerCA: \"\(certificates.authority)\", prefetch: 200, metrics: \"127.0.0.1:\(port)\",")
    let probe = HTTPProbe(port: port)
    let standing = { ["/livez", "/readyz"].map { probe.ask($0)?.status } }
    try site.declareTopology()
    let journal = try site.followJournal()
    var expected = 0

    // Killed under load.
    try site.send(tokens: (0..<3000).map(token))
    let worker = try site.startWorker()
    #expect(journal.waitForLines(500, seconds: 60))
    #expect(poll(seconds: 10) { broker.isOnDisk(queue: "\(site.prefix).send.normal") })
    broker.kill9()
    #expect(worker.waitForOutput("broker connection ended", times: 2, seconds: 10))
    #expect(poll(seconds: 5) { standing() == [200, 503] })
    try broker.restart()
    let back = Date()
    #expect(worker.waitForOutput(#""consuming""#, times: 2, seconds: 30))
    let seconds = Date().timeIntervalSince(back)
    print("the worker consumed again \(seconds) s after the broker was back")
    #expect(seconds < 5)
    #expect(poll(seconds: 5) { standing() == [200, 200] })
    expected += 3000
    #expect(journal.waitForLines(expected, seconds: 60))

    // Every connection closed by an operator, under load.
    try site.send(tokens: (3000..<6000).map(token))
    for _ in 0..<3 { try broker.control("close_all_connections", "test") }
    expected += 3000
    #expect(journal.waitForLines(expected, seconds: 60))

    // A memory alarm: deliveries go on, what would be published waits.
    try site.send(tokens: (6000..<6500).map(token) + gone)
    #expect(journal.waitForLines(expected + 1, seconds: 60))
    try broker.control("set_vm_memory_high_watermark", "0.0000001")
    expected += 500 + gone.count
    #expect(journal.waitForLines(expected, seconds: 60))
    try broker.control("set_vm_memory_high_watermark", "0.4")
    #expect(try site.take("feedback", count: gone.count).count == gone.count)

    // Frozen: found out by heartbeats, and forgiven.
    try site.send(tokens: (6500..<7000).map(token))
    let seen = worker.outputSoFar.ranges(of: #""consuming""#).count
    broker.freeze()
    #expect(worker.waitForOutput("no sign of life from the broker", times: 2, seconds: 40))
    broker.resume()
    #expect(worker.waitForOutput(#""consuming""#, times: seen + 1, seconds: 40))
    expected += 500
    #expect(journal.waitForLines(expected, seconds: 60))

    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: (0..<7000).map { (token($0), 1) }))
    #expect(try site.pushes().count == expected)
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
    for line in worker.outputSoFar.split(separator: "\n").dropLast() { #expect(line.first == "{", "\(line)") }
  }

  @Test("a deleted queue and a deleted exchange are restored, and what comes then is served")
  func deletedParts() throws {
    let site = try Site()
    try site.startSimulator(script: [token(2): ["status": 410, "reason": "Unregistered"]])
    try site.declareTopology()
    let worker = try site.startWorker()
    try site.peer(["delete", "\(site.prefix).send.normal"])
    #expect(worker.waitForOutput(#""consuming""#, times: 2, seconds: 30))
    let journal = try site.followJournal()
    try site.send(tokens: [token(1)])
    #expect(journal.waitForLines(1, seconds: 30))
    try site.peer(["delete", "--exchange", "\(site.prefix).events"])
    try site.send(tokens: [token(2)])
    #expect(worker.waitForOutput("the broker refuses publications", seconds: 30))
    #expect(try site.take("feedback", count: 1).count == 1)
    try site.peer(["delete", "\(site.prefix).feedback"])
    try site.send(tokens: [token(2)])
    #expect(worker.waitForOutput("the broker refuses publications", times: 2, seconds: 30))
    // The queue is there again, or pika could not look into it.
    #expect(try site.take("feedback", count: 1).count == 1)
  }

  @Test("a full feedback queue: the request stays unacknowledged until its event is taken")
  func fullFeedbackQueue() throws {
    let site = try Site()
    let gone = (0..<6).map(token)
    try site.startSimulator(
      script: Dictionary(uniqueKeysWithValues: gone.map { ($0, ["status": 410, "reason": "Unregistered"]) }))
    try site.declareTopology()
    let queue = "\(site.prefix).feedback"
    try site.broker.control("set_policy", queue, "^\(queue)$", #"{"max-length": 2}"#, "--apply-to", "queues")
    var worker = try site.startWorker()
    // One after the other, since a queue that fills up may take more than it should.
    for device in gone { try site.send(tokens: [device]) }
    #expect(worker.waitForOutput("the queue refuses it", seconds: 30))
    // Whose event has no place is not acknowledged: killed, the worker leaves it to the next one.
    worker.end()
    #expect(try poll(seconds: 10) { try site.depths(["send.normal"])[0] > 0 })
    worker = try site.startWorker()
    #expect(worker.waitForOutput("the queue refuses it", seconds: 30))
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

  private func poll(seconds: Double, until condition: () throws -> Bool) rethrows -> Bool {
    let end = Date().addingTimeInterval(seconds)
    while try !condition() {
      guard Date() < end else { return false }
      usleep(20_000)
    }
    return true
  }
}
