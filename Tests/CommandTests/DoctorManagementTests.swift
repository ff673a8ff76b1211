import AMQP
import Broker
import Foundation
import Settings
import StatusHTTP
import TestSupport
import Testing

@testable import pushfleet

/// What the doctor makes of the management API's answers, which are as RabbitMQ 3.10 gives them.
@Suite("The doctor and the management API")
struct DoctorManagementTests {
  private static let topology = Topology(ladder: [RetryStep(name: "1s", delay: 1_000)])

  /// The bindings of an exchange, as the topology has them.
  private static func bindings(of exchange: String) -> [[String: Any]] {
    topology.bindings.filter { $0.exchange == exchange }.map { binding in
      let own = QueueBinding(binding)
      return [
        "source": exchange, "vhost": "/", "destination": own.queue, "destination_type": "queue", "routing_key": own.key,
        "arguments": own.arguments, "properties_key": "x",
      ]
    }
  }

  /// Runs the doctor against answers by path.
  private func look(
    policies: [[String: Any]] = [], status: Int = 200, answer: String? = nil,
    bindings: @escaping @Sendable (String) -> [[String: Any]] = { DoctorManagementTests.bindings(of: $0) }
  ) throws -> [Finding] {
    let queues = String(
      decoding: try JSONSerialization.data(withJSONObject: ["items": policies, "page": 1, "page_count": 1]), as: UTF8.self)
    let port = try FreePorts.take(1)[0]
    let server = try HTTPServer(host: "127.0.0.1", port: port) { path, _, reply in
      let parts = path.split(separator: "/").map(String.init)
      var body = answer ?? queues
      if answer == nil, parts.count == 6, parts[1] == "exchanges" {
        let list = (try? JSONSerialization.data(withJSONObject: bindings(parts[3]))) ?? Data()
        body = String(decoding: list, as: UTF8.self)
      }
      reply.send(HTTPAnswer(status: status, contentType: "application/json", body: body))
    }
    defer { server.stop() }
    let file = FileManager.default.temporaryDirectory.appending(path: "management-\(UUID().uuidString).json5")
    defer { try? FileManager.default.removeItem(at: file) }
    try #"{ broker: "amqp://me:s3cret@b", apps: { a: { apns: { certificate: "x" } } } }"#.write(
      to: file, atomically: false, encoding: .utf8)
    let broker = try Configuration.load(path: file.path, environment: [:]).brokerAddresses()[0]
    let address = try #require(HTTPAddress("http://127.0.0.1:\(port)", defaultPort: 15_672))
    let findings = try DoctorManagement(Self.topology, address, broker).look()
    #expect(!findings.contains { $0.text(width: .max).contains("s3cret") })
    return findings
  }

  private func queue(_ name: String, _ definition: [String: Any]) -> [String: Any] {
    ["name": name, "policy": "cap", "operator_policy": NSNull(), "effective_policy_definition": definition]
  }

  @Test("all is well where every binding is there and no policy loses anything: a length alone refuses publications")
  func good() throws {
    let findings = try look(policies: [
      queue("push.send.high", ["max-length": 1_000]), queue("push.dead", ["max-length": 9, "overflow": "reject-publish"]),
      queue("push.trace", ["message-ttl": 1]), queue("push.mine", ["expires": 1]), ["name": "push.acks"],
    ])
    #expect(findings.map(\.level) == [.ok, .ok], "\(findings)")
  }

  @Test("a policy that loses messages is named with what it does and to which queues")
  func policies() throws {
    let loss: [String: Any] = ["max-length-bytes": 5, "overflow": "drop-head"]
    let findings = try look(policies: [
      queue("push.send.high", loss), queue("push.hold.com.example.app", loss), queue("push.retry.1s", ["message-ttl": 5]),
      queue("push.dead", ["expires": 9, "delivery-limit": 2]), queue("push.feedback.binary.a", loss),
    ]).filter { $0.level == .error }
    #expect(findings.count == 4 && findings.allSatisfy { $0.sentence.contains("`cap`") && $0.remedy != nil })
    #expect(findings.contains { $0.sentence.hasSuffix("(overflow drop-head): push.hold.com.example.app, push.send.high") })
    #expect(
      findings.contains { $0.sentence.contains("message-ttl 5 ms") }
        && findings.contains { $0.sentence.contains("delivery-limit 2") })
  }

  @Test("a binding that is missing is an error, and one of somebody else's a warning")
  func bindings() throws {
    let findings = try look(bindings: { exchange in
      guard exchange == "push.send" else { return Self.bindings(of: exchange) }
      var other = Self.bindings(of: exchange).filter { $0["routing_key"] as? String == "high" }
      other[0]["destination"] = "push.send.normal"
      return Self.bindings(of: exchange).filter { $0["routing_key"] as? String != "high" } + other
    })
    #expect(findings.contains { $0.level == .error && $0.sentence.contains("push.send.high to push.send") })
    #expect(
      findings.contains { $0.level == .warning && $0.sentence.hasPrefix(#"push.send.normal is bound to push.send by "high""#) })
  }

  @Test(
    "what refuses, answers something else or nothing useful is said once, and nothing more is asked",
    arguments: [
      (401, "{}", "refuses the user"), (404, "", "no such virtual host"), (500, "", "status 500"),
      (200, "<html>", "something else"), (200, "[1]", "something else"),
    ])
  func failures(status: Int, body: String, words: String) throws {
    let findings = try look(status: status, answer: body)
    #expect(findings.count == 1 && findings[0].level == .unreachable && findings[0].sentence.contains(words), "\(findings)")
    #expect(findings[0].remedy != nil)
  }

  @Test("a release before 3.10 is too old, and what isn't RabbitMQ or newer than what is known is worth a look")
  func releases() throws {
    func level(_ product: String, _ version: String) throws -> Finding.Level? {
      BrokerRelease.findings(BrokerServer(product: product, version: version), "broker").first?.level
    }
    #expect(
      try level("RabbitMQ", "3.9.27") == .error && level("RabbitMQ", "3.10.0") == .ok && level("RabbitMQ", "4.2.1") == .ok)
    #expect(
      try level("RabbitMQ", "5.0") == .warning && level("RabbitMQ", "x") == .warning && level("LavinMQ", "2.1") == .warning)
    #expect(try level("", "") == nil && BrokerRelease.findings(nil, "broker").isEmpty)
  }
}
