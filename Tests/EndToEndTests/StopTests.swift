import Foundation
import TestSupport
import Testing

@Suite("Stopping a worker", .blocking)
struct StopTests {
  private static let terminate: Int32 = 15

  @Test("SIGTERM under load: pushes in flight finish, nothing is lost and nothing repeats")
  func terminatedUnderLoad() throws {
    let site = try Site()
    try site.startSimulator(script: ["*": ["delay_ms": 5]], settings: "drainTimeout: 20, prefetch: 500,")
    try site.declareTopology()
    let tokens = (0..<3000).map(token)
    try site.send(tokens: tokens)
    let journal = try site.followJournal()
    for lines in [200, 900] {
      let worker = try site.startWorker()
      #expect(journal.waitForLines(lines, seconds: 60))
      worker.signal(Self.terminate)
      let begin = Date()
      #expect(worker.wait() == 0 && Date().timeIntervalSince(begin) < 15, "\(worker.outputSoFar)")
    }
    #expect(try site.pushes().count < tokens.count)
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: tokens.map { ($0, 1) }))
    #expect(try site.depths(["dead", "feedback", "send.normal"]) == [0, 0, 0])
  }

  @Test("a fleet of four restarted one by one under load: nothing is lost and nothing repeats")
  func rollingRestart() throws {
    let site = try Site()
    try site.startSimulator(script: ["*": ["delay_ms": 25]], options: ["--streams", "4"], settings: "prefetch: 100,")
    try site.declareTopology()
    let rounds = Site.rounds("RESTARTS", usually: 1)
    let tokens = (0..<rounds * 4000).map(token)
    try site.send(tokens: tokens)
    let journal = try site.followJournal()
    var workers = try (0..<4).map { _ in try site.startWorker() }
    for restart in 0..<rounds * 4 {
      #expect(journal.waitForLines(journal.linesSoFar + 50, seconds: 60), "the load was over at restart \(restart)")
      let worker = workers.removeFirst()
      worker.signal(Self.terminate)
      workers.append(try site.startWorker())
      #expect(worker.wait() == 0, "\(worker.outputSoFar)")
    }
    #expect(journal.waitForLines(tokens.count, seconds: Double(30 + tokens.count / 100)))
    for worker in workers { worker.signal(Self.terminate) }
    for worker in workers { #expect(worker.wait() == 0) }
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: tokens.map { ($0, 1) }))
    #expect(try site.depths(["dead", "feedback", "send.normal"]) == [0, 0, 0])
  }

  @Test("a list under way is handed on: the rest of it is sent once, and one result has all")
  func terminatedInAList() throws {
    let site = try Site()
    try site.startSimulator(
      script: ["*": ["delay_ms": 30]], options: ["--streams", "8"],
      settings: #"results: "all", retry: { steps: ["100ms"], attempts: 9 },"#)
    try site.declareTopology()
    let tokens = (0..<300).map(token)
    try site.publish([(["registration_ids": tokens, "data": ["k": "v"]], ["message_id": "list"])])
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    #expect(journal.waitForLines(40, seconds: 60))
    worker.signal(Self.terminate)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().count < tokens.count)
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: tokens.map { ($0, 1) }))
    let results = try site.take("results")
    #expect(results.count == 1 && results.first?.json["success"] as? Int == 300)
  }

  @Test("a list with a lifetime of 0 is not handed on: its unsent targets end at once")
  func terminatedInAListForNow() throws {
    let site = try Site()
    try site.startSimulator(
      script: ["*": ["delay_ms": 30]], options: ["--streams", "8"],
      settings: #"results: "all", retry: { steps: ["100ms"], attempts: 9 },"#)
    try site.declareTopology()
    let tokens = (0..<300).map(token)
    try site.publish([(["registration_ids": tokens, "time_to_live": 0], ["message_id": "list"])])
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    #expect(journal.waitForLines(40, seconds: 60))
    worker.signal(Self.terminate)
    #expect(worker.wait() == 0)
    #expect(try site.depths(["retry.100ms", "send.normal"]) == [0, 0])
    let reached = try site.deliveries()
    #expect(reached.count < tokens.count && reached.values.allSatisfy { $0 == 1 })
    let letters = try site.take("dead")
    #expect(letters.allSatisfy { $0.header("x-push-error") == "Unavailable" })
    #expect(
      Set(letters.compactMap { ($0.json["to"] as? String)?.dropFirst("apns:".count) }.map(String.init)).union(reached.keys)
        == Set(tokens) && letters.count + reached.count == tokens.count)
    let results = try site.take("results")
    #expect(results.count == 1 && results.first?.json["success"] as? Int == reached.count)
  }

  /// A worker whose provider doesn't answer its first push.
  private func startStalled(_ site: Site, drainTimeout: Int, pushes: Int) throws -> ChildProcess {
    try site.startSimulator(script: ["*": ["stall": true]], settings: "drainTimeout: \(drainTimeout),")
    try site.declareTopology()
    try site.send(tokens: (0..<pushes).map(token))
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    #expect(journal.waitForLines(1, seconds: 60))
    return worker
  }

  @Test("while the provider stalls the worker ends at drainTimeout with status 0, and leaves the rest to the broker")
  func stalled() throws {
    let site = try Site()
    let worker = try startStalled(site, drainTimeout: 1, pushes: 50)
    worker.signal(Self.terminate)
    let begin = Date()
    #expect(worker.wait() == 0)
    #expect(0.9...6 ~= Date().timeIntervalSince(begin))
    // The broker puts the requests back a moment later.
    #expect(try eventually { try site.depths(["send.normal", "retry.1s", "dead"]) == [50, 0, 0] })
    let last = Site.objects(worker.outputSoFar).last { $0["given_back"] != nil }
    #expect(last?["because"] as? String == "drainTimeout" && last?["given_back"] as? Int == 50, "\(worker.outputSoFar)")
    // Before its first answer, APNs allows one push at a time.
    #expect(last?["may_be_sent_twice"] as? Int == 1)
  }

  @Test("without a broker it names what the broker delivers again")
  func disconnected() throws {
    let broker = try Broker()
    defer { broker.stop() }
    let site = try Site(broker: broker)
    let worker = try startStalled(site, drainTimeout: 1, pushes: 1)
    broker.kill9()
    #expect(worker.waitForOutput(#""role":"consuming""#, seconds: 60))
    worker.signal(Self.terminate)
    #expect(worker.wait() == 0)
    #expect(
      worker.outputSoFar.contains(#""because":"drainTimeout","given_back":1,"may_be_sent_twice":1"#), "\(worker.outputSoFar)")
  }

  @Test("a broker that is away when the provider answers gets the acknowledgements when it is back: nothing repeats")
  func brokerAway() throws {
    let broker = try Broker()
    defer { broker.stop() }
    let site = try Site(broker: broker)
    try site.startSimulator(script: ["*": ["delay_ms": 2_000]], options: ["--streams", "100"], settings: "drainTimeout: 60,")
    try site.declareTopology()
    let tokens = (0..<20).map(token)
    try site.send(tokens: tokens)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    #expect(journal.waitForLines(tokens.count, seconds: 60))
    worker.signal(Self.terminate)
    // Its start takes longer than the answers.
    try broker.restart()
    #expect(worker.wait() == 0, "\(worker.outputSoFar)")
    #expect(try eventually { try site.depths(["send.normal", "quarantine", "dead"]) == [0, 0, 0] })
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: tokens.map { ($0, 1) }))
  }

  @Test("a second signal ends it at once", arguments: [(15, 15), (2, 2)] as [(Int32, Int32)])
  func signalledTwice(_ first: Int32, _ second: Int32) throws {
    let site = try Site()
    let worker = try startStalled(site, drainTimeout: 600, pushes: 1)
    worker.signal(first)
    #expect(worker.waitForOutput(#""draining""#, seconds: 90))
    #expect(worker.isRunning)
    worker.signal(second)
    let begin = Date()
    #expect(worker.wait() == 0)
    #expect(Date().timeIntervalSince(begin) < 5)
    #expect(worker.outputSoFar.contains(#""because":"a second signal","given_back":1,"may_be_sent_twice":1"#))
    #expect(try eventually { try site.depths(["send.normal"]) == [1] })
  }

  @Test("SIGTERM before the broker was ever reached ends it as well")
  func terminatedEarly() throws {
    let site = try Site()
    site.brokerURI = "amqp://guest:guest@127.0.0.1:\(try FreePorts.take(1)[0])"
    try site.configure(port: 1)
    let worker = try site.start(["worker", "--config", site.file("pushfleet.json5")])
    #expect(worker.waitForOutput("no broker connection", seconds: 90))
    worker.signal(Self.terminate)
    #expect(worker.wait() == 0)
  }
}
