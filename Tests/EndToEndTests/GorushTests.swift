import Foundation
import TestSupport
import Testing

@Suite("gorush's interface of the gateway", .blocking)
struct GorushTests {
  @Test("its senders need another host and a key: failed tokens are logged, and a field without counterpart is refused by name")
  func senders() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    let script = try site.write(#"{"android:9": {"status": 404, "reason": "UNREGISTERED"}}"#, to: "fcm-script.json")
    let fcm = try site.startFCM(["--script", script])
    let gone = token(9)
    try site.startFleet(
      script: [gone: ["status": 410, "reason": "Unregistered", "timestamp": 1_732_137_600_000]], settings: Door.settings(port),
      apps: fcm)
    let door = try Door(site, port: port)
    let worker = try site.startWorker()
    let key = try door.key("send").key
    func push(_ notifications: String) throws -> HTTPProbe.Answer {
      try door.ask("POST", "/api/push", key, #"{"notifications":[\#(notifications)]}"#)
    }
    func pushed(_ notifications: String) throws -> [String: Any] {
      try door.json("POST", "/api/push", key, #"{"notifications":[\#(notifications)]}"#)
    }

    let answer = try pushed(
      #"""
      {"tokens":["\#(token(1))","\#(gone)"],"platform":1,"message":"m","title":"t","badge":0,"sound":{"critical":1,"name":"s","volume":1.0},
       "topic":"\#(Site.app)","data":{"key1":"welcome","key2":2},"mutable_content":true,"category":"c","thread-id":"th","retry":3,
       "alert":{"subtitle":"st","body":"","loc-args":["x"]},"collapse_id":"ci","interruption_level":"active","dismissal-date":0,
       "notif_id":"n-1","apns_id":"","expiration":4000000000},
      {"tokens":["android:1","android:9"],"platform":2,"message":"hello","title":"","notification":{"color":"#112244","body":"x"},
       "android":{"ttl":"60s"},"data":{"n":5},"sound":"default","priority":"normal"},
      {"to":"/topics/foo-bar","platform":2,"message":"topic"}
      """#)
    #expect(answer["success"] as? String == "ok" && answer["counts"] as? Int == 5)
    let logs = try #require(answer["logs"] as? [[String: String]])
    #expect(
      logs == [
        [
          "notif_id": "n-1", "type": "failed-push", "platform": "ios", "token": gone, "message": "m", "error": "Unregistered",
        ],
        ["type": "failed-push", "platform": "android", "token": "android:9", "message": "hello", "error": "NotRegistered"],
      ])
    let sent = try #require(try site.pushes().first { $0.token == token(1) })
    #expect(sent.violations.isEmpty)
    #expect(
      sent.payload as NSDictionary == [
        "aps": [
          "alert": ["title": "t", "body": "m", "subtitle": "st", "loc-args": ["x"]], "badge": 0,
          "sound": ["critical": 1, "name": "s", "volume": 1], "mutable-content": 1, "category": "c", "thread-id": "th",
          "interruption-level": "active",
        ], "key1": "welcome", "key2": 2,
      ])
    for (name, value) in [
      ("apns-topic", Site.app), ("apns-collapse-id", "ci"), ("apns-expiration", "4000000000"), ("apns-priority", "10"),
      ("apns-push-type", "alert"),
    ] { #expect(sent.headers[name] == value, "\(name)") }
    let messages = Site.objects(try String(contentsOfFile: site.file("fcm.ndjson"), encoding: .utf8)).compactMap {
      (($0["payload"] ?? $0["body"]) as? [String: Any])?["message"] as? [String: Any]
    }
    let android = try #require(messages.first { $0["token"] as? String == "android:1" })
    #expect(
      android["notification"] as? [String: String] == ["body": "hello"] && android["data"] as? [String: String] == ["n": "5"])
    let block = try #require(android["android"] as? [String: Any])
    #expect(
      (block["notification"] as? [String: String])?["color"] == "#112244" && (block["ttl"] as? String)?.hasSuffix("s") == true)
    #expect(block["priority"] as? String == "NORMAL")
    #expect(messages.contains { $0["topic"] as? String == "foo-bar" })

    // Refused by name, and nothing of the call is sent.
    let good = #"{"tokens":["\#(token(2))"],"platform":1,"message":"m"}"#
    for (bad, reason) in [
      (#"{"tokens":["a"],"platform":2,"message":"m","api_key":"k"}"#, "notifications[1]: api_key: is not supported"),
      (#"{"tokens":["a"],"platform":3,"message":"m"}"#, "platform: expected 1 (iOS) or 2 (Android)"),
      (#"{"tokens":["\#(token(2))"],"platform":1,"message":"m","image":"https://x"}"#, "image"),
      (#"{"tokens":["\#(token(2))"],"platform":1,"message":"m","development":true}"#, "development"),
      (#"{"tokens":["\#(token(2))"],"platform":1,"message":"m","priority":"urgent"}"#, "priority"),
      (#"{"tokens":["\#(token(2))"],"platform":1,"message":"m","badge":"x"}"#, "badge"),
      (#"{"tokens":["\#(token(2))"],"platform":1,"message":"m","data":{"aps":{}}}"#, "data.aps"),
      (#"{"tokens":["a"],"topic":"t","platform":2,"message":"m"}"#, "tokens: not beside topic"),
      (#"{"tokens":[],"platform":2,"message":"m"}"#, "tokens"), (#"{"tokens":[5],"platform":2}"#, "tokens"), ("5", "object"),
    ] {
      let refused = try push(good + "," + bad)
      #expect(refused.status == 400 && refused.body.contains(reason) && refused.body.contains(#""code":400"#), "\(refused)")
    }
    let hundred = Array(repeating: good, count: 101).joined(separator: ",")
    for (body, reason) in [
      ("{}", "Missing notifications field."), (#"{"notifications":[]}"#, "Notifications field is empty."),
      (#"{"notifications":[\#(hundred)]}"#, "Number of notifications(101) over limit(100)"), ("x", "at byte 0"),
      (#"{"notifications":[\#(good)],"sync":true}"#, "sync"),
    ] {
      let refused = try door.ask("POST", "/api/push", key, body)
      #expect(refused.status == 400 && refused.body.contains(reason), "\(refused)")
    }
    #expect(try door.ask("POST", "/api/push", nil, "{}").body.contains(#"{"code":401,"message":""#))
    #expect(try site.pushes().allSatisfy { $0.token != token(2) })

    // The same call again sends nothing again, also with an Idempotency-Key.
    for headers in [[:], ["Idempotency-Key": "a"], ["Idempotency-Key": "a"]] {
      _ = try door.json("POST", "/api/push", key, #"{"notifications":[\#(good),\#(good)]}"#, headers)
    }
    #expect(try site.deliveries()[token(2)] == 3)
    let other = try door.key("send", ["--environment", "production"]).key
    let production = good.replacing("{\"tokens\"", with: #"{"production":true,"development":false,"tokens""#)
    _ = try door.json("POST", "/api/push", other, #"{"notifications":[\#(production)]}"#)
    #expect(try site.deliveries()[token(2)] == 4)

    let stat = try door.json("GET", "/api/stat/app", key)
    #expect(stat["total_count"] as? Int == 12 && stat["version"] is String)
    #expect(stat["ios"] as? [String: Int] == ["push_success": 8, "push_error": 1])
    #expect(stat["android"] as? [String: Int] == ["push_success": 2, "push_error": 1])
    for path in ["/api/stat/go", "/api/config", "/sys/stats", "/metrics"] {
      let missing = try door.json("GET", path, nil, status: 404)
      #expect(missing["code"] as? Int == 404)
      #expect((missing["message"] as? String)?.hasPrefix("\(path) of gorush is not supported") == true)
    }
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("a key for several applications needs a bundle or a header, and what can't be published is to be sent again")
  func applications() throws {
    let broker = try Broker()
    let site = try Site(broker: broker)
    let port = try FreePorts.take(1)[0]
    try site.startSimulator()
    let other = "com.example.other"
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", \(Door.settings(port, wait: 1))
        apps: { "\(Site.app)": { apns: \(site.apns()) }, "\(other)": { apns: \(site.apns(topic: other)) } },
      }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    let door = try Door(site, port: port)
    let key = try door.key("send", ["--app", "\(Site.app),\(other)"]).key
    func push(_ fields: String, _ headers: [String: String] = [:]) throws -> HTTPProbe.Answer {
      let notification = #"{"tokens":["\#(token(1))"],"platform":1,"message":"m"\#(fields)}"#
      return try door.ask("POST", "/api/push", key, #"{"notifications":[\#(notification)]}"#, headers)
    }
    let nobodys = try push("")
    #expect(nobodys.status == 400 && nobodys.body.contains("topic: names none of the key's 2 applications"))
    // Not in time: neither failed nor sent.
    let answer = try push(#","topic":"\#(other)""#)
    #expect(answer.status == 200 && answer.body == #"{"counts":1,"logs":[],"success":"ok"}"#)
    _ = try push("", ["project_id": Site.app])
    #expect(try site.take("send.high", count: 2).map { $0.properties["app_id"] as? String } == [other, Site.app])
    broker.stop()
    #expect(eventually { door.probe.ask("/readyz")?.status == 503 })
    let refused = try push(#","topic":"\#(other)","badge":1"#)
    #expect(refused.status == 503 && refused.headers["retry-after"] != nil && refused.body.contains(#""code":503"#))
    door.gateway.signal(15)
    #expect(door.gateway.wait() == 0)
  }
}
