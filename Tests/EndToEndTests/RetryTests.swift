import Foundation
import TestSupport
import Testing

@Suite("Retries", .blocking)
struct RetryTests {
  /// A short ladder, so that a test ends within seconds. A longer delay uses the last step.
  static let ladder = #"results: "all", retry: { steps: ["100ms", "300ms"], attempts: 4 },"#

  static let passing: [(String, [String: any Sendable])] = [
    ("429", ["status": 429, "reason": "TooManyRequests"]),
    ("500", ["status": 500, "reason": "InternalServerError"]),
    ("503", ["status": 503, "reason": "ServiceUnavailable"]),
    ("503 with a time", ["status": 503, "reason": "ServiceUnavailable", "retry_after": 1]),
    ("shutdown", ["status": 503, "reason": "Shutdown"]),
    ("idle timeout", ["status": 400, "reason": "IdleTimeout"]),
    ("expired provider token", ["status": 403, "reason": "ExpiredProviderToken"]),
    ("reset", ["reset": true]),
    ("refused", ["refuse": true]),
    ("goaway below the stream", ["goaway": ["last": "previous"]]),
    ("goaway with its answer", ["goaway": ["last": "this", "reason": "Shutdown"]]),
    ("goaway with nothing", ["goaway": ["last": "none"]]),
    ("goaway for later", ["goaway": ["last": "max"]]),
    ("unknown status", ["status": 599]),
    ("stall", ["stall": true]),
  ]

  @Test("each passing fault is followed by a delivery under the same apns-id, and one result")
  func passingFaults() throws {
    let site = try Site()
    let script = Dictionary(uniqueKeysWithValues: Self.passing.enumerated().map { (token($0), [$1.1]) })
    try site.startSimulator(script: script, settings: Self.ladder, apns: "timeout: 2,")
    try site.declareTopology()
    try site.publish(
      Self.passing.enumerated().map {
        (#"{"to":"\#(token($0))","data":{"k":"v"}}"#, ["message_id": $1.0, "correlation_id": "c"])
      })
    try site.drain()
    let pushes = Dictionary(grouping: try site.pushes(), by: \.token)
    let results = Dictionary(grouping: try site.take("results"), by: \.id)
    for (index, fault) in Self.passing.enumerated() {
      let mine = pushes[token(index)] ?? []
      #expect(Set(mine.compactMap { $0.headers["apns-id"] }).count == 1, "\(fault.0)")
      #expect(mine.count { $0.status == 200 } == 1, "\(fault.0): \(mine.map { $0.status ?? 0 })")
      let mustRepeat = !fault.0.hasPrefix("goaway with its answer") && fault.0 != "goaway for later"
      #expect(!mustRepeat || mine.count >= 2, "\(fault.0)")
      let result = results[fault.0] ?? []
      #expect(result.count == 1 && result.first?.json["success"] as? Int == 1, "\(fault.0)")
      #expect(result.first?.properties["correlation_id"] as? String == "c")
    }
    #expect(try site.depths(["dead", "feedback"]) == [0, 0])
  }

  @Test("no wait is longer than the longest step: a request with a shorter life than the usual delay is tried again")
  func shortLife() throws {
    let site = try Site()
    let refusals = [["status": 429, "reason": "TooManyRequests", "times": 2]]
    try site.startSimulator(script: [token(1): refusals], settings: Self.ladder)
    try site.declareTopology()
    try site.send(lines: [#"{"to":"\#(token(1))","time_to_live":9,"data":{"k":"v"}}"#])
    try site.drain()
    #expect(try site.pushes().map(\.status) == [429, 429, 200])
    #expect(try site.depths(["dead"]) == [0])
  }

  @Test("a lost connection leaves the outcome unknown: the push is sent again under the same apns-id")
  func lostConnection() throws {
    let site = try Site()
    try site.startSimulator(script: [token(1): [["close": true, "times": 2]]], settings: Self.ladder)
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    let figures = try site.drain()
    let pushes = try site.pushes()
    #expect(pushes.map(\.status) == [nil, nil, 200] && Set(pushes.map { $0.headers["apns-id"] }).count == 1)
    #expect(pushes.map(\.connection) == [1, 2, 3] && figures["unknown"] as? Int == 2)
  }

  @Test("a push without an answer ends as Unknown if its application or request forbids repetition")
  func droppedUnknown() throws {
    let site = try Site()
    let script = Dictionary(uniqueKeysWithValues: (1...4).map { (token($0), [["close": true, "times": 20]]) })
    try site.startFleet(script: script, options: ["--streams", "1"], apps: "unknownOutcomes: 'drop',")
    func request(_ number: Int, _ more: String = "") -> String { #"{"to":"\#(token(number))","data":{"k":"v"}\#(more)}"# }
    try site.publish([
      (request(1), ["message_id": "by the application"]),
      (request(2), ["message_id": "by itself", "headers": ["x-push-unknown": "drop"]]),
      (request(3), ["message_id": "again", "headers": ["x-push-unknown": "retry"]]),
      (request(4), ["message_id": "neither", "headers": ["x-push-unknown": "maybe"]]),
    ])
    let figures = try site.drain()
    let pushes = try site.pushes()
    #expect([1, 2, 3, 4].map { number in pushes.count { $0.token == token(number) } } == [1, 1, 9, 0])
    #expect(figures["unknown"] as? Int == 11)
    let letters = Dictionary(uniqueKeysWithValues: try site.take("dead").map { ($0.id, $0) })
    #expect(letters.count == 4)
    for (id, attempts) in [("by the application", "1"), ("by itself", "1"), ("again", "9")] {
      let letter = try #require(letters[id])
      #expect(letter.header("x-push-error") == "Unknown" && letter.header("x-push-attempts") == attempts, "\(id)")
      #expect(letter.header("x-push-reason")?.hasPrefix("outcome unknown: ") == true, "\(id)")
    }
    #expect(letters["by itself"]?.header("x-push-unknown") == "drop")
    #expect(letters["neither"]?.header("x-push-reason") == #"x-push-unknown: expected "retry" or "drop""#)
    let results = try site.take("results").map {
      "\($0.id) \(($0.json["results"] as? [[String: String]])?.first?["error"] ?? "")"
    }
    #expect(
      Set(results) == ["by the application Unknown", "by itself Unknown", "again Unknown", "neither InvalidParameters"])
  }

  @Test("attempts end at their limit, in the dead letters with the last reason; time_to_live 0 and apns-expiration 0 allow one")
  func attemptLimit() throws {
    let site = try Site()
    let (limited, now, over) = (token(1), token(2), token(3))
    try site.startSimulator(
      script: [
        limited: [["status": 503, "reason": "Shutdown"], ["status": 429, "reason": "TooManyRequests", "times": 9]],
        now: ["status": 503, "reason": "ServiceUnavailable"], over: ["status": 503, "reason": "ServiceUnavailable"],
      ], settings: Self.ladder)
    try site.declareTopology()
    let body = #"{"to":"\#(limited)","data":{"k":"v"}}"#
    try site.publish([
      (body, ["message_id": "limited", "headers": ["own": "kept", "CC": ["high"]]]),
      (#"{"to":"\#(now)","time_to_live":0}"#, ["message_id": "now"]),
      (#"{"message":{"token":"\#(over)","apns":{"headers":{"apns-expiration":"0"}}}}"#, ["message_id": "over"]),
    ])
    try site.drain()
    let pushes = try site.pushes()
    #expect(pushes.count { $0.token == over } == 1)
    // CC makes the broker deliver it twice; the second is recognised as a duplicate, or a retransmission.
    #expect(pushes.count { $0.token == limited } == 4 && pushes.count { $0.token == now } == 1)
    #expect(pushes.first { $0.token == now }?.headers["apns-expiration"] == "0")
    let letters = try site.take("dead")
    #expect(letters.count == 3 && letters.contains { $0.id == "over" && $0.header("x-push-error") == "Unavailable" })
    let last = try #require(letters.first { $0.id == "limited" })
    #expect(last.header("x-push-error") == "DeviceMessageRateExceeded" && last.header("x-push-reason") == "TooManyRequests")
    #expect(last.header("x-push-status") == "429" && last.header("x-push-attempts") == "4" && last.body == body)
    #expect(last.header("own") == "kept" && last.headers.keys.allSatisfy { !$0.hasPrefix("x-push-retry") && $0 != "x-death" })
    let once = try #require(letters.first { $0.id == "now" })
    #expect(once.header("x-push-error") == "Unavailable" && once.header("x-push-attempts") == "1")
    let results = try site.take("results")
    #expect(
      Set(results.map { "\($0.id) \(($0.json["results"] as? [[String: String]])?.first?["error"] ?? "")" }) == [
        "limited DeviceMessageRateExceeded", "now Unavailable", "over Unavailable",
      ])
  }

  @Test("a late request is not sent: before any attempt it is a result, after one a dead letter with the last reason")
  func lifetimes() throws {
    let site = try Site()
    try site.startSimulator(script: [token(3): ["status": 429, "reason": "TooManyRequests"]], settings: Self.ladder)
    try site.declareTopology()
    let past = Int(Date().timeIntervalSince1970) - 100
    try site.publish([
      (#"{"to":"\#(token(1))","time_to_live":10}"#, ["message_id": "late", "timestamp": past]),
      (#"{"to":"\#(token(2))","time_to_live":0}"#, ["message_id": "never", "timestamp": past]),
      (#"{"to":"\#(token(3))","time_to_live":5}"#, ["message_id": "brief"]),
      (#"{"to":"\#(token(4))"}"#, ["message_id": "lasting", "timestamp": past]),
    ])
    let figures = try site.drain()
    #expect(figures["expired"] as? Int == 2)
    #expect(try site.pushes().map(\.token).sorted() == Array(repeating: token(3), count: 4) + [token(4)])
    let results = try site.take("results").map {
      "\($0.id) \(($0.json["results"] as? [[String: String]])?.first?["error"] ?? "sent")"
    }
    #expect(Set(results) == ["late Expired", "never Expired", "brief DeviceMessageRateExceeded", "lasting sent"])
    #expect(try site.take("dead").map { "\($0.id) \($0.header("x-push-reason") ?? "")" } == ["brief TooManyRequests"])
  }

  @Test("of a list only failed targets are retried, and one result at the end has all")
  func lists() throws {
    let site = try Site()
    let tokens = (0..<5).map(token)
    try site.startSimulator(
      script: [
        tokens[1]: [["status": 503, "reason": "Shutdown"], ["reset": true]],
        tokens[2]: ["status": 410, "reason": "Unregistered"],
        tokens[3]: [["refuse": true, "times": 4]],
      ], settings: Self.ladder)
    try site.declareTopology()
    let list = [tokens[0], tokens[1], tokens[2], tokens[1], tokens[3], tokens[4]]
    try site.publish([(["registration_ids": list, "data": ["k": "v"]], ["message_id": "list"])])
    try site.drain()
    #expect(try site.deliveries() == [tokens[0]: 1, tokens[1]: 1, tokens[3]: 1, tokens[4]: 1])
    #expect(try site.pushes().count { $0.token == tokens[2] } == 1)
    let results = try site.take("results")
    #expect(results.count == 1)
    let ids = try site.pushes().reduce(into: [:]) { ids, push in ids[push.headers["apns-id"] ?? ""] = push.token }
    let targets = (results.first?.json["results"] as? [[String: String]] ?? []).map {
      $0["error"] ?? ids[$0["message_id"] ?? ""]
    }
    #expect(targets == [tokens[0], tokens[1], "NotRegistered", tokens[1], tokens[3], tokens[4]])
    #expect(try site.depths(["dead", "feedback"]) == [0, 1])
  }

  @Test("streams that Python's server refuses and connections that it closes lose and repeat no push")
  func goAwayUnderLoad() throws {
    let site = try Site()
    let server = try site.startForeignProvider(
      ["--refuse-every", "3", "--goaway-after", "200"], settings: #"results: "none","#)
    try site.declareTopology()
    try site.send(tokens: (0..<1000).map(token))
    try site.drain()
    let requests = Site.objects(server.outputSoFar).filter { $0["event"] as? String == "request" }
    var answered: [String: Int] = [:]
    for request in requests where request["answer"] as? Int == 200 {
      answered[(request["headers"] as? [[String]])?.first { $0[0] == ":path" }?[1] ?? "", default: 0] += 1
    }
    #expect(answered.count == 1000 && answered.values.allSatisfy { $0 == 1 })
    #expect(Set(requests.compactMap { $0["connection"] as? Int }).count >= 5)
    #expect(Site.objects(server.outputSoFar).allSatisfy { $0["event"] as? String != "protocol_error" })
    #expect(try site.depths(["dead", "feedback"]) == [0, 0])
  }

  @Test("a batch says which step of the ladder it waits for")
  func waiting() throws {
    let site = try Site()
    try site.startSimulator(
      script: [token(1): [["status": 429, "reason": "TooManyRequests"], ["status": 200]]],
      settings: #"retry: { steps: ["2s"], attempts: 4 },"#)
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    let ended = try site.run(["worker", "--config", site.file("pushfleet.json5"), "--until-empty"])
    #expect(ended.status == 0)
    let said = Site.objects(ended.output).filter { $0["message"] as? String == "waiting" }
    // A worker that gets its first delivery late says that it waits for the lane, and nothing more for half a minute.
    let queue = site.prefix + (ended.output.contains("send.normal: 1") ? ".send.normal" : ".retry.2s")
    #expect(said.map { $0["for"] as? [String] } == [[queue + ": 1"]], "\(ended.output)")
  }

  @Test("an expired provider token is replaced once for everything in flight, and with it the connection")
  func expiredProviderToken() throws {
    let site = try Site()
    try site.startSimulator(
      script: Dictionary(
        uniqueKeysWithValues: (100..<200).map { (token($0), [["status": 403, "reason": "ExpiredProviderToken"]]) }),
      settings: Self.ladder)
    try site.declareTopology()
    // One request: after its first answer everything else is sent, before the first refusal comes.
    try site.publish([(["registration_ids": (0..<300).map(token), "data": ["k": "v"]], ["message_id": "list"])])
    let ended = try site.run(["worker", "--config", site.file("pushfleet.json5"), "--until-empty"])
    #expect(ended.status == 0)
    let messages = Site.objects(ended.output).compactMap { $0["message"] as? String }
    #expect(
      messages.count { $0 == "provider token in use" } == 2 && messages.count { $0 == "connected to the provider" } == 2,
      "\(ended.output)")
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: (0..<300).map { (token($0), 1) }))
    #expect(try site.depths(["dead", "feedback"]) == [0, 0])
  }
}
