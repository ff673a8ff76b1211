import Foundation
import TestSupport
import Testing
import Wire

@testable import AMQP
@testable import Delivery

@Suite("A malicious producer", .blocking)
struct AdversaryTests {
  @Test("replies to nowhere, to the fleet's own queues and to invalid queues hold nothing up")
  func replies() throws {
    let site = try Site()
    try site.startSimulator(settings: #"results: "all","#)
    try site.declareTopology()
    let places = [
      "nobody", "amq.rabbitmq.reply-to.x", "amq.rabbitmq.reply-to.", "amq.rabbitmq.reply-to.g1h3AAVyZXBseQ==.x", "#", "\r\n",
      " ",
      String(repeating: "r", count: 255), "\(site.prefix).send.normal", "\(site.prefix).retry.1s", "\(site.prefix).dead",
      "\(site.prefix).fanout.normal", "\(site.prefix).feedback",
    ]
    try site.publish(
      places.enumerated().map { (#"{"to":"\#(token($0))"}"#, ["message_id": "m\($0)", "reply_to": $1, "correlation_id": "c"]) })
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: places.indices.map { (token($0), 1) }))
    // A request that was under way when the broker closed the connection may come twice.
    #expect(try Set(site.take("results").map(\.id)).count == places.count)
    #expect(try site.depths(["dead", "feedback", "retry.1s", "fanout.normal"]) == [0, 0, 0, 0])
  }

  @Test("a reply queue that stays full, or may not be written to, is given up; others aren't affected")
  func refusedReplies() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    let full = "\(site.prefix).replies"
    try site.peer(["declare", full, "--arguments", #"{"x-max-length": 1, "x-overflow": "reject-publish"}"#])
    try site.publish((0..<8).map { (#"{"to":"\#(token($0))"}"#, ["message_id": "m\($0)", "reply_to": full]) })
    try site.publish([(#"{"to":"\#(token(100))"}"#, ["message_id": "m100"])])
    try site.drain()
    #expect(try site.deliveries().count == 9)

    let user = "u\(site.prefix)"
    let own = "^\(site.prefix)"
    try site.broker.addUser(user, password: "secret", configure: own, write: own, read: own)
    site.brokerURI = "amqp://\(user):secret@127.0.0.1:\(site.broker.port)"
    try site.configure(port: site.port, settings: #"results: "all","#)
    try site.publish((200..<220).map { (#"{"to":"\#(token($0))"}"#, ["message_id": "m\($0)", "reply_to": "somewhere"]) })
    try site.drain()
    #expect(try Set(site.take("results").map(\.id)) == Set((200..<220).map { "m\($0)" }))
    #expect(try site.deliveries().count == 29)
  }

  @Test("forged addresses of direct reply-to end few connections; each result of other requests comes")
  func forgedDirectReplies() throws {
    let site = try Site()
    try site.startSimulator(settings: #"results: "all","#)
    try site.declareTopology()
    let worker = try site.startWorker()
    let journal = try site.followJournal()
    func endings() -> Int { worker.outputSoFar.ranges(of: "broker connection ended").count }
    func publish(_ numbers: Range<Int>, _ node: (Int) -> String) throws {
      for number in numbers {
        let forged = "amq.rabbitmq.reply-to.\(node(number)).key"
        try site.publish([
          (#"{"to":"\#(token(number))"}"#, ["message_id": "forged\(number)", "reply_to": forged]),
          (#"{"to":"\#(token(1_000 + number))"}"#, ["message_id": "m\(number)"]),
        ])
      }
      #expect(journal.waitForLines(2 * numbers.upperBound, seconds: 60))
    }
    try publish(0..<10) { _ in "forged" }
    #expect(endings() <= 1)
    try publish(10..<20) { "forged\($0)" }
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(endings() <= 3, "\(worker.outputSoFar)")
    #expect(try Set(site.take("results").map(\.id)).isSuperset(of: (0..<20).map { "m\($0)" }))
    #expect(try site.depths(["send.normal", "dead"]) == [0, 0] && site.pushes().count == 40)
  }

  static let overrides: [[String: String]] = [
    [":path": "/x"], [":authority": "x"], ["authorization": "bearer x"], ["host": "x"], ["content-length": "5"],
    ["connection": "close"],
    ["te": "x"], ["transfer-encoding": "chunked"], ["": "x"], ["Apns-Topic": "com.other"], ["apns-topic": "a\r\nb: c"],
    ["apns-topic": ""], ["apns-id": "../x"], ["apns-expiration": "99999999999999999999"], ["apns-priority": "99"],
    ["apns-collapse-id": "a\nb"], ["apns-collapse-id": String(repeating: "x", count: 65)], ["apns-push-type": "nope"],
  ]

  @Test("no header can override the connection's; the request is a dead letter and the connection stays")
  func headerOverrides() throws {
    let site = try Site()
    let server = try site.startForeignProvider()
    try site.declareTopology()
    for (index, headers) in Self.overrides.enumerated() {
      try site.publish([
        (["to": token(index), "apns": ["headers": headers]], ["message_id": "bad"]),
        (["to": token(1000 + index)], ["message_id": "good"]),
      ])
    }
    try site.drain()
    let letters = try site.take("dead")
    #expect(letters.count == Self.overrides.count && letters.allSatisfy { $0.header("x-push-error") == "InvalidParameters" })
    #expect(letters.allSatisfy { $0.header("x-push-reason")?.hasPrefix("apns.headers.") == true })
    let requests = Site.objects(server.outputSoFar).filter { $0["event"] as? String != "listening" }
    #expect(requests.count == Self.overrides.count && requests.allSatisfy { $0["connection"] as? Int == 1 })
  }

  /// Headers that workers write, and some that they would never write, as bytes and numbers.
  private static func forgeries(campaign: String) -> [[String: Any]] {
    let later = Int64(Date().timeIntervalSince1970 * 1000) + 300 * 86_400_000
    func ticket(_ campaign: String, _ change: (inout PageTicket) -> Void = { _ in }) -> [String: Any] {
      var random = RandomSource()
      var ticket = PageTicket(
        campaign: Array(campaign.utf8), number: 0, after: 0, upTo: .max, deadline: later, using: &random)
      change(&ticket)
      var headers = FieldTable()
      ticket.append(to: &headers)
      return [PageTicket.header: latin1(headers.string(PageTicket.header) ?? [])]
    }
    func retry(_ attempts: Int = 1, settled: [Recipient.State]? = nil) -> [String: Any] {
      var headers: [String: Any] = ["x-push-retry-attempts": attempts, "x-push-retry-deadline": later]
      if let settled {
        let recipients = settled.map { Recipient(platform: .apns, token: [1], pool: 0, state: $0) }
        headers["x-push-retry-settled"] = latin1(SettledTargets.encode(recipients))
      }
      return headers
    }
    let farAway = Recipient.State.postponed(until: (1 << 47) - 1)
    return [
      ticket("no such campaign"), ticket(campaign), ticket(campaign) { $0.number = 1 },
      ticket(campaign) {
        $0.isLast = true
        $0.pending = []
      }, ticket(""), ticket("") { $0.pending = [] },
      [PageTicket.header: "\u{1}"], [PageTicket.header: "\u{9}later"], [PageTicket.header: 7],
      retry(), retry(9), retry(1_000), retry(settled: [.delivered(name: [])]),
      retry(settled: [.delivered(name: []), .failed(.notRegistered)]), retry(settled: [farAway]),
      retry(settled: [farAway, farAway]),
      ["x-push-retry-attempts": 1], ["x-push-retry-form": 2], ["x-push-aside-since": 1], ["x-push-origin": "fanout.normal"],
      ticket(campaign).merging(retry()) { $1 }, ["x-death": "x", "x-first-death-queue": 1, "x-delivery-count": -5],
    ]
  }

  /// One character for each byte.
  private static func latin1(_ bytes: [UInt8]) -> String { String(String.UnicodeScalarView(bytes.map { UnicodeScalar($0) })) }
  private static let binary = [PageTicket.header, "x-push-retry-settled"]

  @Test("forged headers of pages and retries have no effect")
  func forgedHeaders() throws {
    let site = try Site()
    try site.startFleet(settings: "fanOut: { pageSize: 3 },")
    let devices = 5
    try site.importDevices(10_000..<10_000 + devices, #""topics":["all"],"user":"u""#)
    try site.broadcast("real")
    try site.drain()
    let campaign = try #require(try site.campaigns()["real"]?["id"] as? String)
    let forged = Self.forgeries(campaign: campaign)
    var lines: [[String: Any]] = []
    for (index, headers) in forged.enumerated() {
      func add(_ kind: String, _ body: [String: Any], _ properties: [String: Any] = [:]) {
        lines.append([
          "body": body.merging(["data": ["m": "\(kind) \(index)"]]) { $1 }, "exchange": "\(site.prefix).send",
          "routing_key": index % 2 == 0 ? "normal" : "high", "latin1": Self.binary.filter { headers[$0] is String },
          "properties": properties.merging(["message_id": "\(kind) \(index)", "headers": headers]) { $1 },
        ])
      }
      add("one", ["to": token(index)])
      add("list", ["registration_ids": [token(100 + index), token(200 + index)]])
      add("topic", ["to": "/topics/all"])
      add("user", ["to": "/users/u"])
      let hourAgo = Int(Date().timeIntervalSince1970) - 3_600
      add("late", ["to": token(300 + index), "time_to_live": 60], ["timestamp": hourAgo])
    }
    try site.publish(lines: lines)
    let figures = try site.drain()
    #expect(figures["received"] as? Int == lines.count + 2 * forged.count && figures["dead_letters"] as? Int == 0)
    let results = try site.results()
    for index in forged.indices {
      for (kind, count) in ["one": 1, "list": 2, "topic": devices, "user": devices, "late": 0] {
        let reached = try site.deliveries(of: "\(kind) \(index)")
        #expect(reached.count == count && reached.values.allSatisfy { $0 == 1 }, "\(kind) \(index): \(reached)")
        let result = results["\(kind) \(index)"]
        #expect(
          result != nil && result! == (count, kind == "late" ? 1 : 0, 1), "\(kind) \(index): \(String(describing: result))")
      }
    }
    let account = try site.run(["campaigns", "show", "--config", site.file("pushfleet.json5"), "--json", campaign])
    #expect(Site.objects(account.output).first?["sent"] as? Int == devices, "\(account.output)")
    #expect(
      try site.depths(["send.normal", "send.high", "fanout.normal", "fanout.high", "retry.1s", "dead"])
        == Array(repeating: 0, count: 6))
  }

  @Test("a message on a fan-out queue that isn't a page is an unchanged dead letter, and never a broadcast")
  func strayPages() throws {
    let site = try Site()
    try site.startFleet(settings: "fanOut: { pageSize: 3 },")
    try site.importDevices(0..<5, #""topics":["all"]"#)
    let headers: [[String: Any]] = [
      [:], ["x-push-page": ""], ["x-push-page": "\u{1}more"], ["x-push-page": "\u{2}cut"], ["x-push-page": 7],
      Self.forgeries(campaign: "no such campaign")[1],
    ]
    var lines: [[String: Any]] = []
    for exchange in ["\(site.prefix).fanout", ""] {
      for (index, headers) in headers.enumerated() {
        lines.append([
          "body": ["to": "/topics/all", "data": ["m": "b"]], "exchange": exchange,
          "routing_key": exchange.isEmpty ? "\(site.prefix).fanout.normal" : "high",
          "latin1": Self.binary.filter { headers[$0] is String }, "properties": ["message_id": "\(index)", "headers": headers],
        ])
      }
    }
    try site.publish(lines: lines)
    try site.drain()
    #expect(try site.pushes().isEmpty && site.campaigns().isEmpty && site.results().isEmpty)
    let letters = try site.take("dead")
    #expect(letters.count == lines.count && letters.allSatisfy { $0.header("x-push-error") == "InvalidParameters" })
    for letter in letters {
      let sent = headers[Int(letter.id) ?? 0]["x-push-page"]
      #expect((letter.headers["x-push-page"] == nil) == (sent == nil), "\(letter)")
      #expect(letter.json["to"] as? String == "/topics/all")
    }
    #expect(letters.count { $0.header("x-push-reason")?.contains("no such campaign") == true } == 1)
    #expect(letters.count { $0.header("x-push-reason")?.contains("fleet's own exchanges only") == true } == headers.count)
  }

  @Test("headers nested too deep, or an invalid sender, never let another sender's credential be used")
  func unreadableSender() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    let deep = (0..<40).reduce([:] as [String: Any]) { inner, _ in ["deep": inner] }
    try site.publish([
      (["to": token(1)], ["message_id": "deep", "headers": ["x-push-sender": "1001", "more": deep]]),
      (["to": token(2)], ["message_id": "number", "headers": ["x-push-sender": 1001]]),
      (["to": token(3)], ["message_id": "good", "headers": ["more": ["not": ["too": "deep"]]]]),
    ])
    try site.drain()
    #expect(try site.deliveries() == [token(3): 1])
    let letters = Dictionary(uniqueKeysWithValues: try site.take("dead").map { ($0.id, $0) })
    #expect(
      letters["deep"]?.header("x-push-error") == "InvalidParameters" && letters["deep"]?.header("x-push-sender") == "1001")
    #expect(letters["number"]?.header("x-push-error") == "MismatchSenderId" && letters.count == 2)
  }

  @Test("a stranger's message on a step of the ladder without a way back does not stop the step")
  func strayOnTheLadder() throws {
    let site = try Site()
    try site.startSimulator(
      script: [token(1): [["status": 503, "reason": "Shutdown"]]], settings: #"retry: { steps: ["200ms"] },"#)
    try site.declareTopology()
    for _ in 0..<40 {
      try site.foreign(["/usr/bin/amqp-publish", "-u", site.broker.uri, "-p", "-r", "\(site.prefix).retry.200ms", "-b", "{}"])
    }
    let worker = try site.startWorker()
    let journal = try site.followJournal()
    try site.send(tokens: [token(1)])
    #expect(journal.waitForLines(2, seconds: 90))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.take("dead", count: 40).count == 40)
    #expect(try site.depths(["retry.200ms", "send.normal"]) == [0, 0])
  }
}
