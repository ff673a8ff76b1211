import Foundation
import TestSupport
import Testing

/// Browsers as the third platform, against a push service by other hands: Python, HTTP/1.1, RFC 8291 by its cryptography library.
@Suite("Web push", .blocking)
struct WebPushTests {
  /// - Parameter fields: further fields of the application's web push settings.
  private func webPush(_ site: Site, _ fields: String = #"hosts: ["localhost"]"#) -> String {
    """
    webpush: { key: "\(site.certificates.p8)", subject: "mailto:push@example.com", ca: "\(site.certificates.authority)", \(fields) },
    """
  }

  private func register(_ browsers: Browsers, _ site: Site, _ numbers: Range<Int>, fields: [String: Any] = [:]) throws {
    let lines = try numbers.map { number in
      let change: [String: Any] = [
        "op": "register", "platform": "webpush", "subscription": browsers.subscriptions[number],
        "installation": "browser-\(number)",
      ]
      return String(decoding: try JSONSerialization.data(withJSONObject: change.merging(fields) { $1 }), as: UTF8.self)
    }
    let file = try site.write(lines.joined(separator: "\n"), to: "browsers.ndjson")
    let ended = try site.run(["devices", "import", "--config", site.file("pushfleet.json5"), file])
    guard ended.status == 0 else { throw Broken("import ended with \(ended.status): \(ended.output)") }
  }

  @Test("registered and unregistered browsers get the message, encrypted for each; refusals are feedback and dead letters")
  func outcomes() throws {
    let site = try Site()
    let browsers = try site.startBrowsers(
      6,
      script: [
        "2": ["status": 410], "3": ["status": 413], "4": ["status": 403, "body": #"{"reason":"VapidPkHashMismatch"}"#],
      ])
    try site.startFleet(apps: webPush(site))
    try register(browsers, site, 0..<5, fields: ["user": "ada"])
    let request: [String: Any] = [
      "to": "/users/ada", "time_to_live": 3600, "priority": "high", "collapse_key": "match",
      "notification": ["title": "Portugal vs. Denmark", "body": "great match!", "click_action": "https://example.com/m/1"],
      "data": ["score": "1:0"],
    ]
    try site.publish([
      (request, ["message_id": "user"]),
      (["to": try browsers.target(5), "data": ["k": "v"]], ["message_id": "raw"]),
    ])
    try site.drain()

    #expect(browsers.pushes.allSatisfy { $0["wrong"] == nil }, "\(browsers.pushes)")
    let texts = browsers.plaintexts
    #expect(texts.mapValues(\.count) == [0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1])
    // PyPI's http-ece and py-vapid have checked every push too.
    if Browsers.arePeersInstalled { #expect(browsers.pushes.allSatisfy { $0["peers"] as? Bool == true }) }
    let first = try #require(texts[0]?.first)
    let notification = first["notification"] as? [String: Any]
    #expect(first["web_push"] as? Int == 8030 && notification?["title"] as? String == "Portugal vs. Denmark")
    #expect(notification?["navigate"] as? String == "https://example.com/m/1")
    #expect((notification?["data"] as? [String: Any])?["score"] as? String == "1:0")
    #expect((texts[5]?.first?["data"] as? [String: Any])?["k"] as? String == "v")

    let push = try #require(browsers.pushes.first { $0["number"] as? Int == 0 })
    let headers = push["headers"] as? [String: String] ?? [:]
    #expect(Int(headers["ttl"] ?? "").map { (3_500...3_600).contains($0) } == true && headers["urgency"] == "high")
    #expect(headers["topic"] == "SUWnD6f5wT_hkxozcqxXmBQNQuunTQ3Y" && headers["content-encoding"] == "aes128gcm")
    let claims = push["claims"] as? [String: Any]
    #expect(claims?["sub"] as? String == "mailto:push@example.com")
    let shown = try site.run(["vapid", "show", site.certificates.p8]).output
    #expect((claims?["k"] as? String).map(shown.contains) == true, "\(shown)")

    let feedback = try site.take("feedback").map(\.json)
    let gone = feedback.first { $0["event"] as? String == "NotRegistered" }
    #expect(gone?["token"] as? String == browsers.endpoint(2) && gone?["kind"] as? String == "webpush")
    #expect(gone?["platform"] as? String == "webpush" && gone?["installation"] as? String == "browser-2")
    let mismatch = feedback.first { $0["event"] as? String == "MismatchSenderId" }
    #expect(mismatch?["token"] as? String == browsers.endpoint(4) && feedback.count == 2, "\(feedback)")
    let letters = try site.take("dead").compactMap { $0.header("x-push-error") }.sorted()
    #expect(letters == ["MessageTooBig", "MismatchSenderId"])
    let results = try site.results()
    #expect(results["user"]?.success == 2 && results["user"]?.failure == 3 && results["raw"]?.success == 1, "\(results)")
    // The registry has the browser as gone: it isn't sent to again.
    try site.publish([(request, ["message_id": "again"])])
    try site.drain()
    #expect(browsers.plaintexts[2]?.count == 1 && browsers.plaintexts[0]?.count == 2)
  }

  @Test("a broadcast reaches iPhones and browsers, and connections are kept", arguments: RegistryKind.all)
  func broadcast(_ kind: RegistryKind) throws {
    let site = try Site()
    let browsers = try site.startBrowsers(50)
    try site.startFleet(try kind.make(), settings: "fanOut: { pageSize: 20 },", apps: webPush(site))
    try register(browsers, site, 0..<50, fields: ["topics": ["all"]])
    try site.importDevices(0..<30, #""topics":["all"]"#)
    try site.broadcast("b")
    try site.drain()
    #expect(browsers.plaintexts.count == 50 && browsers.plaintexts.values.allSatisfy { $0.count == 1 })
    #expect(try site.deliveries(of: "b").count == 30)
    #expect(try site.results()["b"]! == (80, 0, 1))
    let connections = Set(browsers.pushes.compactMap { $0["connection"] as? String })
    #expect(connections.count <= 6, "\(connections.count) connections")
    // Equal for all pushes of half a day, so that the service verifies it once.
    let tokens = Set(browsers.pushes.compactMap { ($0["headers"] as? [String: String])?["authorization"] })
    #expect(tokens.count == 1)
  }

  @Test("a push service in trouble holds up only its own browsers; a new key leaves old subscriptions their key")
  func isolation() throws {
    let site = try Site()
    let (good, bad) = (try site.startBrowsers(2), try site.startBrowsers(2))
    try site.startFleet(apps: webPush(site))
    try register(good, site, 0..<1, fields: ["topics": ["all"]])
    try register(bad, site, 0..<1, fields: ["installation": "other", "topics": ["all"]])
    bad.service.end()
    // The first key is for new subscriptions.
    try site.configureFleet(
      "sqlite:registry.db",
      apps: """
        webpush: { key: ["\(site.certificates.otherP8)", "\(site.certificates.p8)"], subject: "https://example.com/push",
          ca: "\(site.certificates.authority)", hosts: ["localhost"] },
        """)
    try register(good, site, 1..<2, fields: ["topics": ["all"]])
    let worker = try site.startWorker()
    try site.publish(
      (0..<20).map { number in
        (["to": "/topics/all", "data": ["m": "\(number)"]] as [String: Any], ["message_id": "\(number)"] as [String: Any])
      })
    #expect(try eventually(seconds: 30) { good.plaintexts[0]?.count == 20 && good.plaintexts[1]?.count == 20 })
    let keys = good.pushes.map { push in
      (push["number"] as? Int ?? -1, (push["claims"] as? [String: Any])?["k"] as? String ?? "")
    }
    #expect(Set(keys.filter { $0.0 == 0 }.map(\.1)).count == 1 && Set(keys.map(\.1)).count == 2)
    #expect(!worker.outputSoFar.contains("/push/0/"), "an endpoint is in the log")
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("a request for a push service that is gone for good expires, and a broadcast's page doesn't wait for it", .early)
  func gone() throws {
    let site = try Site()
    let (good, bad) = (try site.startBrowsers(1), try site.startBrowsers(1))
    try site.startFleet(settings: "fanOut: { prefetch: 1 },", apps: webPush(site))
    try register(good, site, 0..<1, fields: ["topics": ["all"]])
    try register(bad, site, 0..<1, fields: ["installation": "other", "topics": ["all"]])
    bad.service.end()
    try site.publish([(["to": try bad.target(0), "data": ["k": "v"], "time_to_live": 12], ["message_id": "single"])])
    try site.publish(
      (0..<3).map { number in
        (
          ["to": "/topics/all", "data": ["m": "\(number)"], "time_to_live": 12] as [String: Any],
          ["message_id": "page-\(number)"] as [String: Any]
        )
      })
    try site.drain()
    #expect(good.plaintexts[0]?.count == 3)
    let results = try site.results()
    #expect(results["single"]! == (0, 1, 1), "\(results)")
    for number in 0..<3 {
      #expect(results["page-\(number)"]?.success == 1 && results["page-\(number)"]?.failure == 1, "\(results)")
    }
    #expect(try site.take("dead").isEmpty)
  }

  @Test("a slow push service doesn't hold up an iPhone, even of the same application")
  func slow() throws {
    let site = try Site()
    let browsers = try site.startBrowsers(1, script: ["0": ["status": 201, "seconds": 1]])
    try site.startFleet(settings: "prefetch: 20,", apps: webPush(site))
    let worker = try site.startWorker()
    let requests = (0..<60).map { number in
      (
        ["to": try! browsers.target(0), "data": ["m": "\(number)"]] as [String: Any],
        ["message_id": "\(number)"] as [String: Any]
      )
    }
    try site.publish(requests)
    #expect(eventually(seconds: 30) { !browsers.pushes.isEmpty })
    try site.publish([(["to": "apns:\(token(1))", "data": ["m": "iPhone"]], ["message_id": "iPhone"])])
    #expect(try eventually(seconds: 30) { try site.deliveries(of: "iPhone").count == 1 })
    #expect(browsers.pushes.count < 60, "the iPhone came last")
    #expect(eventually(seconds: 60) { browsers.pushes.count >= 60 })
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("hosts that are not allowed, and private addresses behind allowed names, are never connected to")
  func hostPolicy() throws {
    let site = try Site()
    let browsers = try site.startBrowsers(1)
    try site.startFleet(apps: webPush(site, #"hosts: ["*.example.com"]"#))
    try site.publish([(["to": try browsers.target(0), "data": ["k": "v"]], ["message_id": "host"])])
    try site.drain()
    let letter = try #require(try site.take("dead").first)
    #expect(letter.header("x-push-error") == "InvalidRegistration")
    #expect(letter.header("x-push-reason")?.contains("webpush.hosts") == true)
    try site.configureFleet("sqlite:registry.db", apps: webPush(site, #"hosts: ["*"]"#))
    try site.publish([(["to": try browsers.target(0), "data": ["k": "v"], "time_to_live": 2], ["message_id": "private"])])
    try site.drain()
    #expect(browsers.pushes.isEmpty)
    let result = try #require(try site.take("results").first { $0.id == "private" })
    #expect(result.json["failure"] as? Int == 1)
  }

  @Test("subscriptions that can't be used are refused with the field")
  func badSubscriptions() throws {
    let site = try Site()
    let browsers = try site.startBrowsers(1)
    try site.startFleet(apps: webPush(site))
    var broken = browsers.subscriptions[0]
    broken["keys"] = ["p256dh": "AAAA", "auth": "AAAA"]
    var removed = browsers.subscriptions[0]
    removed["endpoint"] = "https://permanently-removed.invalid/fcm/send/x"
    let worker = try site.startWorker()
    let answers = try site.change([
      ["op": "register", "app": Site.app, "platform": "webpush", "subscription": broken],
      ["op": "register", "app": Site.app, "platform": "webpush", "subscription": removed],
      ["op": "register", "app": Site.app, "platform": "webpush", "token": "abc"],
      ["op": "register", "app": Site.app, "platform": "webpush", "subscription": browsers.subscriptions[0]],
    ])
    #expect((answers[0]["reason"] as? String)?.contains("p256dh") == true, "\(answers)")
    #expect((answers[1]["reason"] as? String)?.contains("permanently-removed.invalid") == true, "\(answers)")
    #expect(answers[2]["error"] != nil && answers[3]["registration"] is String, "\(answers)")
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
