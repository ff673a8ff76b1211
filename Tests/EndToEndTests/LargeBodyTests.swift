import Foundation
import TestSupport
import Testing

@Suite("Bodies that exceed a worker's memory together", .blocking)
struct LargeBodyTests {
  /// Seconds between heartbeats; after two of these without one either side closes the connection.
  private static let heartbeat = 2

  @Test(
    "with one application's slow provider and large bodies, another's request gets through, the broker connection stays, nothing is lost"
  )
  func crowd() throws {
    let broker = try Broker(configuration: ["heartbeat = \(Self.heartbeat)"])
    defer { broker.stop() }
    let site = try Site(broker: broker)
    // It doesn't answer the probe push either.
    try site.startSimulator(script: [token(0): ["stall": true, "times": 1], "0": ["stall": true]])
    let calm = try site.startAPNs("calm").port
    try site.write(
      """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", retry: { steps: ["200ms", "1s"] },
        apps: { "\(Site.app)": { apns: \(site.apns("timeout: 12,")) }, "com.example.calm": { apns: \(site.apns(port: calm)) } } }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    let worker = try site.startWorker(["--json"])
    let padding = String(repeating: " ", count: 400_000)
    try site.publish(
      (0..<150).map { (#"{"to":"\#(token($0))",\#(padding)"data":{"k":"v"}}"#, ["app_id": Site.app, "message_id": "m\($0)"]) })
    let calmJournal = try site.followJournal("calm.ndjson")
    let published = Date()
    try site.publish([(#"{"to":"\#(token(1000))"}"#, ["app_id": "com.example.calm"])])
    #expect(calmJournal.waitForLines(1, seconds: 90))
    print("the other application's push arrived after \(Date().timeIntervalSince(published)) s")
    // Nothing was sent for the first one: no stream is free before its first answer.
    #expect(try site.deliveries().isEmpty)
    let peak =
      try String(contentsOfFile: "/proc/\(worker.pid)/status", encoding: .utf8).split(separator: "\n")
      .first { $0.hasPrefix("VmHWM:") }.flatMap { Int($0.split(separator: " ")[1]) } ?? .max
    print("the worker's memory reached \(peak / 1024) MiB")
    #expect(peak < 300 << 10)

    #expect(eventually(seconds: 60) { (try? site.deliveries().count) == 150 })
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: (0..<150).map { (token($0), 1) }))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(Site.objects(worker.outputSoFar).last?["redelivered"] as? Int == 0)
    #expect(!worker.outputSoFar.contains("broker connection ended"))
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
  }
}
