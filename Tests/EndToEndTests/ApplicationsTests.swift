import Foundation
import TestSupport
import Testing

@Suite("Applications that come and go while a worker runs", .blocking)
struct ApplicationsTests {
  private static let second = "com.example.second"

  /// The site's application, and others.
  private func configure(_ site: Site, more: String = "", others: String = "") throws {
    try site.write(
      """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", retry: { steps: ["200ms"] },
        apps: { "\(Site.app)": { apns: \(site.apns()), \(more) }, \(others) } }
      """, to: "pushfleet.json5")
  }

  private func start(others: String = "") throws -> (Site, ChildProcess) {
    let site = try Site()
    try site.startSimulator()
    try configure(site, others: others)
    try site.declareTopology()
    return (site, try site.startWorker())
  }

  /// Makes the worker reload, until it has logged the words so often.
  private func reload(_ worker: ChildProcess, until words: String, times: Int = 1) {
    worker.signal(SIGHUP)
    #expect(worker.waitForOutput(words, times: times, seconds: 90), "\(words)")
  }

  private func publish(_ site: Site, _ number: Int, app: String, sender: String? = nil) throws {
    let headers = sender.map { ["x-push-sender": $0] } ?? [:]
    try site.publish([
      (["to": "apns:\(token(number))", "data": ["k": "v"]], ["app_id": app, "message_id": "m\(number)", "headers": headers])
    ])
  }

  @Test("an added application is served, a removed one is unknown, and may be added again")
  func comeAndGo() throws {
    let (site, worker) = try start()
    let journal = try site.followJournal()
    let second = "\"\(Self.second)\": { apns: \(site.apns(topic: Self.second)) }"
    try publish(site, 1, app: Self.second)
    #expect(try site.take("dead", count: 1).map { $0.header("x-push-reason") } == ["app_id: no such application is configured"])

    try configure(site, others: second)
    reload(worker, until: "\(Self.second) (added)")
    try publish(site, 2, app: Self.second)
    #expect(journal.waitForLines(1, seconds: 90))

    try configure(site, more: "senders: { '1001': { apns: \(site.apns(topic: "com.example.beta")) } }", others: second)
    reload(worker, until: "\(Site.app).senders.1001 APNs production")
    try publish(site, 3, app: Site.app, sender: "1001")
    #expect(journal.waitForLines(2, seconds: 90))

    try configure(site)
    reload(worker, until: "\(Self.second) (removed)")
    try publish(site, 4, app: Self.second)
    try publish(site, 5, app: Site.app, sender: "1001")
    let dead = try site.take("dead", count: 2)
    #expect(Set(dead.map { $0.header("x-push-error") }) == ["InvalidParameters", "MismatchSenderId"])

    try configure(site, others: second)
    reload(worker, until: "\(Self.second) (added)", times: 2)
    try publish(site, 6, app: Self.second)
    #expect(journal.waitForLines(3, seconds: 90))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    let topics = try site.pushes().map { [$0.token, $0.headers["apns-topic"] ?? ""] }
    #expect(topics == [[token(2), Self.second], [token(3), "com.example.beta"], [token(6), Self.second]])
  }

  @Test("the others lose and repeat nothing while applications come and go ten times")
  func underLoad() throws {
    let (site, worker) = try start()
    let count = 1_500
    let publishing = try site.startPublishing(
      lines: (0..<count).map {
        [
          "body": ["to": "apns:\(token($0))", "data": ["k": "v"]], "exchange": "\(site.prefix).send", "routing_key": "normal",
          "properties": ["message_id": "m-\($0)", "app_id": Site.app],
        ]
      })
    for round in 1...10 {
      let others = (0..<20).map { "\"other.\($0)\": { apns: \(site.apns(topic: "other.\(round)")) }" }
      try configure(site, more: "defaultPriority: 'high'", others: others.joined(separator: ","))
      reload(worker, until: #""changed":21"#, times: 2 * round - 1)
      try configure(site)
      reload(worker, until: #""changed":21"#, times: 2 * round)
    }
    #expect(publishing.wait() == 0)
    #expect(try eventually(seconds: 90) { try site.pushes().count >= count })
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: (0..<count).map { (token($0), 1) }))
    #expect(try site.depths(["send.normal", "retry.200ms", "dead"]) == [0, 0, 0])
  }

  @Test("held requests of a removed application end in the dead letters")
  func held() throws {
    let site = try Site()
    try site.startSimulator()
    let (simulator, port) = try site.startAPNs("second")
    simulator.end()
    let second = "\"\(Self.second)\": { apns: \(site.apns(topic: Self.second, port: port)) }"
    try configure(site, others: second)
    try site.declareTopology()
    try site.send(tokens: (0..<100).map(token), app: Self.second)
    let worker = try site.startWorker()
    #expect(eventually { site.held(Self.second) > 80 })
    try configure(site)
    reload(worker, until: "\(Self.second) (removed)")
    #expect(try eventually { try site.depths(["dead"]) == [100] && site.held(Self.second) == 0 })
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.depths(["dead", "send.normal"]) == [100, 0] && site.held(Self.second) == 0)
  }
}
