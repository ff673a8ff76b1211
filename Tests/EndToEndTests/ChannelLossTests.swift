import Foundation
import TestSupport
import Testing

/// Every request is followed by its id: a producer that is none of ours has each one confirmed as routed, and at the end each is in a
/// queue, a dead letter, or was asked of the provider.
@Suite("Channels and connections lost under load", .serialized)
struct ChannelLossTests {
  /// One that gives a consumer three seconds for a delivery, and a connection six for a sign of life.
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

  /// Stops the workers; what has become of each request. One of the `slow` ones may be back in a queue although it was sent: the broker takes
  /// it back each time that it has been held for too long, and at the stop as well. What a channel that is lost then takes back with it would
  /// be sent once more, and counts as doubled.
  private func account(
    _ ids: Range<Int>, _ site: Site, _ workers: [ChildProcess], slow: [Int] = [], mostDoubled: Int
  ) throws {
    #expect(
      try eventually(seconds: 60) { try Set(site.deliveries().keys).count == ids.count }, "what is missing is looked at below")
    for worker in workers { worker.signal(15) }
    for worker in workers { #expect(worker.wait() == 0) }
    let asked = try site.pushes().reduce(into: [:]) { $0[$1.token, default: 0] += 1 }
    let kept = try ["send.normal", "quarantine", "retry.1s", "retry.10s"].flatMap { try site.take($0) }.map(\.id)
    let lost = ids.filter { asked[token($0)] == nil && !kept.contains("m-\($0)") }
    #expect(lost == [], "neither sent nor kept")
    #expect(try site.take("dead").map(\.id) == [])
    let doubled = asked.values.count { $0 > 1 } + Set(kept).subtracting(slow.map { "m-\($0)" }).count
    #expect(doubled <= mostDoubled)
    print("\(ids.count) requests, \(lost.count) lost, \(doubled) sent more than once")
  }

  @Test("whoever closes channels and connections while deliveries and acknowledgements are on their way, no request is lost")
  func closedUnderLoad() throws {
    let ids = 0..<8_000
    // Held for longer than the broker allows, one after the other.
    let slow = stride(from: 500, to: ids.upperBound, by: 1_500)
    let site = try makeSite(script: Dictionary(uniqueKeysWithValues: slow.map { (token($0), ["delay_ms": 4_000]) }))
    var workers = [try site.startWorker(), try site.startWorker()]
    let producer = try startPublishing(ids, site)
    let journal = try site.followJournal()
    for share in 1...3 {
      #expect(journal.waitForLines(share * 2_000, seconds: 60))
      if share == 2 {
        // One is stopped in good order, and another takes its place.
        workers[0].signal(15)
        #expect(workers[0].wait() == 0)
        workers[0] = try site.startWorker()
      } else {
        try site.broker.closeConnections(named: "consuming")
      }
    }
    #expect(producer.wait() == 0, "\(producer.outputSoFar)")
    #expect(workers.contains { $0.outputSoFar.contains("closed the consuming channel") })
    let logs = workers.map(\.outputSoFar).joined()
    try account(ids, site, workers, slow: Array(slow), mostDoubled: 3_000)
    #expect(!logs.contains("broke the protocol"), "\(logs)")
  }

  @Test("a worker that stands still is relieved by the others; when it goes on, it acknowledges nothing of what it had")
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
    // The broker gives it up after two heartbeats, and hands what it held to the other one.
    #expect(try eventually(seconds: 60) { try Set(site.deliveries().keys).count == ids.count })
    let seen = stopped.outputSoFar.ranges(of: #""consuming""#).count
    stopped.signal(SIGCONT)
    #expect(stopped.waitForOutput(#""consuming""#, times: seen + 1, seconds: 30))
    #expect(!stopped.outputSoFar.contains("unknown delivery tag"))
    try account(ids, site, [stopped, other], mostDoubled: 300)
  }
}
