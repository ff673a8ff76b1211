import Foundation
import TestSupport
import Testing

/// The simulator's journal names the connection of each push.
@Suite("Applications with one APNs key", .blocking)
struct SharedConnectionTests {
  private static let apps = ["com.example.a", "com.example.b", "com.example.c"]

  private func configure(_ site: Site, _ apps: [String] = apps, keys: [String: String] = [:], settings: String = "") throws {
    let entries = apps.map { app in
      let apns = site.apns(topic: app)
      return
        "\"\(app)\": { apns: \(keys[app].map { apns.replacing("keyID: \"ABC123DEFG\"", with: "keyID: \"\($0)\"") } ?? apns) }"
    }
    try site.write(
      """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", \(settings) apps: { \(entries.joined(separator: ", ")) } }
      """, to: "pushfleet.json5")
  }

  private func start(script: [String: Any] = [:], options: [String] = [], settings: String = "") throws -> Site {
    let site = try Site()
    try site.startSimulator(script: script, options: options)
    try configure(site, settings: settings)
    try site.declareTopology()
    return site
  }

  private func request(_ app: String, _ number: Int) -> (body: Any, properties: [String: Any]) {
    (["to": "apns:\(token(number))", "notification": ["body": "b"]], ["app_id": app, "message_id": "m\(number)"])
  }

  private func topic(_ push: Site.Push) -> String { push.headers["apns-topic"] ?? "" }

  @Test("share one connection in each shard")
  func shared() throws {
    let site = try start(settings: "shards: 2, prefetch: 10,")
    try site.publish((0..<300).map { request(Self.apps[$0 % 3], $0) })
    try site.drain()
    let pushes = try site.pushes()
    #expect(pushes.count == 300 && pushes.allSatisfy { $0.status == 200 })
    let topics = Dictionary(grouping: pushes, by: \.connection).mapValues { Set($0.map(topic)) }
    #expect(topics.count <= 2 && topics.values.contains(Set(Self.apps)), "\(topics)")
  }

  @Test("have equal parts of the streams: one's backlog doesn't hold up another's requests")
  func fairness() throws {
    let site = try start(script: ["*": ["delay_ms": 10]], options: ["--streams", "10"])
    // All are published before the worker starts, so that their rate doesn't matter.
    try site.publish((0..<1_500).map { request(Self.apps[0], $0) } + (2_000..<2_040).map { request(Self.apps[1], $0) })
    let worker = try site.startWorker()
    #expect(try eventually(seconds: 60) { try site.pushes().count { topic($0) == Self.apps[1] } == 40 })
    worker.end()
    let order = try site.pushes().map(topic)
    let (first, last) = (order.firstIndex(of: Self.apps[1]) ?? 0, order.lastIndex(of: Self.apps[1]) ?? 0)
    let between = last + 1 - first - 40
    #expect(between <= 120, "\(between) of the backlog between the others' 40, after \(first)")
  }

  @Test("have separate troubles if the provider refuses a topic")
  func separateTrouble() throws {
    let port = try FreePorts.take(1)[0]
    let site = try start(options: ["--topic", Self.apps[0]], settings: "metrics: \"127.0.0.1:\(port)\",")
    try site.publish((0..<5).map { request(Self.apps[1], $0) } + (100..<150).map { request(Self.apps[0], $0) })
    let worker = try site.startWorker()
    #expect(try eventually(seconds: 30) { try site.pushes().count { $0.status == 200 } == 50 })
    var figures = ""
    let expected = [
      "pool_in_trouble{pool=\"\(Self.apps[0]) APNs production\"} 0",
      "pool_in_trouble{pool=\"\(Self.apps[1]) APNs production\"} 1",
      "credential_ok{pool=\"\(Self.apps[0]) APNs production\"} 1",
      "provider_connections{pool=\"\(Self.apps[0]) APNs production\"} 1",
    ]
    #expect(
      eventually(seconds: 30) {
        figures = HTTPProbe(port: port).ask("/metrics")?.body ?? ""
        return expected.allSatisfy { figures.contains("\npushfleet_\($0)\n") }
      }, "\(figures)")
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.depths(["dead"]) == [0])
  }

  @Test("lose and repeat nothing when one gets its own key, one is removed and one is added")
  func reload() throws {
    let site = try start(script: ["*": ["delay_ms": 5]], options: ["--streams", "20"])
    try configure(site, Array(Self.apps.prefix(2)))
    try site.publish((0..<600).map { request(Self.apps[$0 % 2], $0) })
    let worker = try site.startWorker()
    let journal = try site.followJournal()
    #expect(journal.waitForLines(50, seconds: 90))
    try configure(site, keys: [Self.apps[1]: "OTHERKEYID"])
    worker.signal(SIGHUP)
    #expect(worker.waitForOutput("\(Self.apps[2]) (added)", seconds: 90))
    try site.publish((600..<660).map { request(Self.apps[$0 % 3], $0) })
    #expect(journal.waitForLines(660, seconds: 90))
    try configure(site, Array(Self.apps.dropFirst()))
    worker.signal(SIGHUP)
    #expect(worker.waitForOutput("\(Self.apps[0]) (removed)", seconds: 90))
    try site.publish((660..<700).map { request(Self.apps[1 + $0 % 2], $0) })
    #expect(journal.waitForLines(700, seconds: 90))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    let pushes = try site.pushes()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: (0..<700).map { (token($0), 1) }))
    #expect(Set(pushes.map(\.connection)).count == 2, "the shared one, and the one with the key of its own")
    #expect(Set(pushes.filter { topic($0) != Self.apps[1] }.map(\.connection)).count == 1)
  }
}
