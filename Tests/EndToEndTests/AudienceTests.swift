import Foundation
import TestSupport
import Testing

@Suite("Audiences", .blocking)
struct AudienceTests {
  @Test("every kind of target reaches its devices once, on both platforms", arguments: RegistryKind.all)
  func targets(_ kind: RegistryKind) throws {
    let site = try Site()
    let later = (Int(Date().timeIntervalSince1970) + 3_600) * 1_000
    let fcm = try site.startFCM()
    try site.startFleet(
      try kind.make(), script: [token(10): ["status": 410, "reason": "Unregistered", "timestamp": later]],
      settings: "fanOut: { pageSize: 3 }, breaker: { percent: 90, sample: 1000 },", apps: fcm)

    // Twelve devices, iPhones with even numbers and Androids with odd ones, half of them known by their installation, in three users.
    func android(_ number: Int) -> String { number < 6 ? "android:\(number)" : "fid:c" + String(format: "%021d", number) }
    let worker = try site.startWorker()
    var changes: [[String: Any]] = (0..<12).map { number in
      [
        "platform": number % 2 == 0 ? "apns" : "fcm", "token": number % 2 == 0 ? token(number) : android(number),
        "installation": "i\(number)", "user": "u\(number % 3)", "topics": number < 4 ? ["news", "sport"] : ["news"],
      ]
    }
    changes.append(["op": "subscribe", "topic": "empty", "tokens": [token(0)]])
    changes.append(["op": "unsubscribe", "topic": "empty", "tokens": [token(0)]])
    changes.append(["platform": "apns", "token": token(102), "installation": "i2"])
    changes.append([
      "op": "group_create", "notification_key_name": "g", "registration_ids": ["apns:\(token(0))", "fcm:android:5"],
    ])
    changes.append(["op": "group_create", "notification_key_name": "g", "registration_ids": ["apns:\(token(0))"]])
    let answers = try site.change(changes)
    let registrations = answers.prefix(12).compactMap { $0["registration"] as? String }
    let group = try #require(answers[15]["notification_key"] as? String)
    #expect(registrations.count == 12 && answers[14]["registration"] as? String != registrations[2])
    #expect(answers[16]["error"] as? String == "notification_key already exists")
    try site.broadcast("gone", to: ["to": "/topics/news"])
    #expect(worker.waitForOutput("campaign ended", seconds: 90))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.results()["gone"]! == (11, 1, 1))
    let events = try site.take("feedback")
    let moved = events.filter { $0.json["event"] as? String == "Moved" }.map(\.json)
    #expect(moved.map { $0["token"] as? String } == [token(2)] && moved.first?["new_token"] as? String == token(102))
    let feedback = events.filter { $0.json["event"] as? String == "NotRegistered" }
    #expect(feedback.count == 1 && feedback.first?.json["registration"] as? String == registrations[10])

    // Number 10 is gone now, and number 2 has a new token.
    let unknownGroup = group.dropLast() + (group.hasSuffix("0") ? "1" : "0")
    let requests: [(id: String, target: [String: Any], success: Int, failure: Int)] = [
      ("topic", ["to": "/topics/news"], 11, 0),
      ("condition", ["condition": "'news' in topics && !('sport' in topics)"], 7, 0),
      ("negation", ["condition": "!('sport' in topics)"], 7, 0),
      ("nobody's", ["condition": "!('nobody' in topics)"], 11, 0),
      ("overlap", ["condition": "'news' in topics || 'sport' in topics"], 11, 0),
      ("all", ["to": "/all"], 11, 0), ("all in a list", ["registration_ids": ["/all", token(77)]], 2, 0),
      ("user", ["to": "/users/u1"], 3, 0),
      ("group", ["to": group], 2, 0),
      ("registration", ["to": registrations[1]], 1, 0),
      ("old", ["to": registrations[2]], 1, 0),
      ("uninstalled", ["to": registrations[10]], 0, 1),
      (
        "list",
        [
          "registration_ids": [
            registrations[1], "fcm:android:1", registrations[1], "apns:\(token(0))", registrations[10],
            "pf1r~" + String(repeating: "0", count: 26), token(77),
          ]
        ], 5, 2
      ),
      (
        "mixed",
        [
          "registration_ids": [
            "/users/u1", group, token(77), "/topics/sport", registrations[1], "/topics/nobody", "/topics/empty",
            "/users/nobody",
          ]
        ], 5, 3
      ),
      ("empty", ["to": "/topics/empty"], 0, 0),
      ("no topic", ["to": "/topics/nobody"], 0, 1), ("no user", ["to": "/users/nobody"], 0, 1),
      ("no group", ["to": String(unknownGroup)], 0, 1),
      ("no condition", ["condition": "'nobody' in topics"], 0, 1),
      ("dry", ["to": "/topics/news", "dry_run": true], 1, 0),
    ]
    for request in requests { try site.broadcast(request.id, to: request.target) }
    try site.publish([
      (["to": "/topics/news", "data": ["m": "late"], "time_to_live": 1], ["message_id": "late", "timestamp": 1_000_000])
    ])
    try site.drain()
    let taken = try site.take("results")
    for request in requests {
      let results = taken.filter { $0.id == request.id }
      #expect(results.count == 1, "\(request.id)")
      let json = try #require(results.first?.json)
      #expect(
        json["success"] as? Int == request.success && json["failure"] as? Int == request.failure, "\(request.id): \(json)")
    }
    func results(of id: String) -> [[String: String]] {
      taken.first { $0.id == id }?.json["results"] as? [[String: String]] ?? []
    }
    #expect(results(of: "late") == [["error": "Expired"]])
    #expect(results(of: "uninstalled") == [["error": "NotRegistered"]])
    #expect(results(of: "old").first?["registration_id"] == answers[14]["registration"] as? String)
    let list = results(of: "list")
    #expect(list.count == 7 && list[0] == list[1] && list[1] == list[2] && list[3]["message_id"] != nil)
    #expect(
      list[4] == ["error": "NotRegistered"] && list[5]["error"] == "InvalidRegistration"
        && list[5]["reason"] != nil)

    // Each phone got one push. The gone device was tried once, before its answer was known.
    let pushes = try site.pushes()
    #expect(pushes.filter { $0.token == token(10) }.count == 1)
    #expect(pushes.filter { $0.token == token(2) }.allSatisfy { $0.payload["m"] as? String == "gone" })
    let androids = Site.objects(try String(contentsOfFile: site.file("fcm.ndjson"), encoding: .utf8)).filter {
      $0["token"] as? String != ""
    }
    let installations = androids.compactMap {
      (($0["payload"] as? [String: Any])?["message"] as? [String: Any])?["fid"] as? String
    }
    #expect(Set(installations) == Set([7, 9, 11].map { String(android($0).dropFirst(4)) }))
    for request in requests where request.id != "dry" {
      let apple = try site.deliveries(of: request.id)
      let google = androids.filter {
        (($0["payload"] as? [String: Any])?["message"] as? [String: Any])?["data"] as? [String: String] == ["m": request.id]
      }
      #expect(
        apple.values.allSatisfy { $0 == 1 } && Set(google.map { "\($0["token"] ?? "")" }).count == google.count, "\(request.id)"
      )
      // Results without their own push, and pushes without a result: those of the list's audiences.
      let difference = ["list": 2, "mixed": -3, "all in a list": -10][request.id] ?? 0
      #expect(apple.count + google.count + difference == request.success, "\(request.id)")
    }
    let dead = Dictionary(grouping: try site.take("dead"), by: \.id).mapValues { $0.map { $0.header("x-push-error") } }
    #expect(
      dead == [
        "no topic": ["InvalidRegistration"], "no user": ["InvalidRegistration"], "no group": ["InvalidRegistration"],
        "no condition": ["InvalidRegistration"], "list": ["InvalidRegistration"],
        "mixed": ["InvalidRegistration", "InvalidRegistration", "InvalidRegistration"],
      ])
  }

  @Test("a device is reached with the credential of its own sender and environment, and with no other")
  func senders() throws {
    let site = try Site()
    try site.startSimulator()
    try site.configureFleet("sqlite:registry.db", apps: "")
    try site.write(
      """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", \(Site.retries)
        apps: { "\(Site.app)": {
          apns: [ \(site.apns()), \(site.apns("environment: \"sandbox\",", topic: "com.example.beta")) ],
          senders: {
            "1001": { apns: \(site.apns(topic: "com.example.other")) },
            "1002": { apns: \(site.apns(topic: "com.example.third")) } } } } }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    try site.importDevices(0..<1, #""topics":["all"]"#)
    try site.importDevices(1..<2, #""topics":["all"],"environment":"sandbox""#)
    try site.importDevices(2..<3, #""topics":["all"],"sender":"1001""#)
    try site.importDevices(3..<4, #""topics":["all"],"environment":"production""#)
    try site.broadcast("plain")
    try site.publish([
      (["to": "/topics/all", "data": ["m": "named"]], ["message_id": "named", "headers": ["x-push-sender": "1001"]])
    ])
    let config = site.file("pushfleet.json5")
    let shown = try site.run(["devices", "show", "--token", "apns:" + token(2), "--json", "--config", config])
    let other = try #require(Site.objects(shown.output).first?["registration"] as? String)
    try site.publish([(["to": other], ["message_id": "other", "headers": ["x-push-sender": "1002"]])])
    try site.drain()
    let topics = try site.pushes().filter { $0.payload["m"] as? String == "plain" }.reduce(into: [:]) {
      $0[$1.token] = $1.headers["apns-topic"]
    }
    #expect(
      topics == [token(0): Site.app, token(1): "com.example.beta", token(2): "com.example.other", token(3): Site.app])
    let named = try site.pushes().filter { $0.payload["m"] as? String == "named" }.map { $0.headers["apns-topic"] }
    // That sender has no sandbox.
    #expect(named == Array(repeating: "com.example.other", count: 3))
    #expect(
      try Set(site.take("dead").map { "\($0.id) \($0.header("x-push-error") ?? "")" }) == [
        "named MismatchSenderId", "other MismatchSenderId",
      ])
    let results = try site.results()
    #expect(results["plain"]! == (4, 0, 1) && results["named"]! == (3, 1, 1) && results["other"]! == (0, 1, 1))
  }

  @Test("a refused change without a reply queue is a dead letter; hostile names stay names", arguments: RegistryKind.all)
  func changes(_ kind: RegistryKind) throws {
    let site = try Site()
    try site.startFleet(try kind.make())
    let worker = try site.startWorker()
    let hostile = "'; DROP TABLE devices; --"
    let answers = try site.change([
      [
        "platform": "fcm", "token": "a", "installation": hostile, "user": "u", "name": hostile, "locale": hostile,
        "time_zone": hostile, "app_version": hostile, "topics": ["all"],
      ],
      ["op": "unregister", "token": "fcm:x"],
      ["op": "subscribe", "topic": "all", "tokens": ["fcm:a", "fcm:b", hostile]],
      ["op": "nonsense"],
    ])
    #expect(answers[0]["registration"] != nil && answers[1].isEmpty, "\(answers)")
    #expect((answers[2]["results"] as? [[String: String]])?.map { $0["error"] ?? "" } == ["", "NOT_FOUND", "INVALID_ARGUMENT"])
    #expect(answers[3]["error"] as? String == "InvalidParameters")
    let lines = [#"{"op":"nonsense"}"#, "not JSON"].map {
      #"{"body":\#(String(reflecting: $0)),"exchange":"","routing_key":"\#(site.prefix).registry","properties":{"message_id":"bad"}}"#
    }
    try site.peer(["publish"], input: try site.write(lines.joined(separator: "\n") + "\n", to: "bad.ndjson"))
    let dead = try site.take("dead", count: 2)
    #expect(dead.map { $0.header("x-push-error") } == ["InvalidParameters", "InvalidJSON"])
    #expect(dead.allSatisfy { $0.id == "bad" })
    #expect(try site.change([["op": "unregister", "installation": hostile]])[0].isEmpty)
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
