import Foundation
import Settings
import TestSupport
import Testing

@testable import pushfleet

@Suite("When the broker freezes", .blocking, .early)
struct FrozenBrokerTests {
  /// Words of a command, and the names of its connections.
  private static let all: [(words: [String], connections: [String], statuses: [Int32])] = [
    (["worker"], ["publishing", "consuming", "registry changes", "acknowledgements", "trace", "worker, status"], [0]),
    (["gateway"], ["pushfleet gateway"], [0]), (["webhooks"], ["pushfleet webhooks"], [0]),
    (["feedback", "--follow"], ["pushfleet feedback"], [0]), (["top", "--json"], ["pushfleet status"], [0]),
    (["dead", "replay", "--rate", "1/h"], ["pushfleet dead replay"], [69]),
  ]

  @Test("a signal ends each process and command within the time of a few closes")
  func signalled() throws {
    let broker = try Broker()
    defer { broker.stop() }
    let site = try Site(broker: broker)
    let door = try FreePorts.take(1)[0]
    try site.write(
      """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", trace: { keep: "1h" }, registry: "sqlite:registry.db",
        gateway: { http: { listen: "127.0.0.1:\(door)" } },
        apps: { "\(Site.app)": { apns: \(site.apns(port: 1)),
          webhooks: { hook: { url: "https://127.0.0.1:1/", secret: "\(WebhookTests.secret)", events: ["results"] } } } } }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    try site.publish(
      lines: (0..<3).map {
        [
          // A dry run leads to no publication, for whose confirm the worker would wait.
          "body": #"{"to":"\#(String(repeating: "ab", count: 32))","dry_run":true}"#, "exchange": "\(site.prefix).dead",
          "routing_key": "dead",
          "properties": ["message_id": "\($0)", "headers": ["x-push-origin": "send.high"]],
        ]
      })
    let children = try Self.all.map { try site.start($0.words + ["--config", site.file("pushfleet.json5")]) }
    let names = Self.all.flatMap(\.connections)
    #expect(
      try eventually(seconds: 90) {
        let shown = try broker.clientProperties()
        // The replay has one connection to publish, and one to consume.
        return names.allSatisfy { shown.contains($0) } && shown.ranges(of: "pushfleet dead replay").count == 2
      })
    broker.freeze()
    for (child, kind) in zip(children, Self.all) {
      let begin = ContinuousClock.now
      child.signal(15)
      let status = child.wait()
      let seconds = (ContinuousClock.now - begin) / .seconds(1)
      #expect(kind.statuses.contains(status) && seconds < 11, "\(kind.words): \(status) after \(seconds) s")
    }
  }

  @Test("or dies, commands that end by themselves wait only for a while")
  func dead() throws {
    let broker = try Broker()
    defer { broker.stop() }
    let site = try Site(broker: broker)
    try site.configure(port: 1, settings: #"trace: { keep: "1h" },"#)
    try site.declareTopology()
    #expect(eventually { broker.isOnDisk(queue: "\(site.prefix).feedback") })
    let configuration = try Configuration.load(path: site.file("pushfleet.json5"), environment: [:])
    let clients: [BrokerClient] = [
      // An empty stream is read for seconds.
      try TraceReader(configuration, subject: TraceSubject(.init(.id, "m-1"), nil)),
      try FleetWatch(configuration, every: nil) { _ in },
      try FeedbackReader(configuration, FeedbackSelection(), follows: false, command: nil),
    ]
    for (place, client) in clients.enumerated() {
      if place > 0 { try broker.restart() }
      client.handlesSignals = false
      func killWhenUp() {
        client.loop.schedule(after: 0) { if client.isUp { broker.kill9() } else { killWhenUp() } }
      }
      killWhenUp()
      client.loop.schedule(after: 40) { client.finish() }
      #expect(throws: CommandFailure.self, "\(type(of: client))") { try client.run() }
      #expect(client.isUp, "\(type(of: client))")
    }
  }

  @Test("or dies, the state of the fleet shows nothing of an earlier one")
  func stale() throws {
    let broker = try Broker()
    defer { broker.stop() }
    let site = try Site(broker: broker)
    let port = try FreePorts.take(1)[0]
    try site.configure(port: 1, settings: #"registry: "sqlite:registry.db", "# + Door.settings(port))
    try site.declareTopology()
    let worker = try site.startWorker()
    let door = try Door(site, port: port)
    let view = try door.key("view").key
    func status() throws -> (problem: String?, workers: Int, queues: Int) {
      let json = try door.json("GET", "/v1/fleet/status", view)
      return (json["problem"] as? String, (json["workers"] as? [Any])?.count ?? -1, (json["queues"] as? [Any])?.count ?? -1)
    }
    #expect(try eventually { try status().workers == 1 })
    broker.kill9()
    var shown = try status()
    #expect(
      try eventually {
        shown = try status()
        return shown.problem != nil
      })
    #expect(shown.workers == 0 && shown.queues == 0, "\(shown)")
    worker.signal(SIGKILL)
    _ = worker.wait()
  }
}
