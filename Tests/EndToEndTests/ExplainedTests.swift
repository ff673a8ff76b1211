import Foundation
import TestSupport
import Testing

@Suite("The promises of explain", .blocking)
struct ExplainedTests {
  /// Requests of many kinds, each for an iPhone and, through FCM, for any device.
  static let requests: [String] = [
    #""notification":{"title":"t","icon":"i","click_action":"c","badge":"2"}"#, #""data":{"k":"v"}"#, "",
    #""priority":"high","data":{"k":"v","n":5}"#, #""notification":{"body":"b"},"time_to_live":600,"android":{"ttl":"60s"}"#,
    #""notification":{"body":"b"},"time_to_live":300,"android":{"ttl":"600s"}"#,
    #""collapse_key":"https://news.example.com/match/2026/portugal-vs-denmark/live/score/minute-1","notification":{"body":"b"}"#,
    #""apns":{"headers":{"apns-push-type":"mdm"},"payload":{"mdm":"MAGIC"}}"#,
    #""notification":{"title":"t"},"message_id":"unknown","content_available":1"#,
    #""notification":{"body":"\#(String(repeating: "b", count: 2_100))"}"#,
  ]

  @Test("are kept by the providers' input: the same headers and bytes, after a minute in the queue too")
  func same() throws {
    let site = try Site()
    try site.startSimulator()
    let fcm = try site.startFCM()
    try site.configureFleet(
      "sqlite:registry.db", settings: "limits: { notification: 3000 },",
      apps: #"\#(fcm) defaultPriority: "high", unknownKeys: "ignore""#)
    try site.declareTopology()
    // Explained and sent within two minutes, because the remaining lifetime is in whole seconds.
    let published = Int(Date().timeIntervalSince1970) - 59
    var messages: [(body: Any, properties: [String: Any])] = []
    for (number, members) in Self.requests.enumerated() {
      for target in ["apns:\(token(number))", "fcm:f:\(number)"] {
        let body = #"{"to":"\#(target)"\#(members.isEmpty ? "" : ",")\#(members)}"#
        messages.append((body, ["message_id": target, "timestamp": published]))
      }
    }
    try site.publish(messages)
    try site.drain()
    let pushes = Dictionary(grouping: try site.pushes(), by: \.token)
    let toFCM = Site.objects(try String(contentsOfFile: site.file("fcm.ndjson"), encoding: .utf8)).compactMap {
      ($0["payload"] ?? $0["body"]) as? [String: Any]
    }
    for (number, message) in messages.enumerated() {
      let file = try site.write("\(message.body)", to: "request-\(number).json")
      let words = ["explain", file, "--config", site.file("pushfleet.json5"), "--json", "--age", "60"]
      let shown = Site.objects(try site.run(words).output)
      if number.isMultiple(of: 2) {
        let view = try #require(shown.first { $0["platform"] as? String == "apns" })
        let push = try #require(pushes[token(number / 2)]?.first, "\(message.body)")
        #expect(push.payload as NSDictionary == view["payload"] as? NSDictionary, "\(message.body)")
        for (name, value) in view["headers"] as? [String: String] ?? [:] where name != "apns-expiration" {
          #expect(push.headers[name] == value, "\(name): \(message.body)")
        }
        #expect(push.violations.isEmpty)
      } else {
        let view = try #require(shown.first { $0["platform"] as? String == "fcm" })
        let sent = try #require(
          toFCM.compactMap { $0["message"] as? [String: Any] }.first { $0["token"] as? String == "f:\(number / 2)" })
        let promised = (view["payload"] as? [String: Any])?["message"] as? [String: Any] ?? [:]
        #expect(Self.withoutSeconds(sent) == Self.withoutSeconds(promised), "\(message.body)")
      }
    }
  }

  /// Without the device and the values that depend on the second.
  private static func withoutSeconds(_ message: [String: Any]) -> NSDictionary {
    var message = message
    message["token"] = nil
    for (block, path) in [("android", ["ttl"]), ("apns", ["headers", "apns-expiration"])] {
      guard var object = message[block] as? [String: Any] else { continue }
      if path.count == 1 {
        object[path[0]] = nil
      } else if var inner = object[path[0]] as? [String: Any] {
        inner[path[1]] = nil
        object[path[0]] = inner
      }
      message[block] = object
    }
    return message as NSDictionary
  }

  @Test("x-push-environment chooses the APNs, is refused if there is none, and stays with a dead letter and its replay")
  func environment() throws {
    let site = try Site()
    try site.startSimulator()
    let (_, sandbox) = try site.startAPNs("sandbox", script: [token(2): ["status": 400, "reason": "BadDeviceToken"]])
    func write(_ ways: String) throws {
      try site.write(
        """
        { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", results: "all",
          apps: { "\(Site.app)": { apns: [\(ways)] } } }
        """, to: "pushfleet.json5")
    }
    let production = site.apns()
    let other = site.apns(#"environment: "sandbox","#, port: sandbox)
    try write("\(production), \(other)")
    try site.declareTopology()
    func message(_ number: Int, _ id: String, _ environment: Any?) -> (body: Any, properties: [String: Any]) {
      var properties: [String: Any] = ["message_id": id]
      if let environment { properties["headers"] = ["x-push-environment": environment] }
      return (#"{"to":"\#(token(number))","notification":{"title":"t"}}"#, properties)
    }
    try site.publish([
      message(1, "sandbox", "sandbox"), message(2, "wrong", "sandbox"), message(3, "production", "production"),
      message(4, "none", nil), message(5, "beta", "beta"), message(6, "number", 5),
    ])
    try site.drain()
    #expect(Set(try site.pushes().map(\.token)) == [token(3), token(4)])
    let sandboxed = Site.objects(try String(contentsOfFile: site.file("sandbox.ndjson"), encoding: .utf8))
    #expect(Set(sandboxed.compactMap { $0["token"] as? String }) == [token(1), token(2)])
    let letters = Dictionary(uniqueKeysWithValues: try site.take("dead").map { ($0.id, $0) })
    #expect(Set(letters.keys) == ["wrong", "beta", "number"])
    for id in ["beta", "number"] {
      #expect(letters[id]?.header("x-push-error") == "InvalidParameters")
      #expect(letters[id]?.header("x-push-reason")?.hasPrefix("x-push-environment: ") == true)
    }
    let wrong = try #require(letters["wrong"])
    #expect(wrong.header("x-push-error") == "InvalidRegistration" && wrong.header("x-push-environment") == "sandbox")

    // Corrected by another header, under the same id.
    try site.publish([(wrong.body, ["message_id": "wrong", "headers": ["x-push-environment": "production"]])])
    try site.drain()
    #expect(try site.pushes().last?.token == token(2))
    try write(production)
    try site.publish([message(7, "gone", "sandbox")])
    try site.drain()
    let gone = try #require(try site.take("dead").first)
    #expect(gone.header("x-push-error") == "InvalidParameters")
    #expect(gone.header("x-push-reason")?.contains("no APNs credential for sandbox") == true)
  }

  @Test("a request for Android only reaches no iPhone; its result says so, and nothing is to be pruned or replayed")
  func androidOnly() throws {
    let site = try Site()
    try site.startSimulator(settings: #"results: "all","#)
    try site.declareTopology()
    let bodies = [#""notification":{"icon":"i"}"#, #""notification":{}"#, #""android":{"notification":{"title":"t"}}"#]
    try site.publish(bodies.enumerated().map { (#"{"to":"\#(token($0))",\#($1)}"#, ["message_id": "m\($0)"]) })
    try site.drain()
    #expect(try site.pushes().isEmpty && site.depths(["dead", "feedback"]) == [0, 0])
    let results = try site.take("results")
    #expect(results.count == 3)
    for result in results {
      #expect((result.json["results"] as? [[String: String]])?.first == ["error": "NothingForPlatform"])
    }
  }

  @Test("a retry never waits past the end of its request's life")
  func shortLife() throws {
    let site = try Site()
    try site.startSimulator(
      script: [
        token(1): [["status": 503, "reason": "ServiceUnavailable"], ["status": 200]],
        token(2): [["status": 503, "reason": "ServiceUnavailable", "retry_after": 2], ["status": 200]],
      ], settings: #"results: "all", retry: { steps: ["1s", "10s"] },"#)
    try site.declareTopology()
    try site.publish(
      (1...2).map { (#"{"to":"\#(token($0))","time_to_live":5,"notification":{"title":"t"}}"#, ["message_id": "m\($0)"]) })
    try site.drain()
    #expect(try site.deliveries() == [token(1): 1, token(2): 1])
    #expect(try site.depths(["dead"]) == [0])
  }
}
