import Foundation
import TestSupport
import Testing

/// Old senders end to end: a Python client with its own frames, a gateway, a worker and APNs' simulator.
@Suite("The door for APNs' binary interface", .blocking)
struct BinaryDoorTests {
  @Test("old senders' notifications reach phones, and senders get Apple's answers")
  func wholeDay() throws {
    let site = try Site()
    let door = try OldDoor(
      site, script: [token(16): ["status": 410, "reason": "Unregistered", "timestamp": 1_700_000_000_000]])

    // Each command, in any pieces.
    var sent = 0
    for cut in ["frame", "all", "1", "7"] {
      let notifications: [[String: Any]] = [
        ["command": 0, "token": token(100 + sent), "payload": OldDoor.rich],
        ["command": 1, "id": 1, "expiry": 2_000_000_000, "token": token(101 + sent), "payload": OldDoor.rich],
        ["id": 2, "priority": 5, "token": token(102 + sent), "payload": OldDoor.rich],
      ]
      sent += 3
      #expect(try door.send(notifications, ["--cut", cut, "--wait", "0.2"]) == ["silent": 1])
    }
    // A close directly after the last byte.
    #expect(try door.send((0..<500).map { OldDoor.hello($0, token(1000 + $0)) }, ["--cut", "all", "--leave"]) == ["left": 1])
    // Invalid notifications, and others around them.
    #expect(
      try door.send([OldDoor.hello(7, token(201)), OldDoor.hello(8, "abcd"), OldDoor.hello(9, token(202))], ["--cut", "all"])
        == ["status": 5, "identifier": 8])
    #expect(try door.send([["id": 3, "token": token(203), "payload": "no JSON"]]) == ["status": 1, "identifier": 3])
    #expect(try door.send([["raw": "474554202f20"]]) == ["status": 128, "identifier": 0])
    #expect(try door.send([["command": 0, "token": "", "payload": "{}"]]) == ["closed": 1])
    #expect(try door.send([OldDoor.hello(1, token(204))], identity: nil).keys.first == "refused")
    #expect(try door.send([OldDoor.hello(1, token(16))], ["--wait", "0.2"]) == ["silent": 1])

    // A stopping gateway names the last accepted notification.
    let waiting = try door.startSending([OldDoor.hello(11, token(205)), OldDoor.hello(12, token(206))], ["--wait", "30"])
    try site.wait(for: 512, in: "send.high")
    door.gateway.signal(SIGTERM)
    #expect(
      waiting.wait() == 0 && Site.objects(waiting.outputSoFar).last as? [String: Int] == ["status": 10, "identifier": 12])
    #expect(door.gateway.wait() == 0)

    try site.drain()
    let pushes = try site.pushes()
    let delivered = try site.deliveries()
    #expect(delivered.count == 12 + 500 + 1 + 2 && delivered.values.allSatisfy { $0 == 1 })
    #expect(delivered[token(202)] == nil && delivered[token(201)] == 1)
    let simple = try #require(pushes.first { $0.token == token(100) })
    #expect(simple.payload as NSDictionary == OldDoor.rich as NSDictionary)
    #expect(simple.headers["apns-priority"] == "10" && simple.headers["apns-push-type"] == "alert")
    #expect(pushes.first { $0.token == token(101) }?.headers["apns-expiration"] == "2000000000")
    #expect(pushes.first { $0.token == token(102) }?.headers["apns-priority"] == "5")
    #expect(pushes.allSatisfy { $0.violations.isEmpty })

    // The list is empty once it is read.
    try door.startGateway()
    let gone = ["time": 1_700_000_000, "token": token(16)] as NSDictionary
    #expect(try door.feedback() == [gone])
    #expect(try door.feedback() == [])
    #expect(try site.depths(["feedback.binary.\(Site.app)", "feedback"]) == [0, 1])
  }

  @Test("a killed gateway loses no accepted notification, and sends nothing twice by itself")
  func killed() throws {
    let site = try Site()
    let door = try OldDoor(site)
    let lines = (0..<3000).map { OldDoor.hello($0, token($0)) }
    let sending = try door.startSending(lines, ["--cut", "all", "--wait", "30"])
    try site.wait(for: 300, in: "send.high")
    door.gateway.signal(SIGKILL)
    _ = sending.wait()
    try site.drain()
    let first = try site.deliveries()
    #expect(first.count >= 300 && first.values.allSatisfy { $0 == 1 })
    // Without an answer, the sender sends everything again.
    try door.startGateway()
    #expect(try door.send(lines, ["--cut", "all", "--wait", "1"]) == ["silent": 1])
    try site.drain()
    let second = try site.deliveries()
    #expect(second.count == 3000 && second.allSatisfy { $0.value == 1 + (first[$0.key] ?? 0) })
  }
}

/// A site's door for old senders.
final class OldDoor {
  static var rich: [String: Any] {
    [
      "aps": ["alert": ["title": "Grüße", "body": "\u{1F600} \"/\\"], "badge": 3, "sound": "default"],
      "acme": ["a", 1.5, NSNull()],
    ]
  }

  static func hello(_ id: Int, _ token: String) -> [String: Any] {
    ["id": id, "token": token, "payload": #"{"aps":{"alert":"Hello"}}"#]
  }

  private let site: Site
  private let ports: [UInt16]
  private(set) var gateway: ChildProcess

  init(_ site: Site, script: [String: Any] = [:]) throws {
    self.site = site
    ports = try FreePorts.take(2)
    let certificates = site.certificates
    try site.startSimulator(
      script: script,
      settings: """
        gateway: { apns: { listen: "127.0.0.1:\(ports[0])", feedback: "127.0.0.1:\(ports[1])", certificate: "\(certificates.server)",
          key: "\(certificates.serverKey)", clients: "\(certificates.authority)" } },
        """)
    gateway = try Self.start(site)
  }

  private static func start(_ site: Site) throws -> ChildProcess {
    let gateway = try site.start(["gateway", "--config", site.file("pushfleet.json5")])
    guard gateway.waitForOutput(#""publishing""#, seconds: 90) else { throw Broken("no gateway: \(gateway.outputSoFar)") }
    return gateway
  }

  func startGateway() throws { gateway = try Self.start(site) }

  private var client: [String] {
    ["--certificate", site.certificates.client, "--key", site.certificates.clientKey]
  }

  private func words(_ port: UInt16, _ identity: [String]?, _ rest: [String]) -> [String] {
    ["/usr/bin/python3", Site.support("old_sender.py"), "--port", "\(port)", "--ca", site.certificates.authority]
      + (identity ?? [])
      + rest
  }

  /// The sender's answers: numbers, or 1 for a text.
  func send(_ notifications: [[String: Any]], _ options: [String] = []) throws -> [String: Int] {
    try send(notifications, options, identity: client)
  }

  func send(_ notifications: [[String: Any]], _ options: [String] = [], identity: [String]?) throws -> [String: Int] {
    let output = try site.foreign(words(ports[0], identity, ["send"] + options), input: site.writeLines(notifications))
    return Site.objects(output).last?.mapValues { $0 as? Int ?? 1 } ?? [:]
  }

  func startSending(_ notifications: [[String: Any]], _ options: [String]) throws -> ChildProcess {
    try ChildProcess(
      words(ports[0], client, ["send"] + options), environment: ["PATH": "/usr/bin:/bin"], output: nil,
      input: FileHandle(forReadingAtPath: try site.writeLines(notifications)))
  }

  func feedback() throws -> [NSDictionary] {
    Site.objects(try site.foreign(words(ports[1], client, ["feedback"]))).map { $0 as NSDictionary }
  }
}

extension Site {
  /// Waits until so many messages are ready in a queue.
  fileprivate func wait(for count: Int, in queue: String) throws {
    // The queue may not be declared yet.
    guard eventually({ (try? depths([queue])[0]).map { $0 >= count } == true }) else {
      throw Broken("fewer than \(count) messages in \(queue), or no such queue")
    }
  }
}
