import Foundation
import TestSupport
import Testing

/// The recipe of docs/operate/dead-letters.md, with the broker's own shovel.
@Suite("Replaying dead letters", .blocking)
struct ReplayTests {
  /// Moves the dead letters to an exchange, and waits until that is done.
  private func shovel(_ site: Site, to exchange: String, _ destination: [String: String] = [:]) throws {
    let name = "replay-\(site.prefix)"
    // The braces of the page's only shovel.
    let page = try DocumentTests.text("docs/operate/dead-letters.md")
    let shown = try #require(page.firstMatch(of: /set_parameter shovel replay '(\{[^}]*\})'/)).1
    let object = try JSONSerialization.jsonObject(with: Data(shown.replacing("push.", with: "\(site.prefix).").utf8))
    var settings = try #require(object as? [String: Any])
    settings["dest-exchange"] = "\(site.prefix).\(exchange)"
    settings.merge(destination) { $1 }
    let text = String(decoding: try JSONSerialization.data(withJSONObject: settings), as: UTF8.self)
    try site.broker.control("set_parameter", "shovel", name, text)
    let listed = "lists:flatten(io_lib:format(\"~0p\", [rabbit_runtime_parameters:list()]))."
    #expect(try eventually { try !site.broker.evaluate(listed).contains(name) })
  }

  @Test(
    "sends each to its queue: pages send the rest of their broadcast, requests and changes are processed again", .early)
  func recipe() throws {
    let devices = 60
    let site = try Site()
    try site.broker.run(["/usr/lib/rabbitmq/bin/rabbitmq-plugins", "enable", "rabbitmq_shovel"])
    let settings = "fanOut: { pageSize: 10, prefetch: 1 },"
    try site.startFleet(
      script: ["*": ["delay_ms": 30], token(900): [["status": 400, "reason": "BadCollapseId"], ["status": 200]]],
      options: ["--streams", "5"], settings: settings)
    let sender = "senders: { s: { apns: \(site.apns()) } },"
    try site.configureFleet("sqlite:registry.db", settings: settings, apps: sender)
    try site.importDevices(0..<devices, #""topics":["all"]"#)
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    try site.publish([
      (["to": "/topics/all", "data": ["m": "b"]], ["message_id": "b", "headers": ["x-push-sender": "s"]])
    ])
    #expect(journal.waitForLines(15, seconds: 60))
    worker.signal(15)
    #expect(worker.wait() == 0)

    // The configuration lacks the sender; other letters come from the provider, the registry and the broker.
    try site.configureFleet("sqlite:registry.db", settings: settings)
    try site.publish([(["to": token(900), "data": ["m": "one"]], ["message_id": "one"])], to: "high")
    try site.publishChanges([(["op": "subscribe", "topic": "other", "tokens": [token(901)]], [:])])
    try site.drain()
    #expect(try eventually { try site.depths(["registry"]) == [0] })
    try site.publish([(["to": token(902), "data": ["m": "stale"]], ["message_id": "stale", "expiration": "1"])])
    #expect(try eventually { try site.depths(["send.normal"]) == [0] })
    let before = try site.depths(["dead"])[0]
    #expect(before >= 4)
    #expect(try site.campaigns()["b"]?["state"] as? String == "held")

    try site.configureFleet("sqlite:registry.db", settings: settings, apps: sender)
    try site.importDevices([901], #""user":"u""#)
    try site.steer("resume", "b")
    try shovel(site, to: "return")
    // The broker's own letter has no origin: it is at the end of the dead letters again.
    #expect(try site.depths(["dead", "send.high", "registry", "send.normal"]) == [1, 1, 1, 0])
    try shovel(site, to: "send", ["dest-exchange-key": "normal"])
    #expect(try site.depths(["dead", "send.normal"]) == [0, 1])
    try site.drain()
    #expect(try eventually { try site.depths(["registry"]) == [0] })
    #expect(try site.deliveries(of: "b") == Dictionary(uniqueKeysWithValues: (0..<devices).map { (token($0), 1) }))
    #expect(try site.results()["b"]! == (devices, 0, 1))
    #expect(try site.deliveries(of: "one") == [token(900): 1] && site.deliveries(of: "stale") == [token(902): 1])
    #expect(try site.depths(["dead", "fanout.normal"]) == [0, 0])
    let topics = try site.run(["topics", "list", "--config", site.file("pushfleet.json5"), "--json"])
    #expect(topics.output.contains("\"other\""), "\(topics.output)")
  }
}
