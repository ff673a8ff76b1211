import Foundation
import TestSupport
import Testing

@Suite("The reports of commands on outcomes", .blocking)
struct CommandOutcomeTests {
  /// A site with a worker, whose devices 1, 2 and 3 accept pushes, refuse them and are gone.
  private func start(settings: String = "") throws -> (site: Site, config: [String]) {
    let site = try Site()
    try site.startSimulator(
      script: [
        token(2): ["status": 400, "reason": "BadDeviceToken"],
        token(3): ["status": 410, "reason": "Unregistered", "timestamp": 1_732_137_600_000],
      ], settings: settings)
    try site.declareTopology()
    return (site, ["--config", site.file("pushfleet.json5")])
  }

  private static func request(_ to: String) -> String { #"{"to":"\#(to)","notification":{"body":"Hello"}}"# }

  @Test("send --wait prints the outcome of each request, with the reason, and its status says if all were reached")
  func wait() throws {
    let (site, config) = try start()
    let worker = try site.startWorker()
    let good = try site.write(Self.request(token(1)), to: "good.json")
    let delivered = try site.run(["send", "--wait"] + config + [good])
    #expect(
      delivered.status == 0 && delivered.output.contains("good.json, line 1: accepted by APNs for 1"), "\(delivered.output)")

    let list = #"{"registration_ids":["\#(token(1))","\#(token(2))"],"notification":{"body":"x"}}"#
    let lines = [Self.request(token(1)), list, Self.request(token(3)), #"{"to":"\#(token(1))","notifcation":{}}"#, "[]"]
    let file = try site.write(lines.joined(separator: "\n"), to: "lines.ndjson")
    let mixed = try site.run(["send", "--wait"] + config + [file])
    #expect(mixed.status == 65)
    for words in [
      "line 1: accepted by APNs for 1",
      "line 2: accepted by APNs for 1, failed for 1: target 2: InvalidRegistration: BadDeviceToken",
      "line 3: failed: NotRegistered", "line 4: failed: InvalidParameters: notifcation: unknown key at byte",
      "4 sent, 1 refused, 1 accepted, 3 failed",
    ] { #expect(mixed.output.contains(words), "\(words) is not in \(mixed.output)") }

    let json = Site.objects(try site.run(["send", "--wait", "--json"] + config + [good]).output)
    #expect(json.count == 2 && (json.first?["results"] as? [[String: String]])?.first?["message_id"] != nil)
    #expect(json.last as? [String: Int] == ["sent": 1, "refused": 0, "delivered": 1, "failed": 0, "unknown": 0])

    // No worker is there to report the outcome.
    worker.signal(15)
    worker.wait()
    let unknown = try site.run(["send", "--wait", "--timeout", "1"] + config + [good])
    #expect(unknown.status == 69 && unknown.output.contains("line 1: unknown, no outcome came"), "\(unknown.output)")
    #expect(unknown.output.contains("is a worker running?"))
    let named = try site.run(["send", "--ids"] + config + [good])
    let id = named.output.split(separator: "\n").first.map(String.init)
    #expect(try named.status == 0 && site.take("send.normal").last?.id == id)
  }

  @Test("send gives up if the broker accepts nothing for the given time, and says where to continue")
  func giveUp() throws {
    let (site, config) = try start()
    let queue = "\(site.prefix).send.normal"
    try site.broker.limit(queue, to: 5)
    try site.send(tokens: (0..<50).map(token))
    let lines = try site.write((0..<200).map { Self.request(token($0)) }.joined(separator: "\n"), to: "lines.ndjson")
    let ended = try site.run(["send", "--timeout", "1"] + config + [lines])
    #expect(ended.status == 69 && ended.output.contains("the broker confirmed nothing for 1 s: "), "\(ended.output)")
    #expect(ended.output.contains("to go on, send from ") && ended.output.contains("lines.ndjson, line "))
    try site.broker.limit(queue, to: nil)
  }

  @Test("feedback acknowledges events that its command has processed, and none that it only read or skipped")
  func feedback() throws {
    let (site, config) = try start()
    try site.send(tokens: [token(2), token(3), token(3)])
    try site.drain()
    func tokens(_ options: [String]) throws -> [String] {
      let ended = try site.run(["feedback"] + config + options)
      #expect(ended.status == 0, "\(ended.output)")
      return Site.objects(ended.output).compactMap { $0["token"] as? String }
    }
    let all = [token(2), token(3), token(3)]
    #expect(try tokens(["--peek"]).sorted() == all && tokens(["--peek", "--limit", "1"]).count == 1)
    #expect(try tokens(["--peek", "--event", "Moved"]) == [])
    #expect(try tokens(["--event", "InvalidRegistration", "--app", Site.app]) == [token(2)])
    // The command runs once for each batch. The broker may deliver the two events in one batch or in two.
    for (command, words) in [("cat >/dev/null; exit 3", "the command ended with status 3: its "), ("kill -9 $$", "signal 9")] {
      let failed = try site.run(["feedback", "--exec", command] + config)
      #expect(failed.status == 69 && failed.output.contains(words), "\(failed.output)")
    }
    let seen = site.file("seen.ndjson")
    #expect(try tokens(["--exec", "cat >> \(seen)"]) == [])
    #expect(try Site.objects(String(contentsOfFile: seen, encoding: .utf8)).count == 2)
    #expect(try tokens([]) == [])
    #expect(try site.depths(["feedback", "dead"]) == [0, 1])
  }

  @Test("feedback acknowledges no unprocessed event if its connection is lost while its command runs")
  func feedbackConnectionLost() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    let queue = "\(site.prefix).feedback"
    func publish(_ names: [String]) throws {
      try site.publish(lines: names.map { ["body": ["token": $0], "exchange": "", "routing_key": queue] })
    }
    let file = site.file("seen.ndjson")
    func seen() -> Int { ((try? String(contentsOfFile: file, encoding: .utf8)) ?? "").count { $0 == "\n" } }
    /// Lets the command end that runs after so many events.
    func end(after count: Int, status: Int) throws {
      try #require(eventually { seen() == count })
      let way = try #require(FileHandle(forWritingAtPath: site.file("status-\(count)")))
      try way.write(contentsOf: Data("\(status)".utf8))
      try way.close()
    }
    for count in [1, 2, 5] { #expect(mkfifo(site.file("status-\(count)"), 0o600) == 0) }
    let command = """
      cat >> \(file); exit $(timeout 120 cat \(site.file("status"))-$(wc -l < \(file)))
      """
    let follower = try site.start(["feedback", "--follow", "--exec", command, "--config", site.file("pushfleet.json5")])
    try publish(["a"])
    try end(after: 1, status: 0)
    try publish(["b"])
    #expect(eventually { seen() == 2 })
    try site.broker.closeConnections(consuming: queue)
    // The new connection numbers its deliveries from 1 again: b, c and d.
    try publish(["c", "d"])
    #expect(try eventually { try site.depths(["feedback"]) == [0] })
    try end(after: 2, status: 0)
    try end(after: 5, status: 3)
    #expect(follower.wait() == 69 && follower.outputSoFar.contains("its 3 events stay"), "\(follower.outputSoFar)")
    #expect(try site.take("feedback", count: 3).map { $0.json["token"] as? String } == ["b", "c", "d"])
  }

  @Test(
    "simulators with their own certificates print the configuration for them, and pushes arrive with it",
    arguments: ["apns", "fcm"])
  func selfSigned(provider: String) throws {
    let site = try Site()
    let words = [
      "simulate", provider, "--listen", "127.0.0.1:0", "--self-signed", site.file("made"), "--journal", site.file("j"),
    ]
    let child = try site.start(words)
    try #require(child.waitForOutput("  \(provider): {", seconds: 90), "\(child.outputSoFar)")
    let advice = child.outputSoFar.split(separator: "\n").last ?? ""
    try site.write(
      "{ broker: \"\(site.brokerURI)\", prefix: \"\(site.prefix)\", apps: { \"\(Site.app)\": { \(advice) } } }",
      to: "pushfleet.json5")
    let mode = try FileManager.default.attributesOfItem(atPath: site.file("made/server.key"))[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(
      try site.foreign([
        "/usr/bin/openssl", "verify", "-x509_strict", "-CAfile", site.file("made/ca.pem"), site.file("made/server.pem"),
      ])
      .contains("OK"))
    try site.declareTopology()
    try site.send(lines: [Self.request(provider == "apns" ? token(1) : "fcm:abcdefgh")])
    #expect(try site.drain()["delivered"] as? Int == 1)
    child.end()
    // A second start keeps what the first has made.
    let key = try String(contentsOfFile: site.file("made/ca.pem"), encoding: .utf8)
    #expect(try site.start(words).waitForOutput("listens", seconds: 90))
    #expect(try String(contentsOfFile: site.file("made/ca.pem"), encoding: .utf8) == key)
  }
}
