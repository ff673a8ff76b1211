import Foundation
import TestSupport
import Testing

@Suite("Broadcast channels of APNs", .blocking)
struct ChannelTests {
  private func channels(_ site: Site, _ words: String...) throws -> Site.Ended {
    try site.run(["channels"] + words + ["--config", site.file("pushfleet.json5")])
  }

  /// Creates a channel and returns its id.
  private func create(_ site: Site, _ storage: String) throws -> String {
    let ended = try channels(site, "create", "--storage", storage, "--json")
    let line = try #require(Site.objects(ended.output).first, "\(ended.output)")
    #expect(ended.status == 0 && line["storage"] as? String == storage)
    return try #require(line["channel"] as? String)
  }

  private func update(_ channel: String, _ event: String = "update", _ fields: [String: Any] = [:]) -> [String: Any] {
    let aps: [String: Any] = ["timestamp": 1, "event": event, "content-state": ["score": 1]]
    return ["to": "apns-channel:\(channel)", "apns": ["payload": ["aps": aps]]].merging(fields) { $1 }
  }

  @Test("channels are made, listed, shown and deleted; APNs' refusals are an exit status with an explanation")
  func commands() throws {
    let site = try Site()
    try site.startSimulator()
    #expect(try channels(site, "list").output == "no channels\n")
    let (none, latest) = (try create(site, "none"), try create(site, "latest"))
    let listed = try channels(site, "list")
    #expect(listed.status == 0 && Set(listed.output.split(separator: "\n").map(String.init)) == [none, latest])
    let shown = try channels(site, "show", "--json", latest)
    #expect(Site.objects(shown.output).first?["storage"] as? String == "latest")
    #expect(try channels(site, "delete", "apns-channel:" + none).status == 0)
    let gone = try channels(site, "delete", none)
    #expect(gone.status == 65 && gone.output.contains("ChannelNotRegistered"))
    #expect(try channels(site, "list", "--json").output == #"{"channel":"\#(latest)"}"# + "\n")
    for words in [["show"], ["show", "not base64!"], ["create", "--storage", "some"], ["make"], ["list", "--app", "other"]] {
      #expect(try site.run(["channels"] + words + ["--config", site.file("pushfleet.json5")]).status == 64, "\(words)")
    }
    #expect(try channels(site, "list", "--environment", "sandbox").status == 78)
    site.stopSimulator()
    let unreachable = try channels(site, "list")
    #expect(unreachable.status == 69 && unreachable.output.contains("unreachable"), "\(unreachable)")
  }

  @Test("a broadcast goes to its channel once, under the app's bundle id; an unknown channel is a dead letter")
  func broadcasts() throws {
    let site = try Site()
    try site.startSimulator(settings: #"results: "all", retry: { steps: ["200ms"] },"#)
    try site.declareTopology()
    let (none, latest) = (try create(site, "none"), try create(site, "latest"))
    try site.write(
      #"{"\#(latest)": [{"status": 503, "reason": "Service Unavailable", "retry_after": 1}, {"status": 200}]}"#,
      to: "journal-script.json")
    site.simulator?.signal(1)
    #expect(site.simulator?.waitForOutput("plays its script as it is now", seconds: 90) == true)
    try site.publish([
      (update(none), ["message_id": "plain"]),
      (update(latest, "end", ["time_to_live": 600, "priority": "high"]), ["message_id": "again"]),
      (update("bm8gc3VjaA=="), ["message_id": "unknown"]), (update(none, "start"), ["message_id": "start"]),
      (update(none, "update", ["time_to_live": 600]), ["message_id": "stored"]),
      (
        update(
          none, "update",
          [
            "collapse_key": "k", "notification": ["body": String(repeating: "b", count: 2_000)],
            "data": ["k": String(repeating: "d", count: 2_900)],
          ]), ["message_id": "large"]
      ),
    ])
    try site.drain()
    let results = Dictionary(grouping: try site.take("results"), by: \.id).compactMapValues { $0.first?.json }
    let pushes = try site.pushes().filter { $0.headers["apns-channel-id"] != nil }
    let plain = try #require(pushes.first { $0.token == none && $0.status == 200 && $0.payload["k"] == nil })
    #expect(plain.headers["apns-push-type"] == "liveactivity" && plain.headers["apns-expiration"] == "0")
    #expect(plain.headers["apns-priority"] == "5" && plain.headers["apns-topic"] == nil && plain.violations.isEmpty)
    let ids = (results["plain"]?["results"] as? [[String: String]])?.first?["message_id"]
    #expect(ids == plain.headers["apns-request-id"])
    #expect(pushes.filter { $0.token == latest }.map(\.status) == [503, 200])
    #expect(
      pushes.filter { $0.token == latest }.allSatisfy {
        $0.headers["apns-priority"] == "10" && $0.headers["apns-expiration"] != "0"
      })
    #expect(results["again"]?["success"] as? Int == 1 && results["large"]?["success"] as? Int == 1)
    let dead = Dictionary(uniqueKeysWithValues: try site.take("dead").map { ($0.id, $0) })
    #expect(
      dead.mapValues { $0.header("x-push-error") } == [
        "unknown": "InvalidRegistration", "start": "InvalidParameters", "stored": "InvalidParameters",
      ])
    #expect(dead["unknown"]?.header("x-push-reason") == "ChannelNotRegistered")
    #expect(dead["stored"]?.header("x-push-reason") == "BadExpirationDate")
    #expect(try site.take("feedback").isEmpty)
  }

  @Test("broadcasts go to their own host if the configuration names one")
  func ownHost() throws {
    let site = try Site()
    let (_, port) = try site.startAPNs("broadcasts")
    try site.startSimulator(
      settings: #"results: "all","#,
      apns: #"broadcastEndpoint: "https://127.0.0.1:\#(port)", channelsEndpoint: "https://127.0.0.1:\#(port)","#)
    try site.declareTopology()
    let channel = try create(site, "none")
    var request = update(channel)
    request["to"] = nil
    request["registration_ids"] = ["apns-channel:\(channel)", "apns-channel:\(channel)", "apns-channel:no such"]
    try site.publish([(request, ["message_id": "list"])])
    try site.drain()
    #expect(try site.pushes().isEmpty)
    let result = try #require(try site.take("results").first?.json)
    #expect(result["success"] as? Int == 2 && result["failure"] as? Int == 1)
    #expect(try site.take("dead").compactMap { $0.json["to"] as? String } == ["apns-channel:no such"])
    let journal = try String(contentsOfFile: site.file("broadcasts.ndjson"), encoding: .utf8)
    #expect(Site.objects(journal).count { $0["path"] as? String == "/4/broadcasts/apps/\(Site.app)" } == 1)
  }
}
