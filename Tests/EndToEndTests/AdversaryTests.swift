import Foundation
import TestSupport
import Testing

@Suite("A producer that means harm")
struct AdversaryTests {
  @Test("replies to nowhere, to the fleet's own queues and to what only looks like a queue hold nothing up")
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
    // What was underway when the broker closed the connection may come twice.
    #expect(try Set(site.take("results").map(\.id)).count == places.count)
    #expect(try site.depths(["dead", "feedback", "retry.1s", "fanout.normal"]) == [0, 0, 0, 0])
  }

  @Test("a reply queue that stays full, and one that may not be written to, are given up; everybody else goes on")
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
    try site.broker.control("add_user", user, "secret")
    try site.broker.control("set_permissions", user, "^\(site.prefix)", "^\(site.prefix)", "^\(site.prefix)")
    site.brokerURI = "amqp://\(user):secret@127.0.0.1:\(site.broker.port)"
    try site.configure(port: site.port, settings: #"results: "all","#)
    try site.publish((200..<220).map { (#"{"to":"\#(token($0))"}"#, ["message_id": "m\($0)", "reply_to": "somewhere"]) })
    try site.drain()
    #expect(try Set(site.take("results").map(\.id)) == Set((200..<220).map { "m\($0)" }))
    #expect(try site.deliveries().count == 29)
    try site.broker.control("delete_user", user)
  }

  static let overrides: [[String: String]] = [
    [":path": "/x"], [":authority": "x"], ["authorization": "bearer x"], ["host": "x"], ["content-length": "5"],
    ["connection": "close"],
    ["te": "x"], ["transfer-encoding": "chunked"], ["": "x"], ["Apns-Topic": "com.other"], ["apns-topic": "a\r\nb: c"],
    ["apns-topic": ""], ["apns-id": "../x"], ["apns-expiration": "99999999999999999999"], ["apns-priority": "99"],
    ["apns-collapse-id": "a\nb"], ["apns-collapse-id": String(repeating: "x", count: 65)], ["apns-push-type": "nope"],
  ]

  @Test("no header of the connection can be set by an override; the request is a dead letter and the connection stays")
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

  @Test("forged headers of pages and retries change nothing for anybody")
  func forgedHeaders() throws {
    let site = try Site()
    try site.startSimulator(settings: #"results: "all","#)
    try site.declareTopology()
    // Version 1, no flags, page 1, from 0 to 1, deadline, sent, failed, a campaign of three letters.
    let number = { (value: UInt8) in String(repeating: "\0", count: 7) + String(UnicodeScalar(value)) }
    let deadline = "\0\0\u{2}" + String(repeating: "\u{7F}", count: 5)
    let page = "\u{1}\0" + number(1) + number(0) + number(1) + deadline + number(0) + number(0) + "\u{3}abc"
    let forged: [[String: Any]] = [
      ["x-push-page": page], ["x-push-page": "\u{1}"], ["x-push-page": 7],
      ["x-push-retry-attempts": 3, "x-push-retry-deadline": 4_000_000_000_000, "x-push-retry-round": Int64.max],
      ["x-push-retry-attempts": 1000, "x-push-retry-deadline": Int64.max, "x-push-retry-settled": "\u{1}\0"],
      [
        "x-push-retry-attempts": 1, "x-push-retry-deadline": 4_000_000_000_000, "x-push-retry-error": "\r\n",
        "x-push-retry-status": Int64.min,
      ],
      ["x-push-page": page, "x-push-retry-attempts": 1, "x-push-retry-deadline": 4_000_000_000_000],
      ["x-death": "x", "x-first-death-queue": 1, "x-delivery-count": -5],
    ]
    var messages: [(body: Any, properties: [String: Any])] = []
    for (index, headers) in forged.enumerated() {
      messages.append((#"{"to":"\#(token(index))"}"#, ["message_id": "one \(index)", "headers": headers]))
      messages.append(
        (
          #"{"registration_ids":["\#(token(100 + index))","\#(token(200 + index))"]}"#,
          ["message_id": "list \(index)", "headers": headers]
        ))
      messages.append((#"{"to":"/topics/news"}"#, ["message_id": "topic \(index)", "headers": headers]))
    }
    try site.publish(messages)
    try site.publish(messages.map { ($0.body, ($0.properties).merging(["message_id": "fan-out"]) { $1 }) }, to: "high")
    let figures = try site.drain()
    #expect(figures["received"] as? Int == messages.count * 2)
    let reached = try site.deliveries()
    for index in forged.indices {  // Number 4 says of itself that it was delivered.
      #expect((index == 4 ? 0...2 : 1...2).contains(reached[token(index)] ?? 0), "\(index)")
    }
    #expect(try site.take("results").count { $0.id.hasPrefix("one") } == forged.count)
    #expect(try site.depths(["send.normal", "send.high", "retry.1s"]) == [0, 0, 0])
  }

  @Test("what a stranger puts on a step of the ladder without a way back does not stop the step")
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
    #expect(journal.waitForLines(2, seconds: 20))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.take("dead", count: 40).count == 40)
    #expect(try site.depths(["retry.200ms", "send.normal"]) == [0, 0])
  }
}
