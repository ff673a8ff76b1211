import Foundation
import TestSupport
import Testing

/// Uses a separate broker, which other suites don't share.
@Suite("Faults of the broker", .blocking, .early, .serialized)
struct BrokerFaultTests {
  /// A site with a broker of its own, reached by TLS, and a worker that consumes.
  private func makeSite(_ broker: Broker, gone: [String] = []) throws -> Site {
    let certificates = try TestCertificates.make()
    let site = try Site(broker: broker)
    site.brokerURI = broker.tlsURI
    try site.startSimulator(
      script: Dictionary(uniqueKeysWithValues: gone.map { ($0, ["status": 410, "reason": "Unregistered"]) }),
      settings: "brokerCA: \"\(certificates.authority)\", prefetch: 200,")
    try site.declareTopology()
    return site
  }

  private static let broker = Result {
    let certificates = try TestCertificates.make()
    return try Broker(certificates: (certificates.authority, certificates.server, certificates.serverKey))
  }

  /// Stops the worker: each device has its push, once, and nothing is left.
  private func check(_ site: Site, _ worker: ChildProcess, _ devices: [String]) throws {
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: devices.map { ($0, 1) }))
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
    for line in worker.outputSoFar.split(separator: "\n").dropLast() { #expect(line.first == "{", "\(line)") }
  }

  @Test("a broker killed under load loses nothing; the worker reconnects soon, and repeats nothing")
  func brokerKilled() throws {
    let broker = try Self.broker.get()
    let site = try makeSite(broker)
    let journal = try site.followJournal()
    let devices = (0..<2000).map(token)
    try site.send(tokens: devices)
    let worker = try site.startWorker()
    #expect(journal.waitForLines(500, seconds: 60))
    #expect(eventually(seconds: 90) { broker.isOnDisk(queue: "\(site.prefix).send.normal") })
    broker.kill9()
    #expect(worker.waitForOutput("broker connection ended", times: 2, seconds: 90))
    try broker.restart()
    let back = Date()
    #expect(worker.waitForOutput(#""consuming""#, times: 2, seconds: 90))
    let seconds = Date().timeIntervalSince(back)
    print("the worker consumed again \(seconds) s after the broker was back")
    #expect(seconds < 8)
    #expect(journal.waitForLines(devices.count, seconds: 60))
    try check(site, worker, devices)
  }

  @Test("connections that an operator closes again and again under load lose and repeat no push")
  func connectionsClosed() throws {
    let broker = try Self.broker.get()
    let site = try makeSite(broker)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    let devices = (0..<2000).map(token)
    try site.send(tokens: devices)
    for _ in 0..<3 { try broker.control("close_all_connections", "test") }
    #expect(journal.waitForLines(devices.count, seconds: 60))
    try check(site, worker, devices)
  }

  @Test(
    "under a memory or disk alarm deliveries continue, and publications wait for its end, on every connection",
    arguments: ["memory", "disk"])
  func alarm(_ kind: String) throws {
    let broker = try Self.broker.get()
    let gone = (0..<40).map { token(1_000_000 + $0) }
    let site = try makeSite(broker, gone: gone)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    // The alarm stops producers too: they finish before it, and the worker must wait until then.
    let devices = (0..<300).map(token)
    worker.signal(SIGSTOP)
    try site.send(tokens: devices + gone)
    switch kind {
    case "memory": try broker.raiseMemoryAlarm()
    default: try broker.evaluate("ok = rabbit_disk_monitor:set_disk_free_limit(1000000000000000).")
    }
    worker.signal(SIGCONT)
    #expect(journal.waitForLines(devices.count + gone.count, seconds: 60))
    #expect(worker.waitForOutput("the broker blocks publishing", seconds: 90))
    try broker.closeConnections(named: "publishing")
    #expect(worker.waitForOutput("the broker blocks publishing", times: 2, seconds: 90))
    #expect(try site.depths(["feedback"]) == [0])
    switch kind {
    case "memory": try broker.clearMemoryAlarm()
    default: try broker.evaluate("ok = rabbit_disk_monitor:set_disk_free_limit(1000000).")
    }
    #expect(Set(try site.take("feedback", count: gone.count).compactMap { $0.json["token"] as? String }) == Set(gone))
    try check(site, worker, devices)
  }

  @Test("a frozen broker is detected by heartbeats, and used again afterwards")
  func brokerFrozen() throws {
    let broker = try Self.broker.get()
    let site = try makeSite(broker)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    let devices = (0..<300).map(token)
    try site.send(tokens: devices)
    broker.freeze()
    #expect(worker.waitForOutput("no sign of life from the broker", times: 2, seconds: 90))
    broker.resume()
    #expect(worker.waitForOutput(#""consuming""#, times: 2, seconds: 90))
    #expect(journal.waitForLines(devices.count, seconds: 60))
    // The frozen broker returns requests of the lost connection late. Only this worker knows that it has pushed them.
    #expect(try eventually { try broker.messages(in: "\(site.prefix).send.normal") == 0 })
    try check(site, worker, devices)
  }
}
