import Foundation
import Synchronization
import TestSupport
import Testing

/// Sends invalid requests to every path of docs/openapi.yaml.
@Suite("Bad requests to every place of the gateway", .blocking)
struct DoorInputTests {
  private static let other = "com.example.other"

  /// One method of one path.
  private struct Operation: Sendable {
    let method: String
    /// With letters for the parts in braces.
    let path: String
    let isOpen: Bool
    let hasBody: Bool
    /// Members of its body.
    let fields: [String]

    var name: String { "\(method) \(path)" }
    var isLegacy: Bool { path.hasSuffix("/send") }
    var isOfApplication: Bool { path.hasPrefix("/v1/apps/") }
  }

  private struct Question: Sendable {
    var operation: Operation
    var path: String?
    var key: String?
    var body: String?
    var headers: [String: String] = [:]
    var statuses: Set<Int>
    var what: String
  }

  private struct Answer: Sendable {
    let status: Int
    let headers: [String: String]
    let body: String
  }

  private static func operations() throws -> [Operation] {
    try DoorDescription.shared.get().operations.map { one in
      Operation(
        method: one.method, path: one.path.replacing("{app}", with: Site.app).replacing(/\{\w+\}/, with: "x"),
        isOpen: one.isOpen, hasBody: one.hasBody, fields: one.fields + ["op", "message_id", "notification", "at"])
    }
  }

  /// Sent together, because a wrong key costs a second.
  private static func answers(_ questions: [Question], port: UInt16) -> [Answer?] {
    let answers = Mutex([Answer?](repeating: nil, count: questions.count))
    let next = Atomic<Int>(0)
    let group = DispatchGroup()
    for _ in 0..<min(questions.count, 150) {
      group.enter()
      Thread.detachNewThread {
        while true {
          let index = next.add(1, ordering: .relaxed).oldValue
          guard index < questions.count else { break }
          let question = questions[index]
          var headers = ["Content-Type": "application/json"].merging(question.headers) { $1 }
          if let key = question.key { headers["Authorization"] = "key=\(key)" }
          let answer = HTTPProbe(port: port).ask(
            question.path ?? question.operation.path, method: question.operation.method, headers: headers, body: question.body,
            seconds: 20)
          if let answer {
            let kept = Answer(status: answer.status, headers: answer.headers, body: answer.body)
            answers.withLock { $0[index] = kept }
          }
        }
        group.leave()
      }
    }
    group.wait()
    return answers.withLock(\.self)
  }

  @Test("each is answered in its API's form, publishes nothing, and the gateway continues")
  func answered() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startSimulator(script: [:], options: [])
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", limits: { body: 2048 },
        \(Door.settings(port, wait: 1))
        apps: { "\(Site.app)": { apns: \(site.apns()) }, "\(Self.other)": { apns: \(site.apns(topic: Self.other)) } },
      }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    let door = try Door(site, port: port)
    func key(_ rights: String, _ app: String = Site.app) throws -> String { try door.key(rights, ["--app", app]).key }
    let rights = "send,register,ack,view,operate"
    let (good, foreign) = (try key(rights), try key(rights, Self.other))
    let single = ["send": try key("send"), "register": try key("register"), "ack": try key("ack")]
    let operations = try Self.operations()
    #expect(operations.count > 25)

    var questions: [Question] = []
    for operation in operations where !operation.isOpen {
      func ask(
        _ what: String, _ statuses: Set<Int>, key: String? = good, body: String? = "{}", _ headers: [String: String] = [:]
      ) {
        questions.append(
          Question(operation: operation, key: key, body: body, headers: headers, statuses: statuses, what: what))
      }
      ask("no key", [401], key: nil)
      ask("garbage for a key", [401], key: "x y~\"")
      ask("a key that was never made", [401], key: good.prefix(18) + String(repeating: "A", count: 43))
      ask("a device's secret that was never made", [401], key: "pf1d~AAAAAAAAAAAA~" + String(repeating: "A", count: 43))
      ask("another scheme", [401], key: nil, ["Authorization": "Basic eDp5"])
      ask("compressed", [415], ["Content-Encoding": "gzip"])
      ask("a long body", [413], body: String(repeating: " ", count: 2_049))
      if operation.isOfApplication { ask("another application's key", [403], key: foreign) }
      // A key with all rights except the one that is needed.
      let wrong =
        operation.path.contains("send")
        ? "ack" : operation.path.contains("/acks") || operation.path.hasSuffix("/badge") ? "register" : "ack"
      ask("a key without the right", [operation.isLegacy ? 401 : 403], key: single[wrong])
      guard operation.hasBody else { continue }
      // An operation needs no body, and lanes need a key for all applications.
      let isFleet = operation.path.hasPrefix("/v1/fleet/")
      let refused: Set<Int> = isFleet ? [200, 202, 400, 403, 404, 409, 503] : [400, 404, 422]
      for body in [
        "", "x", "[", "null", "5", "\"x\"", "[]", "{}", "{\"a\":", "[5]", "[null,{}]", "{\"\u{0}\":1}", "\u{FEFF}{}",
        String(repeating: "[", count: 2_000), String(repeating: "{\"a\":", count: 400), "{\"op\":\"read\",\"op\":\"read\"}",
      ] { ask("the body \(body.prefix(20).debugDescription)", refused, body: body) }
      for field in Set(operation.fields) {
        for value in [
          "null", "5000", "-1.5e300", "true", "\"\"", "[]", "[[]]", "{}", "{\"mps\":5}", "{\"mps\":{\"pushkey\":[]}}",
        ] {
          ask("\(field): \(value)", refused, body: "{\"\(field)\":\(value)}")
        }
      }
    }
    for operation in operations {
      for end in ["%", "%zz", "%C3", "%00", "/../../x", "?%", String(repeating: "y", count: 9_000)] {
        questions.append(
          Question(
            operation: operation, path: operation.path + end, key: good, body: operation.hasBody ? "{}" : nil,
            statuses: ["%C3", "%00"].contains(end) ? [400] : [200, 202, 400, 403, 404, 405, 409, 414, 431, 503],
            what: "the path's end \(end.prefix(9))"))
      }
    }
    for (question, answer) in zip(questions, Self.answers(questions, port: port)) {
      guard let answer else {
        Issue.record("\(question.operation.name), \(question.what): no answer")
        continue
      }
      // Errors in GCM's and FCM's requests have status 200 where Google's servers used it.
      let isSaid = question.operation.isLegacy && answer.status == 200 && answer.body.contains(/"error"|Error=/)
      #expect(
        question.statuses.contains(answer.status) || isSaid,
        "\(question.operation.name), \(question.what): \(answer.status) \(answer.body.prefix(200))")
      let isDescribed = try DoorDescription.shared.get().has(
        answer.status, question.operation.method, question.path ?? question.operation.path)
      #expect(isDescribed, "docs/openapi.yaml has no \(answer.status) for \(question.operation.name), \(question.what)")
      #expect((answer.headers["retry-after"] != nil) == [429, 503].contains(answer.status))
      if answer.headers["content-type"]?.hasPrefix("application/json") == true, answer.status >= 400 {
        let body = try? JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
        #expect((body?["error"] ?? body?["message"]) != nil, "\(question.operation.name), \(question.what): \(answer.body)")
      }
      #expect(answer.status != 405 || answer.headers["allow"] != nil)
    }
    #expect(door.probe.ask("/readyz")?.status == 200)
    #expect(try site.depths(["send.high", "send.normal", "acks"]) == [0, 0, 0])
    #expect(!door.gateway.outputSoFar.contains(good) && !door.gateway.outputSoFar.contains("level\":\"error"))
    door.gateway.signal(15)
    #expect(door.gateway.wait() == 0)
  }
}
