import Foundation
import TestSupport
import Testing

@Suite("Applications beside each other", .blocking, .early, .serialized)
struct IsolationTests {
  private static let troubled = "com.example.troubled"

  /// Two applications, each with its own simulator in the configuration.
  private func configure(_ site: Site, troubledPort: Int, settings: String = "") throws {
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", prefetch: 300, \(settings)
        apps: {
          "\(Site.app)": { apns: \(site.apns()) },
          "\(Self.troubled)": { apns: \(site.apns(topic: Self.troubled, port: troubledPort)) },
        },
      }
      """, to: "pushfleet.json5")
  }

  /// A site with requests of the troubled application before those of the other. Unless it has a script, the troubled one's
  /// simulator is ended; its journal is `troubled.ndjson`.
  private func prepare(troubled: Int, others: Int, script: [String: Any]? = nil, settings: String = "") throws -> (
    Site, port: Int
  ) {
    let site = try Site()
    try site.startSimulator()
    let (simulator, port) = try site.startAPNs("troubled", script: script ?? [:])
    if script == nil { simulator.end() }
    try configure(site, troubledPort: port, settings: settings)
    try site.declareTopology()
    try site.send(tokens: (0..<troubled).map(token), app: Self.troubled)
    if others > 0 { try site.send(tokens: (100_000..<100_000 + others).map(token), app: Site.app) }
    return (site, port)
  }

  @Test("requests of one whose provider is unreachable don't hold up another's, and all are sent when it is back")
  func unreachable() throws {
    let troubled = 3_000
    let (site, port) = try prepare(troubled: troubled, others: 500)
    let worker = try site.startWorker()
    let begun = ContinuousClock.now
    #expect(try site.followJournal().waitForLines(500, seconds: 60))
    print("the others' last push after \(ContinuousClock.now - begun)")
    _ = try site.startAPNs("troubled", port: port)
    let back = ContinuousClock.now
    let journal = try site.followJournal("troubled.ndjson")
    #expect(journal.waitForLines(1, seconds: 120))
    print("the troubled one's first push after \(ContinuousClock.now - back)")
    #expect(journal.waitForLines(troubled, seconds: 120))
    print("the troubled one's last push after \(ContinuousClock.now - back)")
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try Set(site.pushes().map(\.token)).count == 500)
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0] && site.held(Self.troubled) == 0)
  }

  @Test("requests of one whose provider is silent don't hold up another's")
  func silent() throws {
    let troubled = 3_000
    let script = Dictionary(uniqueKeysWithValues: (0..<troubled).map { (token($0), ["stall": true]) })
    let (site, _) = try prepare(troubled: troubled, others: 500, script: script, settings: "drainTimeout: 1,")
    let worker = try site.startWorker()
    let begun = ContinuousClock.now
    #expect(try site.followJournal().waitForLines(500, seconds: 20))
    print("the others' last push after \(ContinuousClock.now - begun)")
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try Set(site.pushes().map(\.token)).count == 500)
    // A request on its way to the hold queue when the time was over may be in both. One in the retry queue moves to its lane meanwhile.
    var left: Set<String> = []
    let found = try eventually {
      let queues = ["send.normal", "retry.1s", "dead"] + (site.held(Self.troubled) > 0 ? ["hold.\(Self.troubled)"] : [])
      left.formUnion(try queues.flatMap { try site.take($0) }.compactMap { $0.json["to"] as? String })
      return (0..<troubled).allSatisfy { left.contains(token($0)) }
    }
    #expect(found, "\(left.count) of \(troubled)")
  }

  @Test("held requests of a killed worker are sent by another one")
  func killed() throws {
    let (site, port) = try prepare(troubled: 500, others: 0)
    let worker = try site.startWorker()
    // A request on its way to the hold queue when the worker is killed may be in both. Eight remain in hand.
    // Acknowledgements of the originals follow the last confirms.
    var looks = 0
    #expect(
      eventually {
        looks = site.held(Self.troubled) == 492 ? looks + 1 : 0
        return looks == 5
      })
    worker.signal(SIGKILL)
    _ = worker.wait()
    _ = try site.startAPNs("troubled", port: port)
    try site.drain()
    let journal = try String(contentsOfFile: site.file("troubled.ndjson"), encoding: .utf8)
    let tokens = Site.objects(journal).compactMap { $0["token"] as? String }
    #expect(Set(tokens).count == 500 && tokens.count == 500)
  }

  @Test("held requests are in the metrics and listed by topology")
  func shown() throws {
    let (site, troubled) = try prepare(troubled: 40, others: 0)
    let port = try FreePorts.take(1)[0]
    try configure(site, troubledPort: troubled, settings: "metrics: \"127.0.0.1:\(port)\",")
    let list = ["topology", "--config", site.file("pushfleet.json5"), "--holds"]
    #expect(try site.run(list).output.hasSuffix("no hold queue: they are declared when they are needed\n"))
    let worker = try site.startWorker()
    // A few of each are always in hand, to probe the provider.
    let expected = [
      "hold_queue_requests_ready{app=\"\(Self.troubled)\"} 32", "hold_queue_requests_in_hand{app=\"\(Self.troubled)\"} 8",
      "pool_in_trouble{pool=\"\(Self.troubled) APNs production\"} 1",
    ]
    var figures = ""
    #expect(
      eventually(seconds: 30) {
        figures = HTTPProbe(port: port).ask("/metrics")?.body ?? ""
        return expected.allSatisfy { figures.contains("\npushfleet_\($0)\n") }
      }, "\(figures)")
    let moved = figures.firstMatch(of: /\npushfleet_hold_queue_requests_total ([0-9]+)\n/).flatMap { Int($0.1) } ?? 0
    let isParked = figures.contains(/\npushfleet_pushes_parked_total\{[^}]*\} [1-9]/)
    #expect(moved >= 32 && !isParked, "\(figures)")
    let queue = "\(site.prefix).hold.\(Self.troubled)"
    #expect(try site.run(list).output.hasSuffix("\(queue): 32 ready\n"))
    let listed = Site.objects(try site.run(list + ["--json"]).output).last
    #expect(listed?["queue"] as? String == queue && listed?["ready"] as? Int == 32)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test("a hold queue that exists with other arguments is named in the log; the requests wait on the ladder")
  func foreignQueue() throws {
    let (site, port) = try prepare(troubled: 40, others: 0)
    try site.peer(["declare", "\(site.prefix).hold.\(Self.troubled)"])
    let worker = try site.startWorker()
    let line = "the hold queue of an application could not be declared"
    #expect(worker.waitForOutput(line, seconds: 60), "\(worker.outputSoFar)")
    #expect(worker.outputSoFar.contains("queue \(site.prefix).hold.\(Self.troubled): "), "\(worker.outputSoFar)")
    _ = try site.startAPNs("troubled", port: port)
    #expect(try site.followJournal("troubled.ndjson").waitForLines(40, seconds: 120))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test("a request with a lifetime of 0 is sent when the provider is back, even if no held request could probe it")
  func nowOrNever() throws {
    let site = try Site()
    try site.startSimulator()
    site.stopSimulator()
    try site.configure(port: site.port)
    try site.declareTopology()
    let worker = try site.startWorker()
    func send(_ number: Int) throws { try site.send(lines: [#"{"to":"\#(token(number))","time_to_live":0,"data":{"k":"v"}}"#]) }
    var number = 0
    #expect(
      try eventually(seconds: 40) {
        try send(number)
        number += 1
        return (try site.depths(["dead"]).first ?? 0) > 2
      })
    try site.startSimulator()
    #expect(
      try eventually(seconds: 20) {
        try send(number)
        number += 1
        return try site.pushes().count > 3
      })
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }
}
