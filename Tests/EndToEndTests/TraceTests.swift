import Foundation
import TestSupport
import Testing

@Suite("Tracing a request", .blocking)
struct TraceTests {
  @Test(
    "finds the outcome by message id, apns-id or token, from an ended worker too, and says if a request waits")
  func shown() throws {
    let site = try Site()
    let gone = token(2)
    let busy = token(3)
    try site.startSimulator(
      script: [
        gone: ["status": 410, "reason": "Unregistered"], busy: ["status": 503, "reason": "ServiceUnavailable"],
      ], settings: #"retry: { steps: ["1h"] },"#)
    try site.declareTopology()
    let secret = "payload-secret"
    let bodies = [
      ("odd", #"{"to":"\#(token(4))","notifcation":{}}"#), ("taken", #"{"to":"\#(token(1))","data":{"k":"\#(secret)"}}"#),
      ("gone", #"{"to":"\#(gone)"}"#), ("busy", #"{"to":"\#(busy)"}"#),
      ("list", #"{"registration_ids":["\#(token(1))","\#(gone)","\#(token(5))"]}"#),
    ]
    try site.publish(bodies.map { ($0.1, ["message_id": $0.0, "timestamp": Int(Date().timeIntervalSince1970)]) })
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    #expect(journal.waitForLines(6, seconds: 60))
    worker.signal(15)
    #expect(worker.wait() == 0)

    func trace(_ id: String) throws -> [[String: Any]] {
      let ended = try site.run(["trace", id, "--config", site.file("pushfleet.json5"), "--json"])
      #expect(ended.status == 0, "\(id): \(ended.output)")
      #expect(!ended.output.contains(secret) && !ended.output.contains(gone))
      return Site.objects(ended.output)
    }
    let taken = try #require(try trace("taken").first)
    let push = try #require((taken["pushes"] as? [[String: Any]])?.first)
    #expect(taken["outcome"] as? String == "delivered" && taken["acknowledged"] as? Bool == true)
    #expect(taken["queue"] as? String == "send.normal" && taken["devices"] as? Int == 1 && taken["waited_ms"] as? Int != nil)
    #expect(push["status"] as? Int == 200 && push["connection"] as? Int == 1 && push["round_trip_ms"] as? Int != nil)
    let apnsID = try #require(push["apns_id"] as? String)
    #expect(try trace(apnsID).map { $0["message_id"] as? String } == ["taken"])

    let dead = try #require(try trace("gone").first)
    let answer = try #require((dead["pushes"] as? [[String: Any]])?.first)
    #expect(dead["outcome"] as? String == "failed" && dead["feedback"] as? Int == 1)
    #expect(answer["reason"] as? String == "Unregistered" && answer["error"] as? String == "NotRegistered")

    let waiting = try #require(try trace("busy").first)
    #expect(waiting["outcome"] as? String == "waits" && waiting["waits_in"] as? String == "retry.1h")
    #expect(waiting["waits_because"] as? String == "ServiceUnavailable")
    let refused = try #require(try trace("odd").first)
    #expect(refused["outcome"] as? String == "refused" && refused["error"] as? String == "InvalidParameters")
    #expect(try trace("apns:\(gone)").compactMap { $0["message_id"] as? String }.sorted() == ["gone", "list"])
    #expect((try trace("list").first?["outcomes"] as? [String: Int]) == ["delivered": 2, "NotRegistered": 1])

    let text = try site.run(["trace", "busy", "--config", site.file("pushfleet.json5")])
    for words in [
      "message busy", "answered 503", "moved to \(site.prefix).retry.1h", "its return from there is not in the trace",
    ] {
      #expect(text.output.contains(words), "\(text.output)")
    }
    let unknown = try site.run(["trace", "nobody", "--config", site.file("pushfleet.json5")])
    #expect(unknown.status == 65 && unknown.output.contains(#"nothing is known of "nobody""#), "\(unknown.output)")
  }

  @Test(
    "a user's requests are found while an operator's pause holds them, and their way into the hold queue stays in the trace")
  func heldOfUser() throws {
    let site = try Site()
    try site.startFleet()
    try site.importDevices([1], #""user":"anna","installation":"phone""#)
    let config = ["--config", site.file("pushfleet.json5")]
    #expect(try site.run(["apps", "pause", Site.app] + config).status == 0)
    let worker = try site.startWorker()
    try site.publish([
      (#"{"to":"/users/anna"}"#, ["message_id": "to-anna"]), (#"{"to":"\#(token(1))"}"#, ["message_id": "to-token"]),
      (#"{"to":"/users/ben"}"#, ["message_id": "to-ben"]),
    ])
    func trace(_ words: [String]) throws -> [String: [String]] {
      let rounds = Site.objects(try site.run(["trace", "--json"] + words + config).output)
      return Dictionary(grouping: rounds) { $0["message_id"] as? String ?? "" }
        .mapValues { rounds in
          // A request takes the ladder while the hold queue is declared.
          rounds.compactMap { $0["outcome"] as? String }.reduce(into: []) { if $0.last != $1 { $0.append($1) } }
        }
    }
    let user = ["--user", "anna"]
    #expect(eventually { site.held(Site.app) == 3 })
    #expect(try eventually { try trace(user) == ["to-anna": ["waits"], "to-token": ["waits"]] })
    #expect(try trace(user + ["--app", Site.app]) == trace(user))
    for other in [["--installation", "phone"], [token(1)]] { #expect(try trace(other) == trace(user), "\(other)") }
    #expect(try site.run(["apps", "resume", Site.app] + config).status == 0)
    let both = ["waits", "delivered"]
    #expect(try eventually { try trace(user) == ["to-anna": both, "to-token": both] })
    let text = try site.run(["trace", "to-anna"] + config).output
    for words in ["moved to \(site.prefix).hold.\(Site.app): an operator has paused", "received from \(site.prefix).hold"] {
      #expect(text.contains(words), "\(text)")
    }
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test("finds a request once, though its channel is lost while it reads")
  func channelLost() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    let queue = "\(site.prefix).trace"
    try site.publish(
      lines: (0..<1_000).map { ["body": ["message_id": "m-\($0)"], "exchange": queue, "routing_key": "request"] })
    let trace = try site.start(["trace", "m-0", "--config", site.file("pushfleet.json5"), "--json"])
    // The consumer that reads from the beginning, after the one that has found the end.
    try site.broker.closeChannel(consuming: queue, tag: "1.1")
    #expect(trace.wait() == 0, "\(trace.outputSoFar)")
    #expect(Site.objects(trace.outputSoFar).map { $0["message_id"] as? String } == ["m-0"])
  }

  @Test("finds a device's push of a broadcast, though the page's line names others, and its user's acknowledgements")
  func deviceStory() throws {
    let site = try Site()
    let later = (Int(Date().timeIntervalSince1970) + 3_600) * 1_000
    try site.startFleet(
      script: [
        token(3): ["status": 410, "reason": "Unregistered", "timestamp": later],
        token(4): ["status": 413, "reason": "PayloadTooLarge"],
      ], settings: "breaker: { percent: 90, sample: 1000 },")
    try site.importDevices(1...100, #""topics":["all"]"#)
    try site.importDevices([3], #""topics":["all"],"user":"carl""#)
    try site.importDevices([60], #""topics":["all"],"user":"anna","installation":"phone""#)
    let worker = try site.startWorker()
    try site.broadcast("m")
    #expect(try eventually { try site.depths(["results"]) == [1] })
    try site.acknowledge([
      ["op": "received", "token": token(60), "message_id": "m", "at": "2026-11-20T18:25:01Z"],
      ["op": "read", "token": token(60), "message_id": "m", "at": "2026-11-20T18:26:10Z"],
    ])
    #expect(try eventually { try site.campaigns()["m"]?["read"] as? Int == 1 })
    #expect(
      try eventually {
        try site.run(["devices", "show", "--user", "carl", "--config", site.file("pushfleet.json5")]).output.contains("gone")
      })
    let carl = try site.write(#"{"to":"/users/carl","notification":{"body":"x"}}"#, to: "carl.json")
    let sent = try site.run(["send", "--wait", "--config", site.file("pushfleet.json5"), carl])
    #expect(
      sent.status == 65 && sent.output.contains("reached no device: 1 device is gone (Unregistered since 20"), "\(sent.output)")
    worker.signal(15)
    #expect(worker.wait() == 0)
    let campaign = try #require(try site.campaigns()["m"]?["id"] as? String)
    let result = try #require(try site.take("results").first { $0.id == "m" }?.json)
    let failures = (result["failures"] as? [[String: Any]])?.map { "\($0["count"] ?? 0) \($0["error"] ?? "")" }.sorted()
    #expect(failures == ["1 MessageTooBig", "1 NotRegistered"], "\(result)")
    let shown = try site.run(["campaigns", "show", campaign, "--config", site.file("pushfleet.json5")])
    #expect(shown.output.contains("1 MessageTooBig (APNs)") && !shown.output.contains("remaining"), "\(shown.output)")

    func trace(_ words: [String]) throws -> Site.Ended {
      try site.run(["trace"] + words + ["--config", site.file("pushfleet.json5")])
    }
    let strangers = (1...100).filter { $0 != 60 }.map { "0000…" + token($0).suffix(4) }
    for words in [
      [token(60)], ["--user", "anna"], ["--installation", "phone"],
      ["--campaign", String(campaign.prefix(9)), "--token", token(60)],
    ] {
      let json = try trace(words + ["--json"])
      let told = try #require(Site.objects(json.output).first)
      #expect(json.status == 0 && Site.objects(json.output).count == 1, "\(json.output)")
      #expect(told["message_id"] as? String == "m" && told["outcome"] as? String == "delivered", "\(json.output)")
      let acknowledged = (told["acknowledgements"] as? [[String: Any]])?.first
      #expect(acknowledged?["received_at"] as? String == "2026-11-20T18:25:01.000Z")
      #expect(acknowledged?["read_at"] as? String == "2026-11-20T18:26:10.000Z")
      let text = try trace(words)
      for words in ["message m", "accepted by APNs", "received by the app", "18:26:10.000  read by the user"] {
        #expect(text.output.contains(words), "\(text.output)")
      }
      #expect(!strangers.contains { text.output.contains($0) || json.output.contains($0) }, "\(text.output)")
    }
    let dead = try #require(Site.objects(try trace([token(3), "--json"]).output).first)
    #expect((dead["pushes"] as? [[String: Any]])?.compactMap { $0["status"] as? Int } == [410])
    let text = try trace([token(4)])
    #expect(text.output.contains("this device and 99 others") && text.output.contains("PayloadTooLarge"), "\(text.output)")
    #expect(text.output.contains("message m, application \(Site.app): MessageTooBig"), "\(text.output)")
    let nobody = try trace(["--user", "nobody"])
    #expect(nobody.status == 65 && nobody.output.contains("no such device"), "\(nobody.output)")
    #expect(try trace(["--campaign", campaign, "m"]).status == 64)

    let gone = try site.run(["devices", "show", "--user", "carl", "--config", site.file("pushfleet.json5")])
    #expect(gone.status == 0 && gone.output.contains("gone") && gone.output.contains(" since 20"), "\(gone.output)")
  }

  @Test(
    "exports a sampled request's spans to a strict collector; a refusing or missing one only loses spans")
  func spans() throws {
    let site = try Site()
    try site.startSimulator(script: [token(2): ["status": 400, "reason": "BadDeviceToken"]])
    try site.declareTopology()
    let collector = try site.startCollector([
      "--certificate", site.certificates.server, "--key", site.certificates.serverKey, "--header", "x-tenant=a, b",
    ])
    let config = site.file("pushfleet.json5")
    let trace = "4bf92f3577b34da6a3ce929d0e0e473"
    func publish() throws {
      try site.publish(
        [(1, "01"), (2, "01"), (3, "00")].map { number, flags in
          (
            #"{"to":"\#(token(number))"}"#,
            [
              "message_id": "m-\(number)", "headers": ["traceparent": "00-\(trace)\(number)-00f067aa0ba902b7-\(flags)"],
            ]
          )
        })
    }
    func work(_ environment: [String: String]) throws -> Site.Ended {
      try publish()
      return try site.run(["worker", "--config", config, "--until-empty"], environment: environment)
    }
    let taken = try work([
      "OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:\(collector.port)", "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=a%2C%20b",
      "OTEL_EXPORTER_OTLP_CERTIFICATE": site.certificates.authority,
    ])
    #expect(taken.status == 0, "\(taken.output)")
    #expect(collector.process.waitForLines(5, seconds: 90))
    let spans = Site.objects(collector.process.outputSoFar).filter { $0["trace"] != nil }
    #expect(spans.count == 4 && !collector.process.outputSoFar.contains("refused"), "\(collector.process.outputSoFar)")
    for number in [1, 2] {
      let own = spans.filter { $0["trace"] as? String == "\(trace)\(number)" }
      let process = try #require(own.first { $0["kind"] as? Int == 5 })
      let send = try #require(own.first { $0["kind"] as? Int == 3 })
      let attributes = try #require(send["attributes"] as? [String: Any])
      #expect(process["parent"] as? String == "00f067aa0ba902b7" && send["parent"] as? String == process["span"] as? String)
      #expect(attributes["http.response.status_code"] as? Int == (number == 1 ? 200 : 400))
      #expect((process["attributes"] as? [String: Any])?["messaging.message.id"] as? String == "m-\(number)")
      #expect(send["status"] as? Int == (number == 1 ? 0 : 2))
    }
    let refusing = try site.startCollector(["--status", "503"])
    for (port, reason) in [(refusing.port, "answers 503"), (1, "connecting failed")] {
      let ended = try work(["PUSHFLEET_TRACES": "http://127.0.0.1:\(port)"])
      #expect(ended.status == 0 && ended.output.contains("spans reached no collector"), "\(ended.output)")
      #expect(ended.output.contains(reason), "\(ended.output)")
    }
    #expect(try site.depths(["send.normal"]) == [0] && site.deliveries()[token(1)] == 3)
  }

  @Test("is optional for a worker that may not declare or write the stream: it says so once and delivers")
  func withoutStream() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    try site.peer(["delete", "\(site.prefix).trace"])
    // A queue of that name that is no stream.
    try site.peer(["declare", "\(site.prefix).trace"])
    try site.send(tokens: (0..<20).map { token($0) })
    let config = site.file("pushfleet.json5")
    let ended = try site.run(["worker", "--config", config, "--until-empty"])
    #expect(ended.status == 0 && ended.output.contains("requests are not traced"), "\(ended.output)")
    #expect(try site.deliveries().count == 20 && site.depths(["trace"]) == [0])
    let off = ["PUSHFLEET_TRACE_KEEP": "none"]
    let quiet = try site.run(["worker", "--config", config, "--until-empty"], environment: off)
    #expect(quiet.status == 0 && !quiet.output.contains("trace"), "\(quiet.output)")
  }

  @Test("names the program once in each notice, for a fleet without a trace and for one without a registry")
  func notices() throws {
    let site = try Site()
    try site.startFleet()
    try site.importDevices([1], #""user":"anna""#)
    try site.peer(["delete", "\(site.prefix).trace"])
    let config = ["--config", site.file("pushfleet.json5")]
    let untraced = try site.run(["trace", "--user", "anna"] + config)
    #expect(untraced.output.contains("pushfleet: requests are not traced"), "\(untraced.output)")
    let nowhere = ["PUSHFLEET_REGISTRY": "sqlite:/nowhere/registry.db"]
    let unregistered = try site.run(["trace", "m"] + config, environment: nowhere)
    #expect(unregistered.output.contains("pushfleet: the registry can't be read"), "\(unregistered.output)")
    for ended in [untraced, unregistered] { #expect(!ended.output.contains("pushfleet: pushfleet:"), "\(ended.output)") }
  }
}
