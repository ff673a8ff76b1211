import Foundation
import TestSupport
import Testing

@Suite("Operators stop and resume", .blocking)
struct OperatorTests {
  private static let other = "com.example.other"

  /// A fleet with two applications and their own simulators, and its configuration option.
  private func start(_ kind: RegistryKind = .sqlite, settings: String = "") throws -> (Site, config: [String]) {
    let site = try Site()
    try site.startSimulator()
    let (_, port) = try site.startAPNs("other")
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", prefetch: 300, registry: "\(try kind.make())",
        results: "all", fanOut: { pageSize: 100 }, \(settings)
        apps: {
          "\(Site.app)": { apns: \(site.apns()) },
          "\(Self.other)": { apns: \(site.apns(topic: Self.other, port: port)) },
        },
      }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    // Creates the registry.
    try site.drain()
    return (site, ["--config", site.file("pushfleet.json5")])
  }

  private func states(_ site: Site, _ config: [String], _ command: String = "apps") throws -> [String: String] {
    let list = Site.objects(try site.run([command, "list", "--json"] + config).output)
    let key = String(command.dropLast())
    return Dictionary(uniqueKeysWithValues: list.map { ($0[key] as? String ?? "", $0["state"] as? String ?? "") })
  }

  @Test("a paused application's requests wait without a counted attempt, another one's are sent", arguments: RegistryKind.all)
  func pause(_ kind: RegistryKind) throws {
    let (site, config) = try start(kind)
    try site.importDevices(0..<300, #""app":"\#(Site.app)","topics":["all"]"#)
    let paused = try site.run(["apps", "pause", Site.app, "--reason", "wrong text"] + config)
    #expect(paused.status == 0 && paused.output.contains("paused") && paused.output.contains("wrong text"), "\(paused.output)")
    // A worker that starts now knows it before its first request.
    try site.send(tokens: (1_000..<2_100).map(token), app: Site.app)
    try site.publish([(["to": "/topics/all", "data": ["m": "b"]], ["app_id": Site.app, "message_id": "b"])])
    try site.send(tokens: (3_000..<3_100).map(token), app: Self.other)
    let workers = [try site.startWorker(), try site.startWorker()]
    #expect(try site.followJournal("other.ndjson").waitForLines(100, seconds: 30))
    #expect(eventually { site.held(Site.app) == 1_101 }, "\(site.held(Site.app))")
    #expect(try site.pushes().isEmpty && site.depths(["dead", "retry.1s"]) == [0, 0])
    let held = try site.run(["held", "list", "--app", Site.app] + config)
    #expect(
      held.output.contains("1,000 held requests of 1,101") && held.output.contains("an operator has paused the application"),
      "\(held.output)")

    #expect(try site.run(["apps", "resume", Site.app] + config).status == 0)
    #expect(try site.followJournal().waitForLines(1_400, seconds: 60))
    for worker in workers {
      worker.signal(SIGTERM)
      #expect(worker.wait() == 0)
    }
    #expect(try site.deliveries().values.allSatisfy { $0 == 1 } && site.held(Site.app) == 0)
    #expect(try site.results()["b"]! == (300, 0, 1))
    #expect(try site.depths(["dead", "send.normal", "fanout.normal"]) == [0, 0, 0])
  }

  @Test("workers follow within two seconds; what waits in their lanes goes to the hold queue")
  func whileRunning() throws {
    let (site, config) = try start()
    let worker = try site.startWorker()
    try site.send(tokens: [token(1)], app: Site.app)
    #expect(try site.followJournal().waitForLines(1, seconds: 30))
    let begun = ContinuousClock.now
    #expect(try site.run(["apps", "pause", Site.app] + config).status == 0)
    #expect(worker.waitForOutput(#""state":"paused""#, seconds: 30), "\(worker.outputSoFar)")
    print("the worker followed after \(ContinuousClock.now - begun)")
    #expect(worker.waitForOutput("the hold queue of an application is ready", seconds: 30), "the first request needs no detour")
    try site.send(tokens: (10..<60).map(token), app: Site.app)
    #expect(eventually { site.held(Site.app) == 50 })
    // A request for now or never can't wait.
    try site.send(lines: [#"{"to":"\#(token(5))","time_to_live":0,"data":{"a":"b"}}"#], app: Site.app)
    #expect(try eventually { try site.depths(["dead"]) == [1] })
    #expect(try site.take("dead").first?.header("x-push-reason") == "an operator has paused the application")

    let discarded = try site.run(["apps", "discard", Site.app, "--yes", "--reason", "test"] + config)
    #expect(discarded.status == 0 && discarded.output.contains("50 held requests dropped"), "\(discarded.output)")
    #expect(site.held(Site.app) == 0)
    #expect(try site.run(["apps", "pause", Site.app, "--until", "1s"] + config).status == 0)
    try site.send(tokens: [token(7)], app: Site.app)
    #expect(try site.followJournal().waitForLines(2, seconds: 30), "the pause ends by itself")
    #expect(try site.run(["apps", "discard", Site.app, "--yes"] + config).status == 65)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test("a paused credential's pushes wait, also those of a request that has others; a sender's own credential is paused alone")
  func credential() throws {
    let site = try Site()
    try site.startSimulator()
    let (_, port) = try site.startAPNs("other")
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", results: "all",
        apps: {
          "\(Site.app)": {
            apns: \(site.apns()), \(try site.startFCM())
            senders: { "42": { apns: \(site.apns(port: port)) } },
          },
        },
      }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    try site.drain()
    let config = ["--config", site.file("pushfleet.json5")]
    let fcm = "\(Site.app)/fcm"
    let sender = "\(Site.app)/senders/42"
    #expect(
      try states(site, config, "credentials")
        == ["\(Site.app)/apns": "running", fcm: "running", sender: "running", "\(sender)/apns": "running"])
    let worker = try site.startWorker()
    try site.send(tokens: [token(1)], app: Site.app)
    #expect(try site.followJournal().waitForLines(1, seconds: 90))

    for name in [fcm, sender] {
      #expect(try site.run(["credentials", "pause", name, "--reason", "quota"] + config).status == 0)
    }
    #expect(worker.waitForOutput("a credential's state", times: 2, seconds: 90))
    let both = ["registration_ids": ["fcm:a", token(2)], "data": ["m": "list"]] as [String: Any]
    try site.publish([
      (both, ["app_id": Site.app, "message_id": "list"]),
      (
        ["to": token(3), "data": ["m": "sender"]],
        ["app_id": Site.app, "message_id": "sender", "headers": ["x-push-sender": "42"]]
      ),
    ])
    try site.send(lines: (0..<200).map { #"{"to":"fcm:b\#($0)","data":{"k":"v"}}"# })
    // The list's iPhone is reached at once. The other pushes wait on the ladder, where they hold up nothing.
    #expect(try site.followJournal().waitForLines(2, seconds: 90))
    let ladder = ["retry.1s", "retry.10s", "retry.1m"]
    #expect(try eventually { try site.depths(ladder).reduce(0, +) == 202 })
    // A request for now or never can't wait.
    try site.send(lines: [#"{"to":"fcm:now","time_to_live":0,"data":{"a":"b"}}"#], app: Site.app)
    #expect(try eventually { try site.depths(["dead"]) == [1] })
    #expect(try site.take("dead").first?.header("x-push-reason") == "an operator has paused the credential")
    // A dry run reaches no device, so it doesn't wait. FCM isn't asked about it.
    let dry: [String: Any] = ["to": "fcm:dry", "dry_run": true, "data": ["a": "b"]]
    try site.publish([(dry, ["app_id": Site.app, "message_id": "dry"])])
    #expect(try eventually { try site.take("results").contains { $0.id == "dry" && $0.json["success"] as? Int == 1 } })
    let paused = try states(site, config, "credentials")
    #expect(paused == ["\(Site.app)/apns": "running", fcm: "paused", sender: "paused", "\(sender)/apns": "paused"])
    let list = try site.run(["credentials", "list"] + config).output
    #expect(list.contains(try Regex("\(sender)/apns +paused with its sender")), "\(list)")
    // A worker's report may be a second old.
    var pools = ""
    let isShown = try eventually {
      pools = try site.run(["status", "--pools"] + config).output
      return pools.contains(/FCM +paused/) && pools.contains(/APNs production +ok/)
    }
    #expect(isShown && !pools.contains("in trouble"), "\(pools)")
    for journal in ["fcm.ndjson", "other.ndjson"] {
      #expect(try String(contentsOfFile: site.file(journal), encoding: .utf8).isEmpty)
    }

    for name in [fcm, sender] { #expect(try site.run(["credentials", "resume", name] + config).status == 0) }
    #expect(try site.followJournal("fcm.ndjson").waitForLines(201, seconds: 90))
    #expect(try site.followJournal("other.ndjson").waitForLines(1, seconds: 90))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.results()["list"]! == (2, 0, 1))
    #expect(try site.run(["credentials", "pause", "\(Site.app)/webpush"] + config).status == 64, "it has no such credential")
  }

  @Test("a paused credential's waiting pushes are discarded, and a drained one refuses new ones, each for its devices alone")
  func discardedCredential() throws {
    let site = try Site()
    try site.startSimulator()
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", results: "all",
        apps: { "\(Site.app)": { apns: \(site.apns()), \(try site.startFCM()) } },
      }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    try site.drain()
    let config = ["--config", site.file("pushfleet.json5")]
    let fcm = "\(Site.app)/fcm"
    try site.importDevices(10..<15, #""app":"\#(Site.app)","topics":["all"],"user":"u""#)
    let worker = try site.startWorker()
    #expect(try site.run(["credentials", "discard", fcm, "--yes"] + config).status == 65, "it isn't paused")
    func order(_ verb: String, _ name: String, _ more: String...) throws {
      let times = worker.outputSoFar.components(separatedBy: "a credential's state").count
      #expect(try site.run(["credentials", verb, name] + more + config).status == 0)
      if verb != "discard" { #expect(worker.waitForOutput("a credential's state", times: times, seconds: 30)) }
    }
    func publish(_ id: String, _ to: [String: Any], after seconds: Int? = nil) throws {
      var properties: [String: Any] = ["app_id": Site.app, "message_id": id]
      if let seconds { properties["timestamp"] = Int(Date().timeIntervalSince1970) + seconds }
      try site.publish([(to.merging(["data": ["m": id]]) { $1 }, properties)])
    }
    func both(_ id: String, _ index: Int) -> [String: Any] { ["registration_ids": ["fcm:\(id)", token(index)]] }
    func waiting() throws -> Int {
      Site.objects(try site.run(["status", "--json"] + config).output).reduce(0) { sum, line in
        let workers = line["workers"] as? [[String: Any]] ?? [line]
        return workers.flatMap { $0["waiting"] as? [[String: Any]] ?? [] }.reduce(sum) {
          $1["credential"] as? String == fcm ? $0 + ($1["pushes"] as? Int ?? 0) : $0
        }
      }
    }
    try order("pause", fcm)
    try publish("old", both("old", 1), after: -60)
    try publish("undated", both("undated", 2))
    try publish("later", both("later", 3), after: 60)
    #expect(try site.followJournal().waitForLines(3, seconds: 90))
    #expect(try eventually { try waiting() == 3 })
    let refused = try site.run(["credentials", "discard", fcm] + config)
    #expect(refused.status == 64 && refused.output.contains("--yes"), "\(refused.output)")
    try order("discard", fcm, "--yes", "--reason", "wrong text")
    // It came later, whatever its producer's clock says.
    try publish("kept", both("kept", 4), after: -60)
    #expect(try site.followJournal().waitForLines(4, seconds: 90))
    let list = try site.run(["credentials", "list", "--json"] + config).output
    #expect(list.contains(#""discarded":"2"#) && list.contains(#""state":"paused""#), "\(list)")
    // Discarded pushes aren't sent, though the credential is drained before they return from the ladder.
    try order("drain", fcm)
    #expect(try site.followJournal("fcm.ndjson").waitForLines(1, seconds: 120), "it waited before the drain")
    #expect(try eventually { try site.depths(["results"]) == [4] })
    let results = try site.take("results")
    for result in results {
      let isKept = result.id == "kept"
      #expect(result.json["success"] as? Int == (isKept ? 2 : 1) && result.json["failure"] as? Int == (isKept ? 0 : 1))
      #expect("\(result.json)".contains("Cancelled") != isKept && "\(result.json)".contains("has discarded") != isKept)
    }
    #expect(try site.depths(["dead"]) == [0])
    #expect(try eventually { try waiting() == 0 })

    try publish("new", both("new", 5), after: 60)
    #expect(try eventually { try site.depths(["dead"]) == [1] })
    #expect(try site.take("dead").first?.header("x-push-reason")?.contains("drains the credential") == true)
    #expect(try site.followJournal().waitForLines(5, seconds: 30))
    try order("resume", fcm)
    try publish("last", both("last", 6))
    #expect(try site.followJournal("fcm.ndjson").waitForLines(2, seconds: 30))
    #expect(try site.followJournal().waitForLines(6, seconds: 30))

    // Also broadcasts and the devices of a user are refused.
    try order("drain", "\(Site.app)/apns")
    try publish("topic", ["to": "/topics/all"], after: 60)
    try publish("user", ["to": "/users/u"], after: 60)
    #expect(try eventually { try site.depths(["dead"]) == [5] })
    #expect(try eventually { try site.results()["topic"].map { $0 == (0, 5, 1) } ?? false })
    try order("resume", "\(Site.app)/apns")
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().count == 6)
    let actions = Site.objects(try site.run(["audit", "--json"] + config).output).compactMap { $0["action"] as? String }
    #expect(actions.reversed() == ["pause", "discard", "drain", "resume", "drain", "resume"])
  }

  @Test("a draining application sends what waits and refuses new requests")
  func drain() throws {
    let (site, config) = try start()
    #expect(try site.run(["apps", "pause", Site.app] + config).status == 0)
    try site.send(tokens: (0..<20).map(token), app: Site.app)
    let worker = try site.startWorker()
    #expect(eventually { site.held(Site.app) == 20 })
    #expect(try site.run(["apps", "drain", Site.app] + config).status == 0)
    #expect(try site.followJournal().waitForLines(20, seconds: 30))
    // A timestamp has whole seconds, so the drain's own second counts as before it.
    let new: [String: Any] = ["app_id": Site.app, "message_id": "new", "timestamp": Int(Date().timeIntervalSince1970) + 2]
    try site.publish([(["to": token(100), "data": ["a": "b"]], new)])
    #expect(try eventually { try site.depths(["dead"]) == [1] })
    #expect(try site.take("dead").first?.header("x-push-reason")?.contains("drains the application") == true)
    #expect(try states(site, config) == [Site.app: "draining", Self.other: "running"])
    // It was published before.
    let old: [String: Any] = ["app_id": Site.app, "message_id": "old", "timestamp": Int(Date().timeIntervalSince1970) - 60]
    try site.publish([(["to": token(99), "data": ["a": "b"]], old)])
    #expect(try site.followJournal().waitForLines(21, seconds: 30))
    #expect(try site.run(["apps", "resume", Site.app] + config).status == 0)
    #expect(worker.waitForOutput(#""state":"running""#, seconds: 30))
    try site.send(tokens: [token(101)], app: Site.app)
    #expect(try site.followJournal().waitForLines(22, seconds: 30))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().count == 22)
  }

  @Test("the fleet's rate limits an application's pushes, whatever the number of workers, and no other application's")
  func rate() throws {
    let (site, config) = try start()
    #expect(try site.run(["apps", "rate", Site.app, "50/s"] + config).output.contains("50/s"))
    let workers = [try site.startWorker(), try site.startWorker()]
    for worker in workers { #expect(worker.waitForOutput(#""consuming""#, seconds: 30)) }
    let begun = ContinuousClock.now
    try site.send(tokens: (0..<300).map(token), app: Site.app)
    try site.send(tokens: (1_000..<1_300).map(token), app: Self.other)
    #expect(try site.followJournal("other.ndjson").waitForLines(300, seconds: 30))
    #expect(try site.pushes().count < 250)
    #expect(try site.followJournal().waitForLines(300, seconds: 60))
    // At most a second's pushes are sent at once.
    #expect(ContinuousClock.now - begun > .seconds(4))
    #expect(try site.run(["apps", "rate", Site.app, "none"] + config).status == 0)
    for worker in workers {
      worker.signal(SIGTERM)
      #expect(worker.wait() == 0)
    }
    #expect(try site.deliveries().values.allSatisfy { $0 == 1 } && site.depths(["dead"]) == [0])
  }

  @Test("a rate is kept when many shards start with a backlog", arguments: [(2, 10), (40, 300)])
  func rateOfManyShards(_ rate: Int, _ requests: Int) throws {
    let (site, config) = try start(settings: "shards: 8,")
    #expect(try site.run(["apps", "rate", Site.app, "\(rate)/s"] + config).status == 0)
    try site.send(tokens: (0..<requests).map(token), app: Site.app)
    let worker = try site.startWorker()
    #expect(try site.followJournal().waitForLines(requests, seconds: 60))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    let times = try site.times(in: "journal.ndjson") { $0["token"] != nil }
    let most = times.map { begin in times.count { (begin..<begin + 1).contains($0) } }.max() ?? 0
    #expect(times.count == requests && most <= 2 * rate, "\(most) in a second")
  }

  @Test("requests wait in a paused lane, those of other lanes are sent")
  func lane() throws {
    let (site, config) = try start()
    #expect(try site.run(["lanes", "pause", "send.normal"] + config).status == 0)
    let worker = try site.startWorker()
    try site.send(tokens: (0..<10).map(token), app: Site.app)
    try site.publish([(["to": token(20)], ["app_id": Site.app, "message_id": "h"])], to: "high")
    #expect(try site.followJournal().waitForLines(1, seconds: 30))
    #expect(try site.pushes().map(\.token) == [token(20)] && site.depths(["send.normal"]) == [10])
    #expect(try states(site, config, "lanes")["send.normal"] == "paused")
    let lane = ["send.normal"] + config
    let discarded = try site.run(["lanes", "discard", "--yes"] + lane)
    #expect(discarded.status == 0 && discarded.output.contains("10 requests dropped"), "\(discarded.output)")
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0])
    try site.send(tokens: (30..<40).map(token), app: Site.app)
    #expect(try site.run(["lanes", "resume"] + lane).status == 0)
    #expect(try site.followJournal().waitForLines(11, seconds: 30))
    #expect(try site.run(["lanes", "discard", "--yes"] + lane).status == 65, "workers consume it")
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test("a drained lane sends what waits and refuses new requests of all applications, and new broadcasts if it has those")
  func drainedLane() throws {
    let (site, config) = try start()
    try site.importDevices(0..<5, #""app":"\#(Site.app)","topics":["all"]"#)
    for lane in ["send.high", "fanout.normal"] { #expect(try site.run(["lanes", "drain", lane] + config).status == 0) }
    let worker = try site.startWorker()
    func publish(_ id: String, _ body: [String: Any], _ lane: String, _ app: String = Site.app, at time: Int) throws {
      let properties: [String: Any] = [
        "app_id": app, "message_id": id, "timestamp": Int(Date().timeIntervalSince1970) + time,
      ]
      try site.publish([(body.merging(["data": ["m": id]]) { $1 }, properties)], to: lane)
    }
    try publish("old", ["to": token(100)], "high", at: -60)
    try publish("new", ["to": token(101)], "high", Self.other, at: 60)
    try publish("old broadcast", ["to": "/topics/all"], "normal", at: -60)
    try publish("new broadcast", ["to": "/topics/all"], "normal", at: 60)
    try publish("single", ["to": token(102)], "normal", at: 60)
    #expect(try site.followJournal().waitForLines(7, seconds: 60))
    #expect(try eventually { try site.depths(["dead"]) == [2] })
    let letters = try site.take("dead")
    #expect(Set(letters.compactMap(\.id)) == ["new", "new broadcast"])
    #expect(letters.allSatisfy { $0.header("x-push-reason")?.contains("drains the lane") == true })
    for lane in ["send.high", "fanout.normal"] { #expect(try site.run(["lanes", "resume", lane] + config).status == 0) }
    #expect(worker.waitForOutput(#""state":"running""#, times: 2, seconds: 30))
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().count == 7)
  }

  @Test("every operation is recorded and published once, with its reason", arguments: RegistryKind.all)
  func audit(_ kind: RegistryKind) throws {
    let (site, config) = try start(kind)
    let queue = "\(site.prefix).audit.test"
    let lines = try site.write(
      """
      {"do":"declare","queue":"\(queue)"}
      {"do":"bind","queue":"\(queue)","exchange":"\(site.prefix).events","routing_key":"audit.#"}
      """, to: "audit.ndjson")
    try site.peer(["try"], input: lines)
    let workers = [try site.startWorker(), try site.startWorker()]
    #expect(try site.run(["apps", "pause", Site.app, "--reason", "why not"] + config).status == 0)
    #expect(try site.run(["apps", "resume", Site.app] + config).status == 0)
    #expect(try site.run(["lanes", "pause", "send.high"] + config).status == 0)
    let seen = try site.takeAll(from: queue, count: 3)
    #expect(seen.map { $0.json["action"] as? String } == ["pause", "resume", "pause"])
    let first = try #require(seen.first)
    #expect(first.json["reason"] as? String == "why not" && first.json["subject"] as? String == "app:\(Site.app)")
    #expect((first.json["before"] as? [String: Any])?["state"] as? String == "running")
    #expect((first.json["after"] as? [String: Any])?["state"] as? String == "paused")
    let list = Site.objects(try site.run(["audit", "--json"] + config).output)
    #expect(list.map { $0["number"] as? Int } == [3, 2, 1])
    for worker in workers {
      worker.signal(SIGTERM)
      #expect(worker.wait() == 0)
    }
    #expect(try site.takeAll(from: queue).isEmpty)
  }

  @Test("the HTTP interface performs the same operations, within the rights of its key")
  func http() throws {
    let port = try FreePorts.take(1)[0]
    let (site, config) = try start(settings: Door.settings(port))
    let worker = try site.startWorker()
    let door = try Door(site, port: port)
    let operate = try door.key("operate,view", ["--app", "\(Site.app),\(Self.other)"])
    let one = try door.key("operate", ["--app", Self.other]).key
    let view = try door.key("view", ["--app", "\(Site.app),\(Self.other)"]).key
    let until = "2099-01-01T00:00:00.000Z"
    let event = try door.json(
      "POST", "/v1/fleet/apps/\(Site.app)/pause", operate.key, #"{"reason":"r","until":"\#(until)"}"#)
    #expect(event["actor"] as? String == operate.id && event["origin"] as? String == "127.0.0.1")
    let apps = try door.json("GET", "/v1/fleet/apps", view)["apps"] as? [[String: Any]]
    #expect(apps?.first { $0["app"] as? String == Site.app }?["until"] as? String == until)
    #expect(worker.waitForOutput(#""state":"paused""#, seconds: 30))
    try site.send(tokens: (0..<3).map(token), app: Site.app)
    #expect(eventually { site.held(Site.app) == 3 })
    #expect(try door.json("POST", "/v1/fleet/apps/\(Site.app)/resume", operate.key)["action"] as? String == "resume")
    #expect(try site.followJournal().waitForLines(3, seconds: 30))

    for (method, path, key, body, status) in [
      ("POST", "/v1/fleet/apps/\(Site.app)/pause", view, nil, 403), ("POST", "/v1/fleet/apps/\(Site.app)/pause", one, nil, 403),
      ("POST", "/v1/fleet/lanes/send.high/pause", one, nil, 403), ("GET", "/v1/fleet/status", one, nil, 403),
      ("POST", "/v1/fleet/apps/\(Self.other)/stop", one, nil, 404),
      ("POST", "/v1/fleet/apps/\(Self.other)/pause", one, #"{"until":"now"}"#, 400),
      ("POST", "/v1/fleet/apps/\(Self.other)/pause", one, #"{"why":"x"}"#, 400),
      ("POST", "/v1/fleet/apps/\(Self.other)/rate", one, #"{"rate":-1}"#, 400),
      ("POST", "/v1/fleet/apps/\(Self.other)/pause", one, #"{"reason":"a\u0000"}"#, 400),
      ("POST", "/v1/fleet/credentials/\(Site.app)%2Fapns/pause", one, nil, 403),
      ("POST", "/v1/fleet/credentials/\(Self.other)%2Ffcm/pause", one, nil, 404),
      ("POST", "/v1/fleet/credentials/\(Site.app)%2Fapns/drain", one, nil, 403),
      ("POST", "/v1/fleet/credentials/\(Self.other)%2Fapns/rate", one, nil, 404),
      ("POST", "/v1/fleet/lanes/send.high/discard", one, "{}", 403),
      ("POST", "/v1/fleet/lanes/none/discard", one, "{}", 404),
      ("POST", "/v1/fleet/credentials/none/pause", one, nil, 404),
      ("GET", "/v1/fleet/campaigns/none", view, nil, 404), ("GET", "/v1/fleet/audit?limit=0", view, nil, 400),
    ] as [(String, String, String, String?, Int)] {
      let answer = try door.ask(method, path, key, body)
      #expect(answer.status == status, "\(method) \(path): \(answer.status) \(answer.body)")
    }
    _ = try door.json("POST", "/v1/fleet/apps/\(Self.other)/rate", one, #"{"rate":7}"#)
    #expect(try site.run(["apps", "list"] + config).output.contains("7/s"))
    _ = try door.json("POST", "/v1/fleet/lanes/send.high/pause", operate.key)
    let lanes = try door.json("GET", "/v1/fleet/lanes", view)["lanes"] as? [[String: Any]]
    #expect(lanes?.filter { $0["state"] as? String == "paused" }.compactMap { $0["lane"] as? String } == ["send.high"])
    let paused = try door.json("POST", "/v1/fleet/credentials/\(Site.app)%2Fapns/pause", operate.key)
    #expect(paused["subject"] as? String == "credential:\(Site.app)/apns" && paused["app"] as? String == Site.app)
    let credentials = try door.json("GET", "/v1/fleet/credentials", view)["credentials"] as? [[String: Any]]
    #expect(credentials?.map { $0["state"] as? String } == ["paused", "running"])
    let events = try door.json("GET", "/v1/fleet/audit", view)["events"] as? [[String: Any]]
    let keys = Array(repeating: "key create", count: 3)
    #expect(events?.compactMap { $0["action"] as? String } == ["pause", "pause", "rate", "resume", "pause"] + keys)
    let ofOne = try door.json("GET", "/v1/fleet/audit", one)["events"] as? [[String: Any]]
    #expect(ofOne?.compactMap { $0["action"] as? String } == ["rate", "key create"])

    let status = try door.json("GET", "/v1/fleet/status", view)
    #expect((status["workers"] as? [[String: Any]])?.count == 1 && status["silent_shards"] as? Int == 0)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try door.json("GET", "/v1/fleet/campaigns", view)["campaigns"] as? [String] == [])
  }

  @Test("a request is explained with the right view, and sent to one target with the right operate, by keys of its application")
  func tried() throws {
    let port = try FreePorts.take(1)[0]
    let (site, _) = try start(settings: Door.settings(port))
    let worker = try site.startWorker()
    let door = try Door(site, port: port)
    let view = try door.key("view", ["--app", Site.app]).key
    let operate = try door.key("operate", ["--app", Site.app, "--name", "night shift"])
    let foreign = try door.key("operate,view", ["--app", Self.other]).key
    let app = "/v1/fleet/apps/\(Site.app)"
    let body = #"{"to":"apns:\#(token(1))","notification":{"title":"t"}}"#
    let platforms = try door.json("POST", "\(app)/explain", view, body)["platforms"] as? [[String: Any]]
    #expect(platforms?.map { $0["platform"] as? String } == ["apns"])
    let user = #"{"to":"/users/anna","notification":{"title":"t"}}"#
    #expect((try door.json("POST", "\(app)/explain", view, user)["platforms"] as? [Any])?.count == 2)
    #expect(try site.pushes().isEmpty)
    for (path, key, body, status) in [
      ("explain", foreign, body, 403), ("test", foreign, body, 403), ("test", view, body, 403),
      ("test?wait=x", operate.key, body, 400),
      ("explain", view, #"{"to":"/topics/a","notification":{"title":5}}"#, 400), ("explain", view, "[", 400),
      ("test", operate.key, #"{"to":"/topics/a"}"#, 400), ("test", operate.key, #"{"to":"/all"}"#, 400),
      ("test", operate.key, #"{"registration_ids":["/users/anna","/users/ben"]}"#, 400),
      ("test", operate.key, #"{"condition":"'a' in topics"}"#, 400),
      ("test", operate.key, #"{"registration_ids":["apns:\#(token(1))","apns:\#(token(2))"]}"#, 400),
    ] as [(String, String, String, Int)] {
      let answer = try door.ask("POST", "\(app)/\(path)", key, body)
      #expect(answer.status == status, "\(path) \(body): \(answer.status) \(answer.body)")
    }
    #expect(try door.ask("POST", "\(app)/test", view, body).body.contains("a key with the right operate"))
    #expect(try site.pushes().isEmpty)
    let events = try door.json("GET", "/v1/fleet/audit", view)["events"] as? [[String: Any]]
    #expect(events?.allSatisfy { $0["action"] as? String == "key create" } == true)
    let result = try door.json("POST", "\(app)/test?wait=20", operate.key, body)
    #expect(result["success"] as? Int == 1)
    let id = try #require(result["message_id"] as? String)
    #expect(try door.json("GET", "\(app)/messages/\(id)", view)["message_id"] as? String == id)
    #expect(try door.ask("GET", "\(app)/messages/\(id)", foreign).status == 403)
    let unknown = try door.ask("GET", "\(app)/messages/none", view)
    #expect(unknown.status == 200 && unknown.body.contains(#""state":null"#), "\(unknown.body)")
    let audit = try door.ask("GET", "/v1/fleet/audit", view).body
    #expect(
      audit.contains(#""actor":"night shift (\#(operate.id))""#) && audit.contains(#""action":"test""#)
        && !audit.contains(token(1)))
    try site.importDevices([5, 6], #""app":"\#(Site.app)","user":"anna""#)
    let toUser = try door.json(
      "POST", "\(app)/test?wait=20", operate.key, #"{"to":"/users/anna","notification":{"title":"t"}}"#)
    #expect(toUser["success"] as? Int == 2)
    let last = (try door.json("GET", "/v1/fleet/audit", view)["events"] as? [[String: Any]])?.first
    #expect(last?["after"] as? [String: String] == ["target": "user"], "\(last ?? [:])")
    // The audit has the tests that were sent, each once.
    func tests() throws -> Int? {
      let events = try door.json("GET", "/v1/fleet/audit", view)["events"] as? [[String: Any]]
      return events?.count { $0["action"] as? String == "test" }
    }
    #expect(try tests() == 2)
    let keyed = ["Idempotency-Key": "k"]
    for _ in 0..<2 { _ = try door.json("POST", "\(app)/test?wait=20", operate.key, body, keyed) }
    #expect(try tests() == 3)
    let another = #"{"to":"apns:\#(token(2))","notification":{"title":"t"}}"#
    #expect(try door.ask("POST", "\(app)/test", operate.key, another, keyed).status == 409)
    #expect(try tests() == 3)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    // The broker refuses what has no room.
    try site.broker.limit("\(site.prefix).send.normal", to: 1)
    var statuses: [Int] = []
    for number in 3..<20 where statuses.last != 503 {
      let body = #"{"to":"apns:\#(token(number))"}"#
      statuses.append(try door.ask("POST", "\(app)/test?wait=0&lane=normal", operate.key, body).status)
    }
    try site.broker.limit("\(site.prefix).send.normal", to: nil)
    #expect(try statuses.last == 503 && tests() == 3 + statuses.count - 1, "\(statuses)")
  }

  @Test("paused lanes don't change the fleet's status")
  func countedBesidePausedLanes() throws {
    let port = try FreePorts.take(1)[0]
    let (site, config) = try start(settings: Door.settings(port))
    for lane in ["fanout.normal", "fanout.high"] { #expect(try site.run(["lanes", "pause", lane] + config).status == 0) }
    let workers = [try site.startWorker(), try site.startWorker()]
    let door = try Door(site, port: port)
    let view = try door.key("view", ["--app", "\(Site.app),\(Self.other)"]).key
    // The status is kept for a second.
    #expect(
      try eventually {
        let status = try door.json("GET", "/v1/fleet/status", view)
        return (status["workers"] as? [Any])?.count == 2 && status["silent_shards"] as? Int == 0
      })
    for worker in workers {
      worker.signal(SIGTERM)
      #expect(worker.wait() == 0)
    }
    #expect(try eventually { try door.json("GET", "/v1/fleet/status", view)["silent_shards"] as? Int == nil })
  }

  @Test("each HTTP operation accepts only its own members, and a rate has to be said")
  func members() throws {
    let port = try FreePorts.take(1)[0]
    let (site, config) = try start(settings: Door.settings(port))
    let door = try Door(site, port: port)
    let key = try door.key("operate", ["--app", Site.app]).key
    #expect(try site.run(["apps", "rate", Site.app, "9/s"] + config).status == 0)
    let until = #""until":"2099-01-01T00:00:00Z""#
    for (verb, body) in [
      ("rate", nil), ("rate", "{}"), ("rate", "{\(until),\"rate\":5}"), ("drain", "{\(until)}"), ("resume", "{\(until)}"),
      ("drain", #"{"rate":5}"#), ("pause", #"{"rate":5}"#),
    ] {
      let answer = try door.ask("POST", "/v1/fleet/apps/\(Site.app)/\(verb)", key, body)
      #expect(answer.status == 400, "\(verb) \(body ?? ""): \(answer.body)")
    }
    let list = try site.run(["apps", "list"] + config).output
    #expect(list.contains("9/s") && !list.contains("paused") && !list.contains("draining"), "\(list)")
    _ = try door.json("POST", "/v1/fleet/apps/\(Site.app)/rate", key, #"{"rate":null}"#)
    #expect(try !site.run(["apps", "list"] + config).output.contains("9/s"))
  }

  @Test(
    "a worker that starts without its registry sends no held request",
    .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func startWithoutRegistry() throws {
    let server = try #require(try Postgres.shared?.get())
    let (site, config) = try start(.postgres)
    let location = try #require(
      try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8).firstMatch(of: /registry: "([^"]*)"/)?.1)
    let name = try server.execute("SELECT current_database()", at: String(location))
    #expect(try site.run(["apps", "pause", Site.app] + config).status == 0)
    try site.send(tokens: (0..<20).map(token), app: Site.app)
    let first = try site.startWorker()
    #expect(eventually { site.held(Site.app) == 20 })
    first.signal(SIGTERM)
    #expect(first.wait() == 0)

    try server.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
    let second = try site.startWorker()
    #expect(second.waitForOutput(#""consuming""#, seconds: 30), "\(second.outputSoFar)")
    for number in 0..<3 {
      try site.send(tokens: [token(100 + number)], app: Self.other)
      #expect(try site.followJournal("other.ndjson").waitForLines(number + 1, seconds: 30))
    }
    #expect(site.held(Site.app) == 20)
    try server.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
    #expect(second.waitForOutput(#""state":"paused""#, seconds: 60))
    #expect(try site.pushes().isEmpty)
    #expect(try site.run(["apps", "resume", Site.app] + config).status == 0)
    #expect(try site.followJournal().waitForLines(20, seconds: 30))
    second.signal(SIGTERM)
    #expect(second.wait() == 0)
  }

  @Test("a replay that fails midway is recorded")
  func failedReplay() throws {
    let (site, config) = try start()
    try site.publish((0..<50).map { ([:], ["app_id": Site.app, "message_id": "\($0)"]) })
    try site.drain()
    #expect(try site.depths(["dead"]) == [50])
    let replay = try site.start(["dead", "replay", "--rate", "10/s", "--because", "fixed"] + config)
    #expect(try eventually { try site.depths(["send.normal"])[0] > 0 })
    try site.peer(["delete", "\(site.prefix).dead"])
    #expect(replay.wait() == 69, "\(replay.outputSoFar)")
    let events = Site.objects(try site.run(["audit", "--json"] + config).output)
    #expect(events.map { $0["action"] as? String } == ["dead replay", "dead replay begun"], "\(events)")
    #expect(events.allSatisfy { $0["reason"] as? String == "fixed" })
    #expect(((events.first?["after"] as? [String: Any])?["messages"] as? Int ?? 0) > 0)
  }

  @Test("looking at held requests before discarding them returns none of them to the queue")
  func discardWithoutLook() throws {
    let (site, config) = try start()
    #expect(try site.run(["apps", "pause", Site.app] + config).status == 0)
    try site.send(tokens: (0..<20).map(token), app: Site.app)
    let worker = try site.startWorker()
    #expect(eventually { site.held(Site.app) == 20 })
    let dry = try site.run(["held", "drop", "--app", Site.app, "--dry-run", "--json"] + config)
    #expect(dry.status == 0 && dry.output.contains(#""would_drop":20"#), "\(dry.output)")
    let refused = try site.run(["apps", "discard", Site.app] + config)
    #expect(refused.status == 64 && refused.output.contains("--yes"), "\(refused.output)")
    #expect(!refused.output.contains("--dry-run"))
    let first = try #require(try site.take("hold.\(Site.app)").first)
    #expect(first.header("x-delivery-count") == nil)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test("an application that left the configuration can be shown and resumed")
  func unconfigured() throws {
    let (site, config) = try start()
    #expect(try site.run(["apps", "pause", Self.other] + config).status == 0)
    #expect(try site.run(["apps", "rate", Self.other, "5/s"] + config).status == 0)
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db",
        apps: { "\(Site.app)": { apns: \(site.apns()) } },
      }
      """, to: "pushfleet.json5")
    #expect(try states(site, config) == [Site.app: "running", Self.other: "paused"])
    #expect(try site.run(["apps", "pause", Self.other] + config).status == 64)
    #expect(try site.run(["apps", "resume", Self.other] + config).status == 0)
    #expect(try site.run(["apps", "rate", Self.other, "none"] + config).status == 0)
    #expect(try states(site, config) == [Site.app: "running"])
  }

  @Test("the audit and the campaigns of a key for some applications have a full page of them")
  func filteredLists() throws {
    let port = try FreePorts.take(1)[0]
    let (site, config) = try start(settings: Door.settings(port))
    let door = try Door(site, port: port)
    for _ in 0..<2 { #expect(try site.run(["apps", "rate", Site.app, "5/s"] + config).status == 0) }
    for _ in 0..<4 { #expect(try site.run(["lanes", "pause", "send.high"] + config).status == 0) }
    for _ in 0..<4 { #expect(try site.run(["apps", "rate", Self.other, "5/s"] + config).status == 0) }
    let one = try door.key("view", ["--app", Site.app]).key
    let events = try door.json("GET", "/v1/fleet/audit?limit=3", one)["events"] as? [[String: Any]]
    #expect(events?.compactMap { $0["app"] as? String } == Array(repeating: Site.app, count: 3))
    let all = try door.key("view", ["--app", "\(Site.app),\(Self.other)"]).key
    let whole = try door.json("GET", "/v1/fleet/audit?limit=1000", all)["events"] as? [[String: Any]]
    #expect(whole?.count == 12)
    let own = try door.json("GET", "/v1/fleet/audit?limit=1000&app=\(Site.app)", all)["events"] as? [[String: Any]]
    #expect(own?.count == 3)
    #expect(try door.ask("GET", "/v1/fleet/audit?app=\(Self.other)", one).status == 403)
  }

  @Test("mistakes are refused with advice")
  func mistakes() throws {
    let (site, config) = try start()
    for (words, status, part) in [
      (["apps", "pause"], 64, "name an application"), (["apps", "pause", "com.exmple.other"], 64, "did you mean"),
      (["apps", "pause", Site.app, "--until", "soon"], 64, "expected a duration"),
      (["apps", "pause", Site.app, "--until", "2020-01-01T00:00:00Z"], 64, "the time has passed"),
      (["apps", "rate", Site.app, "0/s"], 64, "RATE must be"), (["lanes", "pause", "send.hihg"], 64, "send.high"),
      (["held", "list"], 64, "--app must name one"),
      (["apps", "pause", Site.app, "--reason", "a\u{1b}[2J"], 64, "control characters"),
    ] {
      let ended = try site.run(words + config)
      #expect(ended.status == status && ended.output.contains(part), "\(words): \(ended.output)")
    }
  }
}
