import Foundation
import TestSupport
import Testing

@Suite("Badge counters of devices", .blocking)
struct BadgeTests {
  private static func say(_ badge: Any) -> [String: Any] { ["notification": ["body": "b", "badge": badge]] }

  /// The badges that each device got with a message.
  private func badges(_ site: Site, _ messageID: String) throws -> [String: Set<Int>] {
    try site.pushes().reduce(into: [:]) { badges, push in
      guard push.payload["m"] as? String == messageID, let aps = push.payload["aps"] as? [String: Any] else { return }
      badges[push.token, default: []].insert(aps["badge"] as? Int ?? -1)
    }
  }

  @Test("each push increments the device's counter, reading decrements it, a number sets it", arguments: RegistryKind.all)
  func path(_ registry: RegistryKind) throws {
    let site = try Site()
    let fcm = try site.startFCM()
    try site.startFleet(try registry.make(), apps: fcm)
    try site.importDevices(1...3, #""topics":["all"]"#)
    let worker = try site.startWorker()
    let android = try #require(try site.change([["platform": "fcm", "token": "robot"]])[0]["registration"] as? String)
    func send(_ messageID: String, _ badge: Any, to target: [String: Any] = ["to": "/topics/all"]) throws {
      try site.broadcast(messageID, to: Self.say(badge).merging(target) { $1 })
      #expect(try eventually { try site.take("results", count: 1).first?.id == messageID })
    }
    try send("m1", "auto")
    // A dry run counts nothing, asks FCM with the number that would be sent, and refuses devices without a counter like a push.
    try site.broadcast(
      "dry",
      to: Self.say("auto").merging(["registration_ids": ["fcm:robot", "fcm:nobody", token(1), token(99)], "dry_run": true]) {
        $1
      })
    var dry: [[String: Any]] = []
    #expect(
      try eventually {
        dry = try site.take("results", count: 1).first?.json["results"] as? [[String: Any]] ?? []
        return !dry.isEmpty
      })
    #expect(dry.map { $0["error"] as? String } == [nil, "InvalidParameters", nil, "InvalidParameters"], "\(dry)")
    try send("m2", "auto", to: ["registration_ids": [token(1), "fcm:robot", android]])
    try site.acknowledge([
      ["op": "read", "token": token(1), "message_id": "m1"], ["op": "badge", "token": token(2), "badge": 40],
    ])
    #expect(try eventually { try site.depths(["acks"]) == [0] })
    try send("m3", "auto")
    try send("m4", 7, to: ["to": token(3)])
    // A request that is too large for a push changes no counter; the block's badge replaces the notification's.
    let large = ["to": token(1), "data": ["a": String(repeating: "x", count: 4_090)]] as [String: Any]
    try site.publish([(Self.say("auto").merging(large) { $1 }, ["message_id": "large"])])
    #expect(try eventually { try site.take("results", count: 1).first?.id == "large" })
    #expect(try site.take("dead").contains { $0.id == "large" && $0.header("x-push-error") == "MessageTooBig" })
    let block = ["to": token(3), "apns": ["payload": ["aps": ["badge": 30]]]] as [String: Any]
    try send("m4b", 7, to: block)
    try send("m4c", "auto", to: ["to": token(3)])
    try send("m4d", 7, to: ["to": token(3)])
    // The same message again doesn't count again.
    try send("m3", "auto", to: ["to": token(2)])
    try send("m5", "auto")
    // A request without a message id gets one first.
    try site.publish([(Self.say("auto").merging(["to": token(3), "data": ["m": "unnamed"]]) { $1 }, [:])])
    #expect(try eventually { try badges(site, "unnamed") == [token(3): [9]] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try badges(site, "m1") == [token(1): [1], token(2): [1], token(3): [1]])
    #expect(try badges(site, "m2") == [token(1): [2]])
    #expect(try badges(site, "m3") == [token(1): [2], token(2): [41], token(3): [2]])
    #expect(try badges(site, "m4") == [token(3): [7]])
    #expect(try badges(site, "m4b") == [token(3): [30]] && badges(site, "m4c") == [token(3): [31]])
    #expect(try badges(site, "m5") == [token(1): [3], token(2): [42], token(3): [8]])
    let requests = Site.objects(try String(contentsOfFile: site.file("fcm.ndjson"), encoding: .utf8))
      .compactMap { $0["payload"] as? [String: Any] }.filter { $0["message"] != nil }
    #expect(requests.map { $0["validate_only"] as? Bool } == [true, nil], "\(requests)")
    let shown = requests.compactMap {
      (($0["message"] as? [String: Any])?["android"] as? [String: Any])?["notification"] as? [String: Any]
    }
    #expect(shown.map { $0["notification_count"] as? Int } == [1, 1], "\(requests)")
  }

  @Test("an unregistered token has no counter: auto is a dead letter that names it, a number is sent unchanged")
  func unregistered() throws {
    let site = try Site()
    try site.startFleet()
    try site.importDevices(1...1, #""user":"anna""#)
    let worker = try site.startWorker()
    try site.broadcast("auto", to: Self.say("auto").merging(["registration_ids": [token(1), token(2)]]) { $1 })
    try site.broadcast("five", to: Self.say(5).merging(["to": token(2)]) { $1 })
    #expect(try eventually { try site.depths(["results", "dead"]) == [2, 1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let letter = try #require(try site.take("dead").first)
    #expect(letter.header("x-push-error") == "InvalidParameters" && letter.json["to"] as? String == "apns:" + token(2))
    #expect(try badges(site, "auto") == [token(1): [1]] && badges(site, "five") == [token(2): [5]])
  }

  @Test("with countBadges an alert without a badge counts as auto, and a device without a counter gets none")
  func byDefault() throws {
    let site = try Site()
    let fcm = try site.startFCM()
    try site.startFleet(apps: "\(fcm) countBadges: true,")
    try site.importDevices(1...1, #""user":"anna""#)
    let worker = try site.startWorker()
    let android = try #require(try site.change([["platform": "fcm", "token": "robot"]])[0]["registration"] as? String)
    let shown = ["body": "b"]
    let bodies: [(String, [String: Any])] = [
      ("m1", ["to": token(1), "notification": shown]), ("m2", ["message": ["token": token(1), "notification": shown]]),
      ("m3", ["to": token(1), "data": ["a": "b"]]),
      ("m4", ["to": token(1), "notification": shown, "apns": ["payload": ["aps": ["badge": NSNull()]]]]),
      ("m5", ["registration_ids": [token(1), token(2), android], "notification": shown]),
      ("m6", ["to": token(1), "notification": ["body": "b", "badge": 7]]),
    ]
    for (id, body) in bodies {
      try site.publish([(body, ["message_id": id])])
      #expect(try eventually { try site.take("results", count: 1).first?.json["failure"] as? Int == 0 }, "\(id)")
    }
    worker.signal(15)
    #expect(worker.wait() == 0)
    let pushes = try site.pushes()
    func badges(_ number: Int) -> [Int?] {
      pushes.filter { $0.token == token(number) }.map { ($0.payload["aps"] as? [String: Any])?["badge"] as? Int }
    }
    #expect(badges(1) == [1, 2, nil, nil, 3, 7] && badges(2) == [nil])
    #expect(try site.depths(["dead"]) == [0] && pushes.allSatisfy { $0.violations == [] })
    let requests = try String(contentsOfFile: site.file("fcm.ndjson"), encoding: .utf8)
    #expect(requests.contains(#""notification_count":1"#))
  }

  @Test("kill -9 of workers at random moments: each device counts each message once, and each read")
  func killed() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededGenerator(seed: seed)
    let site = try Site()
    let devices = 120
    // Some have no answer at first, so that retries count too.
    let unanswered = (0..<devices / 10).map { (token($0), ["reset": true, "times": 1] as [String: Any]) }
    try site.startFleet(
      script: Dictionary(uniqueKeysWithValues: unanswered), settings: "fanOut: { pageSize: 25 }, receipts: true,")
    try site.importDevices(0..<devices, #""topics":["all"]"#)
    let journal = try site.followJournal()
    let kills = Site.rounds("KILLS", usually: 4)
    let messages = (0..<2 * kills).map { "m\($0)" }
    try site.acknowledge([
      (0..<devices).map { ["op": "badge", "token": token($0), "badge": 100, "at": "2026-11-20T21:22:00Z"] as [String: Any] }
    ])
    let first = try site.startWorker()
    #expect(try eventually { try site.depths(["acks"]) == [0] })
    first.end()
    for round in 0..<kills {
      let worker = try site.startWorker()
      // A device acknowledges only what has reached it.
      if round > 0 { #expect(try eventually { try badges(site, messages[2 * round - 1]).count == devices }, "seed \(seed)") }
      let before = journal.linesSoFar
      for message in messages[2 * round..<2 * round + 2] {
        try site.broadcast(message, to: Self.say("auto").merging(["to": "/topics/all"]) { $1 })
      }
      if round > 0 {
        let read = (0..<devices).map { ["op": "read", "token": token($0), "message_id": messages[2 * round - 1]] }
        try site.acknowledge([Array(read[..<60])] + Array(read[60...]))
      }
      #expect(journal.waitForLines(before + Int.random(in: 1..<devices, using: &random), seconds: 60), "seed \(seed)")
      worker.end()
    }
    let worker = try site.startWorker()
    #expect(try eventually(seconds: 60) { try site.depths(["acks"]) == [0] })
    #expect(
      try eventually(seconds: 60) {
        try site.campaigns().values.filter { $0["state"] as? String == "completed" }.count == messages.count
      }, "seed \(seed)")
    try site.broadcast("last", to: Self.say("auto").merging(["to": "/topics/all"]) { $1 })
    #expect(try eventually(seconds: 60) { try site.campaigns()["last"]?["state"] as? String == "completed" }, "seed \(seed)")
    worker.signal(15)
    #expect(worker.wait() == 0)
    let all = try messages.map { try badges(site, $0) }
    let last = try badges(site, "last")
    for device in (0..<devices).map(token) {
      let own = all.map { $0[device] ?? [] }
      // A message had one number, however often it was sent.
      #expect(own.allSatisfy { $0.count == 1 }, "seed \(seed): \(own)")
      #expect(last[device] == [100 + messages.count - (kills - 1) + 1], "seed \(seed): \(own)")
    }
    let receipts = try site.take("receipts").map { "\($0.json["registration"] ?? "") \($0.json["message_id"] ?? "")" }
    #expect(Set(receipts).count == devices * (kills - 1), "seed \(seed)")
    print(
      "workers killed \(kills) times, seed \(seed): \(devices) devices counted \(messages.count) messages; receipts repeated: \(receipts.count - Set(receipts).count)"
    )
  }
}
