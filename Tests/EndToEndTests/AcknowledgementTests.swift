import Foundation
import TestSupport
import Testing

@Suite("Acknowledgements of devices through their queue", .blocking)
struct AcknowledgementTests {
  @Test("receptions and reads are stored and published, and count in their campaign", arguments: RegistryKind.all)
  func path(_ registry: RegistryKind) throws {
    let site = try Site()
    try site.startFleet(try registry.make(), settings: "receipts: true,")
    try site.importDevices(1...2, #""topics":["all"],"user":"anna""#)
    let worker = try site.startWorker()
    try site.broadcast("m")
    #expect(try eventually { try site.depths(["results"]) == [1] })
    let said: [[String: Any]] = (1...2).map { ["op": "received", "token": token($0), "message_id": "m"] }
    try site.acknowledge([said, ["op": "read", "token": token(1), "message_id": "m", "at": "2026-11-20T21:22:00.123Z"]])
    try site.acknowledge([said])
    #expect(try eventually { try site.depths(["acks", "receipts"]) == [0, 3] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let receipts = try site.take("receipts")
    #expect(receipts.map { $0.json["event"] as? String ?? "" }.sorted() == ["Read", "Received", "Received"])
    let read = try #require(receipts.map(\.json).first { $0["event"] as? String == "Read" })
    #expect(read["app"] as? String == Site.app && read["message_id"] as? String == "m" && read["user"] as? String == "anna")
    #expect(read["at"] as? String == "2026-11-20T21:22:00.123Z" && read["badge"] as? Int == 0)
    #expect((read["registration"] as? String)?.hasPrefix("pf1r~") == true)
    let campaign = try #require(try site.campaigns()["m"])
    #expect(campaign["received"] as? Int == 2 && campaign["read"] as? Int == 1)
  }

  @Test("an unreadable message is a dead letter as a whole, with the place; one about unknown devices is dropped")
  func refused() throws {
    let site = try Site()
    try site.startFleet(settings: "receipts: true,")
    try site.importDevices(1...1, #""user":"anna""#)
    let good: [String: Any] = ["op": "received", "token": token(1), "message_id": "m"]
    try site.acknowledge([[good, ["op": "read", "token": token(1), "message_id": "m", "badge_option": "update", "badge": 0]]])
    try site.acknowledge([["op": "received", "token": token(2), "message_id": "m"]], ["message_id": "nobody"])
    let worker = try site.startWorker()
    #expect(try eventually { try site.depths(["acks", "dead"]) == [0, 1] })
    let letter = try #require(try site.take("dead").first)
    #expect(letter.header("x-push-error") == "InvalidParameters")
    #expect(
      letter.header("x-push-reason") == "[1]: badge: expected a whole number from 1 to 1000")
    // Nothing of the letter was stored. Corrected and replayed through its origin, it is.
    let way: [String: Any] = ["headers": ["x-push-origin": letter.header("x-push-origin") ?? ""]]
    try site.publish(
      lines: [["body": [good], "properties": way, "exchange": "\(site.prefix).return", "routing_key": ""]])
    #expect(try eventually { try site.depths(["receipts"]) == [1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.depths(["acks", "dead", "receipts"]) == [0, 0, 1])
  }

  @Test("a push's mps object lets an acknowledgement name its message, by key and by number (UP-17, UP-19)")
  func mps() throws {
    let site = try Site()
    try site.startFleet(settings: "receipts: true,", apps: "upmc: true,")
    try site.importDevices(1...1, #""topics":["all"]"#)
    let worker = try site.startWorker()
    try site.broadcast("m", to: ["to": "/topics/all", "notification": ["body": "b"]])
    #expect(try eventually { try site.depths(["results"]) == [1] })
    let push = try #require(try site.pushes().first)
    let mps = try #require(push.payload["mps"] as? [String: String])
    #expect(mps["appid"] == Site.app && mps["db_in"] == "Y" && mps["senddate"]?.count == 10)
    let aps = try #require(push.payload["aps"] as? [String: Any])
    #expect(aps["sound"] as? String == "default" && aps["mutable-content"] as? Int == 1 && push.violations == [])
    let number = try #require(mps["seqno"].flatMap { Int($0) })
    try site.acknowledge([
      ["op": "received", "token": token(1), "push_key": mps["pushkey"] ?? ""],
      ["op": "read", "token": token(1), "seqno": "\(number)"], ["op": "read", "token": token(1), "seqno": number],
    ])
    #expect(try eventually { try site.depths(["acks", "receipts"]) == [0, 2] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.take("receipts").map { $0.json["message_id"] as? String } == ["m", "m"])
  }

  @Test(
    "a message that was never sent to the device is unknown: no badge, no receipt, no campaign", arguments: RegistryKind.all)
  func unsent(_ registry: RegistryKind) throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(try registry.make(), settings: #"receipts: true, metrics: "127.0.0.1:\#(port)","#)
    try site.importDevices(1...1, #""topics":["all"]"#)
    try site.importDevices(2...2, #""topics":["another"]"#)
    let worker = try site.startWorker()
    func send(_ messageID: String, _ target: [String: Any]) throws {
      try site.broadcast(messageID, to: target)
      #expect(try eventually { try site.take("results", count: 1).first?.id == messageID })
    }
    let counted = ["to": token(1), "notification": ["body": "b", "badge": "auto"]] as [String: Any]
    for message in ["m1", "m2"] { try send(message, counted) }
    try send("all", ["to": "/topics/all", "notification": ["body": "b"]])
    try site.acknowledge([
      ["op": "read", "token": token(1), "message_id": "never"], ["op": "read", "token": token(2), "message_id": "m1"],
      [
        ["op": "received", "token": token(2), "message_id": "all"], ["op": "read", "token": token(2), "message_id": "all"],
        ["op": "received", "token": token(1), "message_id": "all"], ["op": "read", "token": token(1), "message_id": "m1"],
      ],
    ])
    #expect(try eventually { try site.depths(["acks"]) == [0] })
    try send("m3", counted)
    #expect(
      eventually {
        HTTPProbe(port: port).ask("/metrics")?.body.contains(#"outcome="unknown"} 4"#) == true
      })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let badges = try site.pushes().compactMap { ($0.payload["aps"] as? [String: Any])?["badge"] as? Int }
    #expect(badges == [1, 2, 2])
    let receipts = try site.take("receipts").map { "\($0.json["event"] ?? "") \($0.json["message_id"] ?? "")" }
    #expect(receipts.sorted() == ["Read m1", "Received all"])
    let campaign = try #require(try site.campaigns()["all"])
    #expect(campaign["received"] as? Int == 1 && campaign["read"] as? Int == 0)
  }

  @Test("a user without rights to an application acknowledges nothing for it")
  func rights() throws {
    let site = try Site()
    try site.startFleet(settings: "receipts: true,", apps: #"producers: ["guest"],"#)
    try site.importDevices(1...2, #""user":"anna""#)
    let worker = try site.startWorker()
    try site.acknowledge([["op": "received", "token": token(1), "message_id": "m"]])
    try site.acknowledge([["op": "received", "token": token(2), "message_id": "m"]], ["user_id": "guest"])
    #expect(try eventually { try site.depths(["acks", "dead", "receipts"]) == [0, 1, 1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.take("dead").first?.header("x-push-error") == "NotAllowed")
  }

  @Test(
    "while the registry is locked acknowledgements wait, and a worker that is killed meanwhile loses none",
    arguments: [true, false])
  func locked(isKilled: Bool) throws {
    let site = try Site()
    try site.startFleet(settings: "receipts: true,")
    try site.importDevices(1...20, #""user":"anna""#)
    var worker = try site.startWorker()
    let holder = try LockHolder(site.file("registry.db"))
    try site.acknowledge((1...20).map { ["op": "received", "token": token($0), "message_id": "m"] })
    #expect(worker.waitForOutput("the registry can't be written to", seconds: 90), "\(worker.outputSoFar)")
    if isKilled {
      worker.end()
      worker = try site.startWorker()
    }
    #expect(try site.depths(["receipts"]) == [0])
    holder.end()
    #expect(try eventually { try site.depths(["acks", "receipts"]) == [0, 20] })
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("an acknowledgement is published even if its worker died before, at most once more than needed")
  func told() throws {
    let site = try Site()
    try site.startFleet()
    try site.importDevices(1...1, #""user":"anna""#)
    let said: [String: Any] = ["op": "read", "token": token(1), "message_id": "m", "at": "2026-11-20T21:22:00.123Z"]
    // Stored without a receipt, as after a worker's death in between.
    var worker = try site.startWorker()
    try site.acknowledge([said])
    #expect(try eventually { try site.depths(["acks"]) == [0] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.acknowledge([said])
    try site.peer(["consume", "\(site.prefix).acks", "--count", "1", "--wait", "30", "--give-back"])
    try site.configureFleet("sqlite:registry.db", settings: "receipts: true,")
    worker = try site.startWorker()
    #expect(try eventually { try site.depths(["receipts"]) == [1] })
    try site.acknowledge([said])
    #expect(try eventually { try site.depths(["acks"]) == [0] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let receipts = try site.take("receipts")
    #expect(receipts.map { $0.json["at"] as? String } == ["2026-11-20T21:22:00.123Z"])
  }
}

extension Site {
  /// Publishes to the acknowledgement queue, through its exchange; each message is an object or a list.
  func acknowledge(_ messages: [Any], _ properties: [String: Any] = [:]) throws {
    try publish(
      lines: messages.map {
        let text = String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self)
        return ["body": text, "properties": properties, "exchange": "\(prefix).acks", "routing_key": "ack"]
      })
  }
}
