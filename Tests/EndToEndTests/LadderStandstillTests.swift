import Foundation
import TestSupport
import Testing

/// In RabbitMQ 3.10, a message with an unreadable `x-death` stops the process that moves expired messages, for all queues of a
/// node.
@Suite("Retries that are stuck", .blocking, .early)
struct LadderStandstillTests {
  @Test("are found by doctor, and continue after the runbook's remedy, without a loss on the ladder")
  func recovery() throws {
    let site = try Site(broker: try Broker(), prefix: "push")
    try site.startFleet(script: [token(1): [["status": 503, "reason": "ServiceUnavailable"], ["status": 200]]])
    func doctor() throws -> (status: Int32, output: String) {
      let ended = try site.run(["doctor", "--config", site.file("pushfleet.json5")])
      return (ended.status, ended.output)
    }
    let good = try doctor()
    #expect(good.status == 0 && good.output.contains("retries come back from the ladder"), "\(good.output)")
    #expect(try eventually { try site.depths(["doctor", "dead"]) == [0, 0] })

    try site.publish([("{}", ["headers": ["x-death": ["forged"]], "expiration": "1"])])
    let bad = try doctor()
    #expect(bad.status == 69 && bad.output.contains("retries stand still"), "\(bad.output)")

    let others = try site.broker.messages(in: "push.send.normal")
    let worker = try site.startWorker()
    try site.send(tokens: [token(1), token(2)])
    #expect(try eventually { try site.deliveries()[token(2)] == 1 })
    let log = try String(contentsOfFile: "\(site.broker.directory)/log/broker.log", encoding: .utf8)
    let queue = try #require(
      log.firstMatch(of: /queue_ref =>\s+(?:\S+ \S+ \[\w+\] <[\d.]+>\s+)?\{resource,<<"\/">>,queue,<<"([^"]+)">>/)
    ).1
    #expect(queue == "push.send.normal")
    #expect(try site.deliveries()[token(1)] == nil)
    let section = try DocumentTests.text("docs/operate/runbook.md").components(separatedBy: "### ").first {
      $0.hasPrefix("Retries")
    }
    #expect(try eventually { try site.broker.messages(in: "push.send.normal") == others })
    // A busy worker doesn't declare the queue in time.
    worker.signal(SIGSTOP)
    for line in try #require(section).matches(of: /`(?:(rabbitmqctl .*?)|pushfleet topology)`/) {
      if let command = line.1 {
        try site.broker.run(["/bin/sh", "-c", String(command)])
      } else {
        try #require(try eventually { try site.run(["topology", "--config", site.file("pushfleet.json5")]).status == 0 })
      }
    }
    #expect(try eventually { try site.depths(["send.normal", "dead"]) == [1, 0] })
    worker.signal(SIGCONT)
    #expect(try eventually { try site.deliveries()[token(1)] == 1 })
    #expect(try eventually { try doctor().status == 0 })
    #expect(try eventually { try site.depths(["doctor", "dead"]) == [0, 0] })
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
