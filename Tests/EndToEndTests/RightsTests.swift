import Foundation
import TestSupport
import Testing

@Suite("Rights of producers", .blocking)
struct RightsTests {
  private static let down = "com.example.down"
  private static let rights = #"replyTo: ["billing.replies"],"#

  /// Two applications; billing sends to one, mallory to the other, whose provider is unreachable.
  private func configure(_ site: Site, downPort: Int) throws {
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", \(Site.retries) \(Self.rights)
        apps: {
          "\(Site.app)": { producers: ["\(site.user("billing"))"], apns: \(site.apns(#"topics: "com.example.other","#)) },
          "\(Self.down)": { producers: ["\(site.user("mallory"))"], apns: \(site.apns(topic: Self.down, port: downPort)) },
        },
      }
      """, to: "pushfleet.json5")
  }

  /// A message of a user's to the lane, or to the registry.
  private func line(
    _ site: Site, _ user: String?, _ body: [String: Any], id: String? = nil, app: String = Site.app,
    headers: [String: Any] = [:],
    exchange: String = "send", key: String = "normal"
  ) -> [String: Any] {
    var properties: [String: Any] = ["app_id": app, "headers": headers]
    if let id { properties["message_id"] = id }
    if let user { properties["user_id"] = site.user(user) }
    return ["body": body, "properties": properties, "exchange": "\(site.prefix).\(exchange)", "routing_key": key]
  }

  /// Publishes as a user with direct replies, or an exclusive queue; returns the replies.
  private func ask(_ site: Site, by uri: String?, _ lines: [[String: Any]], queue: String? = nil) throws -> [[String: Any]] {
    let words = ["ask", "--count", "\(lines.count)"] + (queue.map { ["--queue", $0] } ?? [])
    return try Site.messages(try site.peer(words, input: try site.writeLines(lines), by: uri)).map(\.json)
  }

  /// The result of each attempt: "ok", or the broker's code.
  private func attempt(_ site: Site, by uri: String?, _ lines: [[String: Any]]) throws -> [String] {
    try site.peer(["try"], input: try site.writeLines(lines), by: uri).split(separator: "\n").map(String.init)
  }

  @Test("workers with a worker's permissions do all of their work for producers with a producer's")
  func work() throws {
    let site = try Site()
    let users = try site.makeUsers(["mallory": "billing"])
    site.brokerURI = try #require(users["worker"])
    try site.startSimulator(
      script: [
        token(1): [["status": 503, "reason": "Shutdown"], ["status": 200]],
        token(2): ["status": 410, "reason": "Unregistered"],
      ])
    let (simulator, downPort) = try site.startAPNs("down")
    simulator.end()
    try configure(site, downPort: downPort)
    try site.declareTopology()

    // A request that came back from workers twice goes to the quarantine unread.
    for user in ["billing", "mallory"] {
      let suspect = line(
        site, user, ["to": token(5)], id: "suspect of \(user)", headers: ["x-push-producer": site.user("billing")])
      try site.peer(["publish"], input: try site.writeLines([suspect]), by: users[user])
    }
    for _ in 0..<2 { try site.peer(["consume", "\(site.prefix).send.normal", "--count", "2", "--wait", "30", "--give-back"]) }
    let worker = try site.startWorker()

    let devices = (100..<103).map { number in
      line(
        site, "billing", ["platform": "apns", "token": token(number), "topics": ["all"]], exchange: "registry", key: "change")
    }
    #expect(try ask(site, by: users["billing"], devices).allSatisfy { $0["registration"] is String })
    let topic = line(site, "billing", ["to": "/topics/all", "data": ["m": "all"]])
    let requests = [1, 2, 3].map { line(site, "billing", ["to": token($0)], id: "\($0)") }
    let results = try ask(site, by: users["billing"], requests + [topic])
    #expect(results.count { $0["success"] as? Int == 1 } == 2)
    #expect(results.count { $0["success"] as? Int == 3 && $0["results"] == nil } == 1)
    let sent = try site.run(
      [
        "send", "--config", site.file("pushfleet.json5"), "--app", Site.app,
        try site.write(#"{"to":"\#(token(4))"}"#, to: "r.json"),
      ],
      environment: ["PUSHFLEET_BROKER": users["billing"] ?? ""])
    #expect(sent.status == 0, "\(sent.output)")

    // One application's provider is in trouble: its requests are held.
    let held = (0..<40).map { line(site, "mallory", ["to": token(1_000 + $0)], id: "held \($0)", app: Self.down) }
    try site.peer(["publish"], input: try site.writeLines(held), by: users["mallory"])
    #expect(worker.waitForOutput("the hold queue of an application is ready", seconds: 90))
    #expect(eventually { site.held(Self.down) > 0 })
    _ = try site.startAPNs("down", port: downPort)
    #expect(try site.followJournal("down.ndjson").waitForLines(held.count, seconds: 60))

    #expect(try eventually { try site.depths(["dead", "results"])[0] == 1 && site.deliveries()[token(4)] == 1 })
    #expect(
      try site.deliveries()
        == Dictionary(uniqueKeysWithValues: ([1, 3, 4, 5] + (100..<103)).map { (token($0), 1) }))
    let letter = try #require(try site.take("dead").first)
    #expect(letter.id == "suspect of mallory" && letter.header("x-push-error") == "NotAllowed")
    #expect(letter.header("x-push-producer") == site.user("mallory"))
    let feedback = try site.run(
      ["feedback", "--config", site.file("pushfleet.json5")], environment: ["PUSHFLEET_BROKER": users["pruning"] ?? ""])
    #expect(Site.objects(feedback.output).map { $0["event"] as? String } == ["NotRegistered"], "\(feedback.output)")

    // An operator is trusted with replayed notes; a letter whose producer was never found to be allowed is checked again.
    let replays = [[:], ["x-push-producer": site.user("mallory")]].enumerated().map { number, headers in
      line(
        site, nil, ["to": token(6 + number)], id: "replay \(number)",
        headers: headers.merging(["x-push-origin": "send.normal"]) { $1 }, exchange: "return", key: "")
    }
    try site.peer(["publish"], input: try site.writeLines(replays), by: users["operator"])
    #expect(try eventually { try site.depths(["dead"]) == [1] && site.deliveries()[token(6)] == 1 })
    #expect(try site.deliveries()[token(7)] == nil)
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(!worker.outputSoFar.contains("ACCESS_REFUSED"), "\(worker.outputSoFar)")
  }

  @Test("producers can neither read the fleet's queues nor write where headers count; consumers read only their own")
  func refusals() throws {
    let site = try Site()
    let users = try site.makeUsers()
    try site.configure(port: 1)
    try site.declareTopology()
    let p = site.prefix
    func publish(_ exchange: String, _ key: String = "", _ properties: [String: Any] = [:]) -> [String: Any] {
      ["do": "publish", "exchange": exchange, "routing_key": key, "properties": properties]
    }
    let own = "billing.\(p)"
    let allowed: [[String: Any]] = [
      publish("\(p).send", "normal", ["user_id": site.user("billing")]), publish("\(p).registry", "change"),
      ["do": "declare", "queue": own], ["do": "get", "queue": own],
    ]
    #expect(try attempt(site, by: users["billing"], allowed) == ["ok", "ok", "ok", "ok"])
    let fleets = ["retry", "return", "fanout", "hold", "events", "dead", "stray"]
    var refused = fleets.map { publish("\(p).\($0)", "normal") }
    refused += ["", "amq.topic"].map { publish($0, "\(p).send.normal") }
    refused += ["send.normal", "send.high", "registry", "dead", "feedback", "results", "quarantine", "retry.1s"].flatMap {
      [
        ["do": "get", "queue": "\(p).\($0)"], ["do": "consume", "queue": "\(p).\($0)"], ["do": "purge", "queue": "\(p).\($0)"],
      ]
    }
    refused += fleets.map { ["do": "declare", "queue": "\(own).\($0)", "arguments": ["x-dead-letter-exchange": "\(p).\($0)"]] }
    refused += [
      ["do": "declare", "queue": "\(p).mine"], ["do": "bind", "queue": own, "exchange": "\(p).events", "routing_key": "#"],
      ["do": "bind", "queue": "\(p).send.normal", "exchange": "\(p).send", "routing_key": "x"],
    ]
    #expect(try attempt(site, by: users["billing"], refused) == Array(repeating: "403", count: refused.count))
    #expect(try attempt(site, by: users["billing"], [publish("\(p).send", "normal", ["user_id": "guest"])]) == ["406"])

    #expect(
      try attempt(
        site, by: users["pruning"], [["do": "get", "queue": "\(p).feedback"], ["do": "get", "queue": "\(p).results"]])
        == ["ok", "403"])
    let queue = "statistics.\(p)"
    func bind(_ key: String) -> [String: Any] {
      ["do": "bind", "queue": queue, "exchange": "\(p).events", "routing_key": key]
    }
    #expect(
      try attempt(
        site, by: users["statistics"],
        [
          ["do": "declare", "queue": queue], bind("result.\(Site.app)"), ["do": "get", "queue": queue],
          bind("result.com.other"),
          bind("result.#"), bind("feedback.\(Site.app)"), ["do": "get", "queue": "\(p).results"],
        ]) == ["ok", "ok", "ok", "403", "403", "403", "403"])
    for queue in [own, queue] { try site.peer(["delete", queue]) }
  }

  @Test("a producer's forbidden request is a dead letter that reaches no device, whatever its headers are")
  func notAllowed() throws {
    let site = try Site()
    let users = try site.makeUsers(["mallory": "billing"])
    try site.startSimulator()
    try configure(site, downPort: site.port)
    try site.declareTopology()
    let worker = try site.startWorker()
    let forged: [String: Any] = [
      "x-push-producer": site.user("billing"), "x-push-retry-attempts": 1, "x-push-retry-deadline": 4_000_000_000_000,
      "x-push-origin": "send.normal",
    ]
    func topic(_ name: String) -> [String: Any] {
      [
        "to": token(9),
        "apns": ["headers": ["apns-topic": name, "apns-push-type": name.hasSuffix(".voip") ? "voip" : "alert"]],
      ]
    }
    // All four are refused: by name, without a name, and with headers that only workers write.
    let hers = [
      line(site, "mallory", ["to": token(1)], id: "hers"), line(site, nil, ["to": token(1)], id: "nobody's"),
      line(site, "mallory", ["to": token(1)], id: "forged", headers: forged),
      line(site, nil, ["to": token(1)], id: "forged by nobody", headers: forged),
    ]
    let answers = try ask(site, by: users["mallory"], hers)
    #expect(answers.count == 4)
    #expect(answers.allSatisfy { ($0["results"] as? [[String: String]])?.first?["error"] == "NotAllowed" })
    let change: [String: Any] = ["op": "unregister", "token": token(3)]
    let refusal = try ask(
      site, by: users["mallory"], [line(site, "mallory", change, exchange: "registry", key: "change")])
    #expect(refusal.first?["error"] as? String == "NotAllowed" && refusal.first?["reason"] is String)
    let topics = ["com.example.app.voip", "com.example.other", "com.example.down", "com.example"]
    let his = topics.map { line(site, "billing", topic($0), id: $0) }
    let outcomes = try ask(site, by: users["billing"], his)
    #expect(outcomes.count { $0["failure"] as? Int == 1 } == 2)
    #expect(Set(try site.pushes().compactMap { $0.headers["apns-topic"] }) == Set(topics.prefix(2)))
    #expect(try site.pushes().allSatisfy { $0.token == token(9) })
    // A change without a reply queue.
    try site.peer(
      ["publish"], input: try site.writeLines([line(site, nil, change, exchange: "registry", key: "change")]),
      by: users["mallory"])
    #expect(try eventually { try site.depths(["dead"]) == [7] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let letters = try site.take("dead")
    #expect(letters.allSatisfy { $0.header("x-push-error") == "NotAllowed" && $0.headers["x-push-producer"] is String })
    #expect(
      Set(letters.map(\.id)).isSuperset(of: hers.compactMap { ($0["properties"] as? [String: Any])?["message_id"] as? String }))
  }

  @Test(
    "results go directly, to exclusive queues and to listed ones, and a request with another reply queue isn't sent"
  )
  func replies() throws {
    let site = try Site()
    try site.startSimulator(settings: #"replyTo: ["\#(site.prefix).listed"],"#)
    try site.declareTopology()
    let worker = try site.startWorker()
    func request(_ number: Int, to queue: String? = nil) -> [String: Any] {
      var properties: [String: Any] = ["message_id": "\(number)"]
      if let queue { properties["reply_to"] = queue }
      return ["body": ["to": token(number)], "properties": properties, "exchange": "\(site.prefix).send"]
    }
    #expect(try ask(site, by: nil, [request(1)]).count == 1)
    #expect(try ask(site, by: nil, [request(2)], queue: "").count == 1)
    #expect(try ask(site, by: nil, [request(3), request(4)], queue: "\(site.prefix).exclusive").count == 2)
    for queue in ["listed", "shared"] { try site.peer(["declare", "\(site.prefix).\(queue)"]) }
    let queues = ["listed", "shared", "shared", "nowhere", "results", "send.normal"]
    try site.publish(lines: queues.enumerated().map { request(10 + $0, to: "\(site.prefix).\($1)") })
    #expect(try site.take("listed", count: 1).map(\.id) == ["10"])
    #expect(try eventually { try site.depths(["dead"]) == [4] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.take("dead").allSatisfy { $0.header("x-push-error") == "NotAllowed" && $0.properties["reply_to"] != nil })
    #expect(try site.depths(["shared", "results", "send.normal"]) == [0, 0, 0])
    #expect(try Set(site.deliveries().keys) == Set([1, 2, 3, 4, 10, 13].map(token)))
    for queue in ["listed", "shared"] { try site.peer(["delete", "\(site.prefix).\(queue)"]) }
  }
}
