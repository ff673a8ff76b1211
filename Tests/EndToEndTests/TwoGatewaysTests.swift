import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("Two gateways on one registry", .blocking)
struct TwoGatewaysTests {
  /// A site with two gateways, which share only a registry.
  /// - Parameter wait: each gateway's.
  private func open(
    _ registry: RegistryKind, wait: [Int], script: [String: Any] = [:], isShared: Bool = false
  ) throws -> (Site, [Door], key: String) {
    let site = try Site()
    let ports = try FreePorts.take(2)
    try site.startFleet(try registry.make(), script: script, settings: Door.settings(ports[0]))
    let doors = try zip(ports, wait).map { port, wait in
      try Door(
        site, port: port,
        environment: [
          "PUSHFLEET_GATEWAY_HTTP_LISTEN": "127.0.0.1:\(port)", "PUSHFLEET_GATEWAY_HTTP_WAIT": "\(wait)",
          "PUSHFLEET_GATEWAY_HTTP_SHARED": "\(isShared)",
        ])
    }
    return (site, doors, try doors[0].key().key)
  }

  /// Nil if no answer comes.
  private static func send(_ port: UInt16, _ key: String, _ number: Int, _ name: String?) -> HTTPProbe.Answer? {
    var headers = ["Authorization": "key=\(key)", "Content-Type": "application/json"]
    if let name { headers["Idempotency-Key"] = name }
    let body = #"{"registration_ids":["\#(token(number))","b d"],"data":{"n":"\#(number)"}}"#
    return HTTPProbe(port: port).ask("/fcm/send", method: "POST", headers: headers, body: body, seconds: 120)
  }

  @Test(
    "two requests with one Idempotency-Key are one request with one answer, whichever gateway has it first",
    arguments: RegistryKind.all)
  func once(_ registry: RegistryKind) throws {
    let (site, doors, key) = try open(registry, wait: [30, 30])
    let ports = doors.map(\.port)
    let worker = try site.startWorker()
    // One after the other.
    let first = try #require(Self.send(ports[0], key, 1, "a"))
    #expect(first.status == 200 && first.body.contains(#""success":1"#) && first.body.contains("InvalidRegistration"))
    let second = Self.send(ports[1], key, 1, "a")
    #expect(second?.status == 200 && second?.body == first.body)
    #expect(Self.send(ports[1], key, 2, "a")?.status == 422)
    #expect(Self.send(ports[0], key, 2, "b")?.body != first.body)
    // All at once, by both.
    let answers = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 24) { index in
      let answer = Self.send(ports[index % 2], key, 3, "c")
      answers.withLock { $0.append("\(answer?.status ?? 0) \(answer?.body ?? "")") }
    }
    #expect(
      Set(answers.withLock(\.self)).count == 1 && answers.withLock(\.first)?.hasPrefix("200") == true,
      "\(answers.withLock(\.self))")
    // With FCM v1 too, where the answer is only an id.
    let names = try doors.map { door in
      try door.json(
        "POST", "/v1/projects/p/messages:send", key, #"{"message":{"token":"\#(token(4))","data":{"n":"4"}}}"#,
        ["Idempotency-Key": "d"])["name"] as? String
    }
    #expect(names[0] != nil && names[0] == names[1])
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    #expect(try site.deliveries() == [token(1): 1, token(2): 1, token(3): 1, token(4): 1])
  }

  @Test("either gateway knows the outcome of a request with an Idempotency-Key", arguments: RegistryKind.all)
  func outcome(_ registry: RegistryKind) throws {
    let (site, doors, key) = try open(registry, wait: [30, 30])
    let place = "/v1/apps/\(Site.app)/messages"
    let body = #"{"to":"\#(token(1))","data":{"n":"1"}}"#
    let first = try doors[0].ask("POST", place, key, body, ["Idempotency-Key": "a"])
    let second = try doors[1].ask("POST", place, key, body, ["Idempotency-Key": "a"])
    #expect(first.status == 202 && first.body == second.body)
    let id = try #require(Site.objects(first.body).first?["message_id"] as? String)
    func states() throws -> [String?] {
      try doors.map { try $0.json("GET", place + "/" + id, key)["state"] as? String }
    }
    #expect(try states() == ["accepted", "accepted"])
    let worker = try site.startWorker()
    #expect(try eventually { try states() == ["done", "done"] })
    // Without one, only the gateway that has accepted it remembers it.
    let plain = try doors[0].ask("POST", place + "?wait=30", key, body.replacing("1\"}", with: "2\"}"))
    let other = try #require(Site.objects(plain.body).first?["message_id"] as? String)
    #expect(try doors.map { try $0.ask("GET", place + "/" + other, key).status } == [200, 404])
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 2])
  }

  @Test("if gateways share all requests, one without an Idempotency-Key has one answer too")
  func shared() throws {
    let (site, doors, key) = try open(.sqlite, wait: [30, 30], isShared: true)
    let worker = try site.startWorker()
    for number in 1...5 {
      let answers = doors.map { Self.send($0.port, key, number, nil) }
      #expect(answers[0]?.body.contains("InvalidRegistration") == true && answers[0]?.body == answers[1]?.body)
    }
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: (1...5).map { (token($0), 1) }))
  }

  @Test("a request that failed for a passing reason is retried at either gateway", arguments: RegistryKind.all)
  func passing(_ registry: RegistryKind) throws {
    let (site, doors, key) = try open(
      registry, wait: [30, 30], script: [token(1): ["status": 503, "reason": "ServiceUnavailable"]])
    let worker = try site.start(
      ["worker", "--config", site.file("pushfleet.json5")],
      environment: ["PUSHFLEET_RETRY_ATTEMPTS": "1", "PUSHFLEET_LOG": "debug"])
    for (attempt, (door, headers)) in [
      (doors[0], ["Idempotency-Key": "a"]), (doors[1], ["Idempotency-Key": "a"]), (doors[1], ["Idempotency-Key": "a"]),
      (doors[0], [:]), (doors[0], [:]),
    ].enumerated() {
      let answer = try door.ask(
        "POST", "/v1/projects/p/messages:send", key, #"{"message":{"token":"\#(token(1))"}}"#, headers)
      #expect(answer.status == 503 && answer.headers["retry-after"] != nil, "\(answer)")
      #expect(try site.pushes().count == attempt + 1)
      // The other gateway publishes it under the same id, which the worker forgets with its acknowledgement.
      if attempt == 0 { #expect(worker.waitForOutput("request acknowledged", seconds: 90)) }
    }
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("a killed or suspended gateway's requests are accepted by the other one, and sent once")
  func taken() throws {
    let (site, doors, key) = try open(.sqlite, wait: [300, 1])
    let ports = doors.map(\.port)
    let answers = Mutex<[Int: String]>([:])
    let group = DispatchGroup()
    /// Makes the first gateway accept a request, whose result it awaits until this test is over.
    func begin(_ number: Int) throws {
      group.enter()
      Thread.detachNewThread {
        let body = Self.send(ports[0], key, number, "\(number)")?.body
        answers.withLock { $0[number] = body }
        group.leave()
      }
      #expect(try eventually { try site.depths(["send.normal"]) == [1] })
    }
    try begin(1)
    doors[0].gateway.signal(SIGSTOP)
    let first = try #require(Self.send(ports[1], key, 1, "1"))
    #expect(first.status == 200 && first.body.contains("message_id"))
    doors[0].gateway.signal(SIGCONT)
    try site.drain()
    group.wait()
    #expect(answers.withLock { $0[1] } == first.body)

    try begin(2)
    doors[0].gateway.end()
    let second = try #require(Self.send(ports[1], key, 2, "2"))
    #expect(second.status == 200 && Self.send(ports[1], key, 2, "2")?.body == second.body)
    group.wait()
    #expect(answers.withLock { $0[2] } == nil)
    try site.drain()
    #expect(try site.deliveries() == [token(1): 1, token(2): 1])
  }
}
