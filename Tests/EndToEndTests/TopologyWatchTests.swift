import Foundation
import TestSupport
import Testing

/// A separate broker, which tries again each second to route failed messages, not every three minutes.
@Suite("Parts of the topology that are deleted by hand", .blocking)
struct TopologyWatchTests {
  private static let broker = Result { try Broker(erlang: "-rabbit dead_letter_worker_publisher_confirm_timeout 1000") }

  /// A site on which the first push to a device is put off for a second.
  private func makeSite() throws -> Site {
    let site = try Site(broker: Self.broker.get())
    try site.startSimulator(
      script: [token(1): ["status": 429, "reason": "TooManyRequests", "times": 1]],
      settings: #"retry: { steps: ["1s"] }, results: "all","#)
    try site.declareTopology()
    return site
  }

  private func unbind(_ site: Site, _ queue: String, _ exchange: String, _ key: String) throws {
    let line = [
      "do": "unbind", "queue": "\(site.prefix).\(queue)", "exchange": "\(site.prefix).\(exchange)", "routing_key": key,
    ]
    #expect(try site.peer(["try"], input: try site.writeLines([line])) == "ok\n")
  }

  private func deleteReturn(_ site: Site) throws { try site.peer(["delete", "--exchange", "\(site.prefix).return"]) }

  @Test("are declared again by a running worker, which logs them; messages that the broker kept are sent")
  func repaired() throws {
    let site = try makeSite()
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    try deleteReturn(site)
    try unbind(site, "feedback", "events", "feedback.#")
    try site.send(tokens: [token(1)])
    #expect(worker.waitForOutput("a part of the topology is gone", seconds: 10))
    #expect(worker.waitForOutput("the topology is whole again", seconds: 10))
    #expect(worker.outputSoFar.contains("no exchange '\(site.prefix).return'"), "\(worker.outputSoFar)")
    #expect(journal.waitForLines(2, seconds: 30))
    // Without the binding the message would be returned.
    try site.publish(lines: [["body": "{}", "exchange": "\(site.prefix).events", "routing_key": "feedback.a"]])
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1] && site.take("results").count == 1)
  }

  @Test("keep a batch from ending while messages wait for them outside the queues")
  func batch() throws {
    let site = try makeSite()
    try deleteReturn(site)
    try site.publish(lines: [
      [
        "body": ["to": token(2), "data": ["k": "v"]], "exchange": "\(site.prefix).retry", "routing_key": "1s",
        "properties": ["headers": ["x-push-origin": "send.normal"]],
      ]
    ])
    #expect(try eventually { try site.depths(["retry.1s"]) == [0] })
    let batch = try site.start(["worker", "--config", site.file("pushfleet.json5"), "--until-empty"])
    #expect(batch.waitForOutput("a part of the topology is gone", seconds: 60))
    #expect(try eventually(seconds: 30) { try site.deliveries() == [token(2): 1] })
    batch.signal(15)
    #expect(batch.wait() == 0)
  }

  @Test("are reported once by a worker that may not declare them")
  func withoutRights() throws {
    let site = try makeSite()
    let broker = site.broker
    let exchanges = "^\(site.prefix)\\.(send|fanout|retry|return|hold|events|dead)$"
    try broker.addUser(site.prefix, password: "p", configure: "^$", write: exchanges)
    site.brokerURI = "amqp://\(site.prefix):p@127.0.0.1:\(broker.port)"
    try site.configure(port: site.port, settings: #"retry: { steps: ["1s"] }, trace: { keep: "none" },"#)
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("bindings are not checked", seconds: 20))
    try deleteReturn(site)
    #expect(worker.waitForOutput("a part of the topology is gone", seconds: 20))
    let declared = try site.run(
      ["topology", "--config", site.file("pushfleet.json5")], environment: ["PUSHFLEET_BROKER": broker.uri])
    #expect(declared.status == 0, "\(declared.output)")
    #expect(worker.waitForOutput("the topology is whole again", seconds: 20))
    for line in ["a part of the topology is gone", "could not be declared", "bindings are not checked"] {
      #expect(worker.outputSoFar.components(separatedBy: line).count == 2, "\(worker.outputSoFar)")
    }
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
