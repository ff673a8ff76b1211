import Foundation
import TestSupport
import Testing

@Suite("Webhooks", .blocking)
struct WebhookTests {
  private static let other = "com.example.other"
  static let secret = "whsec_" + Data("a secret of thirty-two bytes....".utf8).base64EncodedString()
  static let newer = "whsec_" + Data("another secret of enough bytes..".utf8).base64EncodedString()

  /// A Python receiver, which verifies each call.
  final class Receiver {
    struct Call {
      let id: String
      let status: Int
      let isGood: Bool
      let signatures: Int
      let path: String
      /// Kind, message id and own id of each event.
      let events: [(kind: String, message: String, id: String)]
      /// Whether each event has its content.
      let isWhole: [Bool]
    }

    let port: Int
    private let child: ChildProcess
    private let input = Pipe()

    init(_ site: Site, port: Int? = nil) throws {
      child = try ChildProcess(
        [
          "/usr/bin/python3", Site.support("webhook_receiver.py"), site.certificates.server, site.certificates.serverKey,
          secret,
        ],
        environment: ["PATH": "/usr/bin:/bin"], output: nil, input: input.fileHandleForReading)
      guard child.waitForLines(1, seconds: 60), let port = Int(child.outputSoFar.prefix { $0 != "\n" }) else {
        throw Broken("no receiver: \(child.outputSoFar)")
      }
      self.port = port
    }

    deinit { child.end() }

    /// The next answers.
    func answer(_ statuses: String...) throws {
      try input.fileHandleForWriting.write(contentsOf: Data((statuses.joined(separator: "\n") + "\n").utf8))
    }

    var calls: [Call] {
      Site.objects(child.outputSoFar.split(separator: "\n").dropFirst().joined(separator: "\n")).map { call in
        let data = (call["body"] as? [String: Any])?["data"] as? [String: Any]
        return Call(
          id: call["id"] as? String ?? "", status: call["status"] as? Int ?? 0,
          isGood: call["signed"] as? Bool == true && call["fresh"] as? Bool == true,
          signatures: call["signatures"] as? Int ?? 0, path: call["path"] as? String ?? "",
          events: (data?["events"] as? [[String: Any]] ?? []).map {
            ($0["kind"] as? String ?? "", $0["message_id"] as? String ?? "", $0["id"] as? String ?? "")
          }, isWhole: (data?["events"] as? [[String: Any]] ?? []).map { $0["event"] != nil })
      }
    }

    var accepted: [(kind: String, message: String, id: String)] { calls.filter { $0.status == 204 }.flatMap(\.events) }
  }

  func start(
    _ events: String = #"["results", "feedback", "receipts", "audit"]"#, secrets: String = "\"\(secret)\"",
    settings: String = ""
  ) throws
    -> (Site, Receiver, config: [String])
  {
    let site = try Site()
    try site.startSimulator(script: [token(2): ["status": 410, "reason": "Unregistered"]])
    let receiver = try Receiver(site)
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", results: "all", \(settings.isEmpty ? "receipts: true," : settings)
        apps: {
          "\(Site.app)": {
            apns: \(site.apns()),
            webhooks: { billing: {
              url: "https://LocalHost:\(receiver.port)/events", secret: [\(secrets)], events: \(events),
              ca: "\(site.certificates.authority)",
            } },
          },
          "\(Self.other)": { apns: \(site.apns(topic: Self.other)) },
        },
      }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    try site.drain()
    return (site, receiver, ["--config", site.file("pushfleet.json5")])
  }

  func serve(_ site: Site, _ config: [String], environment: [String: String] = [:]) throws -> ChildProcess {
    let process = try site.start(["webhooks"] + config, environment: environment)
    guard process.waitForOutput("a webhook is served", seconds: 60) else { throw Broken("not served: \(process.outputSoFar)") }
    return process
  }

  func end(_ process: ChildProcess) {
    process.signal(SIGTERM)
    #expect(process.wait() == 0, "\(process.outputSoFar)")
  }

  func depth(_ site: Site) -> Int { (try? site.depths(["webhook.\(Site.app).billing"]).first) ?? -1 }

  @Test("events of all four kinds and of no other application are posted, signed by each secret")
  func kinds() throws {
    let (site, receiver, config) = try start(secrets: "\"\(Self.newer)\", \"\(Self.secret)\"")
    let process = try serve(site, config)
    let worker = try site.startWorker()
    try site.send(tokens: [token(1), token(2)], app: Site.app)
    try site.send(tokens: [token(3)], app: Self.other)
    #expect(try site.run(["apps", "rate", Site.app, "1000/s"] + config).status == 0)
    try site.importDevices([1], #""app":"\#(Site.app)","user":"anna""#)
    try site.acknowledge([["op": "received", "token": token(1), "message_id": "m"]], ["app_id": Site.app])
    let wanted: Set = ["result", "feedback", "receipt", "audit"]
    #expect(eventually { wanted.isSubset(of: Set(receiver.accepted.map(\.kind))) }, "\(receiver.calls)")
    #expect(eventually { depth(site) == 0 })
    end(process)
    end(worker)
    #expect(receiver.calls.allSatisfy { $0.isGood && $0.signatures == 2 && $0.path == "/events" })
    #expect(receiver.accepted.count { $0.kind == "result" } == 2)
  }

  @Test("a call has up to 500 events, and is repeated with the same id until it is accepted")
  func repeated() throws {
    let (site, receiver, config) = try start(#"["results"]"#)
    try site.send(tokens: (10..<1_210).map(token), app: Site.app)
    try site.drain()
    #expect(depth(site) == 1_200)
    try receiver.answer("500", "302", "503 1")
    let process = try serve(site, config)
    #expect(eventually { receiver.accepted.count == 1_200 }, "\(receiver.accepted.count)")
    #expect(eventually { depth(site) == 0 })
    end(process)
    let calls = receiver.calls
    // If the broker is slow, a call has fewer events.
    #expect(calls.prefix(3).map(\.status) == [500, 302, 503] && calls.dropFirst(3).allSatisfy { $0.status == 204 })
    #expect(calls.allSatisfy { $0.events.count <= 500 } && calls.count >= 6)
    #expect(Set(calls.prefix(4).map(\.id)).count == 1 && Set(calls.map(\.id)).count == calls.count - 3)
    #expect(calls.allSatisfy { $0.isGood && $0.path == "/events" }, "redirects aren't followed")
    #expect(Set(receiver.accepted.map(\.message)).count == 1_200)
  }

  @Test("a call that is too large for the receiver is divided; an event that is too large comes without its content")
  func tooLarge() throws {
    let (site, receiver, config) = try start(#"["results"]"#)
    try site.send(tokens: (10..<14).map(token), app: Site.app)
    try site.drain()
    try receiver.answer("413", "413", "413", "204", "503 1", "204")
    let process = try serve(site, config)
    try #require(eventually { receiver.accepted.count >= 4 }, "\(receiver.calls)")
    #expect(eventually { depth(site) == 0 })
    end(process)
    let calls = receiver.calls
    #expect(calls.map(\.events.count).prefix(6) == [4, 2, 1, 1, 2, 2], "\(calls.map(\.events.count))")
    #expect(calls.map { $0.isWhole.allSatisfy(\.self) }.prefix(6) == [true, true, true, false, true, true])
    #expect(calls[4].id == calls[5].id && Set(calls.map(\.id)).count == calls.count - 1)
    #expect(calls.prefix(4).allSatisfy { $0.events[0].id == calls[0].events[0].id })
    #expect(Set(receiver.accepted.map(\.id)).count == 4 && receiver.accepted.count == 4)
  }

  @Test("without its registry, webhooks are served after two seconds")
  func withoutRegistry() throws {
    let (site, receiver, config) = try start(#"["results"]"#)
    try site.send(tokens: (10..<14).map(token), app: Site.app)
    try site.drain()
    let text = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    try site.write(
      text.replacingOccurrences(of: "sqlite:registry.db", with: "postgresql://127.0.0.1:1/none"), to: "pushfleet.json5")
    try receiver.answer("410")
    let process = try serve(site, config)
    #expect(process.waitForOutput("wants no more events (410)", seconds: 60))
    #expect(process.waitForOutput("the registry doesn't know that a webhook is paused", seconds: 60))
    #expect(eventually { receiver.calls.map(\.status) == [410] && depth(site) == 4 }, "\(receiver.calls)")
    end(process)
  }

  @Test("410 pauses the webhook, which the audit shows; resume continues it")
  func gone() throws {
    let port = try FreePorts.take(1)[0]
    let (site, receiver, config) = try start(#"["results"]"#, settings: Door.settings(port))
    let door = try Door(site, port: port)
    let key = try door.key("operate,view", ["--app", Site.app]).key
    try receiver.answer("410")
    try site.send(tokens: (10..<20).map(token), app: Site.app)
    try site.drain()
    let process = try serve(site, config)
    #expect(process.waitForOutput("wants no more events (410)", seconds: 60))
    #expect(
      try eventually {
        let webhooks = Site.objects(try site.run(["webhooks", "list", "--json"] + config).output)
        return webhooks.map { $0["state"] as? String } == ["paused"]
          && webhooks[0]["reason"] as? String == "the receiver answered 410"
      })
    #expect(eventually { depth(site) == 10 })
    let event = try #require(Site.objects(try site.run(["audit", "--json"] + config).output).first)
    #expect(event["subject"] as? String == "webhook:\(Site.app)/billing" && event["app"] as? String == Site.app)
    let listed = try door.json("GET", "/v1/fleet/webhooks", key)["webhooks"] as? [[String: Any]]
    #expect(listed?.map { $0["webhook"] as? String } == ["\(Site.app)/billing"])
    #expect(listed?.map { $0["reason"] as? String } == ["the receiver answered 410"])
    let other = try door.key("operate,view", ["--app", Self.other]).key
    #expect(try (door.json("GET", "/v1/fleet/webhooks", other)["webhooks"] as? [Any])?.isEmpty == true)
    let path = "/v1/fleet/webhooks/\(Site.app)%2Fbilling"
    for (path, key, status) in [
      (path + "/pause", other, 403), (path + "/drain", key, 404),
      ("/v1/fleet/webhooks/\(Site.app)%2Fbiling/pause", key, 404),
    ] { #expect(try door.ask("POST", path, key).status == status, "\(path)") }
    #expect(try door.json("POST", path + "/resume", key)["subject"] as? String == "webhook:\(Site.app)/billing")
    #expect(eventually { receiver.accepted.count == 10 })
    #expect(eventually { depth(site) == 0 })
    end(process)
    #expect(try site.run(["webhooks", "pause", "\(Site.app)/biling"] + config).status == 64)
  }

  @Test("a killed process loses no event, and repeats the call of a single event with the same id", arguments: [1, 700])
  func killed(count: Int) throws {
    let (site, receiver, config) = try start(#"["results"]"#)
    try site.send(tokens: (10..<10 + count).map(token), app: Site.app)
    try site.drain()
    try receiver.answer("500")
    let first = try serve(site, config)
    #expect(eventually { !receiver.calls.isEmpty })
    first.signal(SIGKILL)
    _ = first.wait()
    let second = try serve(site, config)
    #expect(eventually { Set(receiver.accepted.map(\.message)).count == count })
    #expect(eventually { depth(site) == 0 })
    end(second)
    #expect(Set(receiver.calls[0].events.map(\.id)).isSubset(of: receiver.accepted.map(\.id)))
    // With more events, the broker's pace decides which of them a process gathers into its first call.
    if count == 1 { #expect(receiver.calls[0].id == receiver.calls.first { $0.status == 204 }?.id) }
  }

  @Test("a lost connection to the broker is logged once for each webhook, and so is its return")
  func brokerLost() throws {
    let (site, _, config) = try start()
    let text = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    let webhook = try #require(text.firstMatch(of: /billing: (\{[^}]*\})/)).1
    try site.write(text.replacing("webhooks: {", with: "webhooks: { orders: \(webhook),"), to: "pushfleet.json5")
    try site.declareTopology()
    let process = try serve(site, config)
    #expect(process.waitForOutput(#""consuming""#, times: 2, seconds: 60))
    for times in 1...2 {
      // Other sites on this broker have webhooks of these names.
      for name in ["billing", "orders"] {
        try site.broker.closeConnections(consuming: "\(site.prefix).webhook.\(Site.app).\(name)")
      }
      #expect(process.waitForOutput(#""consuming""#, times: 2 * times + 2, seconds: 60))
    }
    end(process)
    func lines(_ words: String) -> Int { process.outputSoFar.split(separator: "\n").count { $0.contains("\"\(words)\"") } }
    #expect(lines("broker connection ended") == 4 && lines("consuming") == 6, "\(process.outputSoFar)")
  }

  @Test("mistakes in the settings are refused with their place")
  func mistakes() throws {
    let (site, _, config) = try start()
    let text = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    for (old, new, place) in [
      ("/events", "/events?a=b", "billing.url"), (Self.secret, "whsec_c2hvcnQ=", "billing.secret"),
      (#"["results", "#, #"["result", "#, "billing.events"), ("billing:", "\"bil ling\":", "isn't 1 to 32 letters"),
    ] {
      try site.write(text.replacingOccurrences(of: old, with: new), to: "pushfleet.json5")
      let refused = try site.run(["webhooks"] + config)
      #expect(refused.status == 78 && refused.output.contains(place), "\(new): \(refused.output)")
      #expect(!refused.output.contains("c2hvcnQ="))
    }
    for (file, words) in [("none.txt", "none.txt"), ("short.txt", "is not whsec_")] {
      try site.write("whsec_c2hvcnQ=", to: "short.txt")
      try site.write(
        text.replacingOccurrences(of: #"secret: ["\#(Self.secret)"]"#, with: "secret: '\(site.file(file))'"),
        to: "pushfleet.json5")
      let checked = try site.run(["config", "check"] + config)
      #expect(
        checked.status == 78 && checked.output.contains("billing.secret") && checked.output.contains(words), "\(checked.output)"
      )
    }
  }
}
