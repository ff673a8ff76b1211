import Foundation
import TestSupport
import Testing

/// The requests that Python's h2 (`h2_server.py`) receives in APNs' place.
@Suite("An independent APNs implementation")
struct ForeignAPNsTests {
  private struct Seen {
    let path: String
    /// Without those of HTTP/2, the credential and the push's id.
    let headers: [String: String]
    let body: String
  }

  /// By their paths, in order.
  private func seen(_ server: ChildProcess) -> [Seen] {
    Site.objects(server.outputSoFar).filter { $0["event"] as? String == "request" }
      .map { request in
        let all = Dictionary((request["headers"] as? [[String]] ?? []).map { ($0[0], $0[1]) }) { first, _ in first }
        let own = all.filter { $0.key.hasPrefix("apns-") && !["apns-id", "apns-request-id"].contains($0.key) }
        return Seen(path: all[":path"] ?? "", headers: own, body: request["body"] as? String ?? "")
      }
      .sorted { $0.path < $1.path }
  }

  @Test("gets Live Activities, broadcast channels and calls as in Apple's tables, each at its environment's host")
  func forms() throws {
    let site = try Site()
    let sandbox = try site.startForeignProvider()
    let sandboxPort = site.port
    let production = try site.startForeignProvider()
    try site.write(
      """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", results: "all",
        apps: { "\(Site.app)": { apns: [\(site.apns()), \(site.apns(#"environment: "sandbox","#, port: sandboxPort))] } } }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    let start =
      #"{"aps":{"alert":{"title":"Kick-off","body":"b"},"timestamp":1,"event":"start","attributes-type":"Match","attributes":{"home":"A"},"content-state":{"score":1}}}"#
    let update = #"{"aps":{"timestamp":2,"event":"update","content-state":{"score":2},"stale-date":9}}"#
    let end = #"{"aps":{"timestamp":3,"event":"end","content-state":{"score":3},"dismissal-date":9}}"#
    let channel = "dHN0LXNyY2gtY2hubA=="
    func activity(_ to: String, _ payload: String, _ more: String = "") -> String {
      #"{"to":"\#(to)",\#(more)"apns":{"headers":{"apns-push-type":"liveactivity"},"payload":\#(payload)}}"#
    }
    let sent: [(Any, [String: Any])] = [
      (activity(token(1), start, #""priority":"high","#), ["message_id": "start"]),
      (activity(token(2), update, #""time_to_live":0,"#), ["message_id": "update"]),
      (activity("apns-channel:\(channel)", end, #""priority":"high","#), ["message_id": "channel"]),
      (
        #"{"to":"apns:\#(token(3))","priority":"high","data":{"call":"7"},"apns":{"headers":{"apns-push-type":"voip"}}}"#,
        ["message_id": "voip"]
      ),
      (
        #"{"to":"\#(token(4))","notification":{"badge":3},"collapse_key":"k"}"#,
        ["message_id": "sandbox", "headers": ["x-push-environment": "sandbox"]]
      ),
    ]
    try site.publish(sent)
    try site.drain()

    let pushes = seen(production)
    #expect(
      pushes.map(\.path) == [
        "/3/device/\(token(1))", "/3/device/\(token(2))", "/3/device/\(token(3))", "/4/broadcasts/apps/\(Site.app)",
      ])
    guard pushes.count == 4 else { return }
    #expect(pushes.prefix(2).map(\.body) == [start, update] && pushes[3].body == end)
    for push in pushes.prefix(2) {
      #expect(push.headers["apns-push-type"] == "liveactivity")
      #expect(push.headers["apns-topic"] == "\(Site.app).push-type.liveactivity")
    }
    #expect(pushes[0].headers["apns-priority"] == "10" && pushes[1].headers["apns-priority"] == "5")
    #expect(pushes[1].headers["apns-expiration"] == "0" && Int(pushes[0].headers["apns-expiration"] ?? "") ?? 0 > 1_700_000_000)
    #expect(pushes[2].headers["apns-push-type"] == "voip" && pushes[2].headers["apns-topic"] == "\(Site.app).voip")
    #expect(pushes[2].body.contains(#""call":"7""#) && pushes[2].headers["apns-priority"] == "10")
    #expect(pushes[3].headers["apns-channel-id"] == channel && pushes[3].headers["apns-topic"] == nil)
    #expect(pushes[3].headers["apns-push-type"] == "liveactivity" && pushes[3].headers["apns-priority"] == "10")

    let sandboxed = seen(sandbox)
    #expect(sandboxed.map(\.path) == ["/3/device/\(token(4))"] && sandboxed.first?.body == #"{"aps":{"badge":3}}"#)
    #expect(sandboxed.first?.headers["apns-collapse-id"] == "k" && sandboxed.first?.headers["apns-topic"] == Site.app)
    let results = try site.take("results")
    #expect(results.count == sent.count && results.allSatisfy { $0.json["success"] as? Int == 1 }, "\(results.map(\.json))")
  }

  @Test("gets an MDM command as its magic alone, each counted badge incremented, and mps with the message's name")
  func commandsAndCounters() throws {
    let site = try Site()
    let server = try site.startForeignProvider()
    try site.configureFleet("sqlite:registry.db", apps: "upmc: true,")
    try site.declareTopology()
    try site.importDevices(1...1, #""user":"anna""#)
    try site.publish([
      (
        #"{"to":"apns:\#(token(2))","apns":{"headers":{"apns-push-type":"mdm","apns-topic":"\#(Site.app)"},"payload":{"mdm":"MAGIC"}}}"#,
        ["message_id": "command"]
      )
    ])
    for number in 1...3 {
      let request = #"{"to":"/users/anna","notification":{"title":"t","body":"\#(number)","badge":"auto"}}"#
      try site.publish([(request, ["message_id": "m\(number)"])])
    }
    try site.drain()
    #expect(try site.take("results").count == 4)

    let pushes = seen(server)
    let command = try #require(pushes.first { $0.path.hasSuffix(token(2)) })
    #expect(command.body == #"{"mdm":"MAGIC"}"# && command.headers["apns-push-type"] == "mdm")
    #expect(command.headers["apns-topic"] == Site.app)
    let bodies = try pushes.filter { $0.path.hasSuffix(token(1)) }
      .map { try #require(try JSONSerialization.jsonObject(with: Data($0.body.utf8)) as? [String: Any]) }
    let shown = bodies.compactMap { $0["aps"] as? [String: Any] }
    #expect(Set(shown.compactMap { $0["badge"] as? Int }) == [1, 2, 3] && shown.count == 3, "\(bodies)")
    let mps = bodies.compactMap { $0["mps"] as? [String: String] }
    #expect(Set(mps.compactMap { $0["pushkey"] }).count == 3 && Set(mps.compactMap { $0["seqno"] }).count == 3)
    #expect(mps.allSatisfy { $0["appid"] == Site.app && $0["senddate"]?.count == 10 }, "\(mps)")
  }

  @Test("is judged by its status, once and at once, if its answer is too long and doesn't end")
  func endlessAnswer() throws {
    let site = try Site()
    let server = try site.startForeignProvider(
      ["--endless", token(1), "--script", #"{"\#(token(1))": [400, "BadDeviceToken"]}"#], settings: #"results: "all","#)
    try site.declareTopology()
    try site.publish([
      (#"{"to":"\#(token(1))","time_to_live":12}"#, ["message_id": "endless"]),
      (#"{"to":"\#(token(2))"}"#, ["message_id": "good"]),
    ])
    try site.drain()
    let letters = try site.take("dead")
    #expect(letters.map { "\($0.id) \($0.header("x-push-status") ?? "")" } == ["endless 400"], "\(letters.map(\.headers))")
    #expect(try site.take("results").map(\.id).sorted() == ["endless", "good"])
    #expect(seen(server).map(\.path) == [1, 2].map { "/3/device/\(token($0))" })
  }

  @Test("gets the requests of Apple's table to make, show, list and delete channels")
  func channels() throws {
    let site = try Site()
    let server = try site.startForeignChannels()
    func ask(_ words: String...) throws -> Site.Ended {
      try site.run(["channels"] + words + ["--json", "--config", site.file("pushfleet.json5")])
    }
    let ids = try ["none", "latest"].map { storage in
      let made = try ask("create", "--storage", storage)
      return try #require(Site.objects(made.output).first?["channel"] as? String, "\(made.output)")
    }
    #expect(Set(Site.objects(try ask("list").output).compactMap { $0["channel"] as? String }) == Set(ids))
    #expect(Site.objects(try ask("show", ids[1]).output).first?["storage"] as? String == "latest")
    #expect(try ask("delete", ids[0]).status == 0)
    let gone = try ask("show", ids[0])
    #expect(gone.status == 65 && gone.output.contains("ChannelNotRegistered"), "\(gone)")
    #expect(try Site.objects(ask("list").output).compactMap { $0["channel"] as? String } == [ids[1]])

    let asked = Site.objects(server.outputSoFar).filter { $0["event"] as? String == "request" }
    #expect(asked.compactMap { $0["answer"] as? Int } == [201, 201, 200, 200, 204, 400, 200], "\(asked)")
    #expect(asked.allSatisfy { $0["protocol"] as? String == "h2" })
  }
}
