import Foundation
import TestSupport
import Testing

/// Follows every request by its id. An independent producer has each one confirmed as routed. At the end each request is in a
/// queue, is a dead letter, or has been sent to the provider.
@Suite("Channels and connections lost under load", .blocking, .early, .serialized)
struct ChannelLossTests {
  /// A broker that allows three seconds for a delivery, and six without a heartbeat.
  private static let broker = Result {
    try Broker(
      configuration: ["consumer_timeout = 3000", "heartbeat = 3"], erlang: "-rabbit channel_tick_interval 300")
  }

  private func makeSite(script: [String: Any] = [:]) throws -> Site {
    let broker = try Self.broker.get()
    let site = try Site(broker: broker)
    try site.startSimulator(script: script, settings: "prefetch: 300,")
    try site.declareTopology()
    return site
  }

  private func startPublishing(_ ids: Range<Int>, _ site: Site) throws -> ChildProcess {
    try site.startPublishing(
      lines: ids.map {
        [
          "body": ["to": token($0), "data": ["k": "v"]], "properties": ["message_id": "m-\($0)"],
          "exchange": "\(site.prefix).send", "routing_key": "normal",
        ]
      })
  }

  /// Stops the workers and returns the outcome of each request. Returned requests wait in the quarantine behind slow ones,
  /// which come back to it repeatedly; they end when no request is slow any more.
  private func account(_ ids: Range<Int>, _ site: Site, _ workers: [ChildProcess], mostDoubled: Int) throws {
    #expect(
      try eventually(seconds: 60) { try Set(site.deliveries().keys).count == ids.count }, "what is missing is looked at below")
    for worker in workers { worker.signal(15) }
    for worker in workers { #expect(worker.wait() == 0) }
    let simulator = try #require(site.simulator)
    try site.write("{}", to: "journal-script.json")
    simulator.signal(SIGHUP)
    #expect(simulator.waitForOutput("plays its script as it is now", seconds: 90))
    try site.drain()
    let asked = try site.pushes().reduce(into: [:]) { $0[$1.token, default: 0] += 1 }
    #expect(try site.depths(["send.normal", "quarantine", "retry.1s", "retry.10s"]) == [0, 0, 0, 0])
    let lost = ids.filter { asked[token($0)] == nil }
    #expect(lost == [])
    #expect(try site.take("dead").map(\.id) == [])
    let doubled = asked.values.count { $0 > 1 }
    #expect(doubled <= mostDoubled)
    print("\(ids.count) requests, \(lost.count) lost, \(doubled) sent more than once")
  }

  @Test("no request is lost if channels and connections close during deliveries and acknowledgements")
  func closedUnderLoad() throws {
    let ids = 0..<8_000
    // Held longer than the broker allows, one after the other.
    let slow = stride(from: 500, to: ids.upperBound, by: 1_500)
    let site = try makeSite(script: Dictionary(uniqueKeysWithValues: slow.map { (token($0), ["delay_ms": 4_000]) }))
    var workers = [try site.startWorker(), try site.startWorker()]
    var all = workers
    let producer = try startPublishing(ids, site)
    let journal = try site.followJournal()
    for share in 1...3 {
      #expect(journal.waitForLines(share * 2_000, seconds: 60))
      if share == 2 {
        // One is stopped in good order, and another takes its place.
        workers[0].signal(15)
        #expect(workers[0].wait() == 0)
        workers[0] = try site.startWorker()
        all.append(workers[0])
      } else {
        try site.broker.closeConnections(named: "consuming")
      }
    }
    #expect(producer.wait() == 0, "\(producer.outputSoFar)")
    #expect(eventually { all.contains { $0.outputSoFar.contains("closed the consuming channel") } })
    try account(ids, site, workers, mostDoubled: 3_000)
    let logs = all.map(\.outputSoFar).joined()
    #expect(!logs.contains("broke the protocol"), "\(logs)")
  }

  @Test("other workers take over from a suspended one; when it continues, it acknowledges none of its old deliveries")
  func stoodStill() throws {
    let ids = 0..<3_000
    let site = try makeSite()
    let stopped = try site.startWorker()
    let journal = try site.followJournal()
    let producer = try startPublishing(ids, site)
    #expect(journal.waitForLines(300, seconds: 60))
    stopped.signal(SIGSTOP)
    let other = try site.startWorker()
    #expect(producer.wait() == 0)
    // The broker closes the connection after two heartbeats, and delivers its requests to the other worker.
    #expect(try eventually(seconds: 60) { try Set(site.deliveries().keys).count == ids.count })
    let seen = stopped.outputSoFar.ranges(of: #""consuming""#).count
    stopped.signal(SIGCONT)
    #expect(stopped.waitForOutput(#""consuming""#, times: seen + 1, seconds: 90))
    #expect(!stopped.outputSoFar.contains("unknown delivery tag"))
    try account(ids, site, [stopped, other], mostDoubled: 300)
  }
}
