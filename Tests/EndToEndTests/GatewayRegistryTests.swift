import Foundation
import TestSupport
import Testing

@Suite("The gateway without its registry", .blocking)
struct GatewayRegistryTests {
  @Test(
    "while the registry is unwritable or unreachable, sends continue with known keys; requests that need it may be repeated")
  func away() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port, wait: 0))
    let door = try Door(site, port: port)
    let (key, unseen) = (try door.key().key, try door.key().key)
    func send(_ number: Int, _ key: String, _ headers: [String: String] = [:]) throws -> HTTPProbe.Answer {
      try door.ask("POST", "/fcm/send", key, #"{"to":"\#(token(number))","data":{"n":"\#(number)"}}"#, headers)
    }
    #expect(try send(1, key).status == 200)
    let holder = try LockHolder(site.file("registry.db"), "IMMEDIATE")
    for number in 2...5 {
      #expect(try send(number, key, number % 2 == 0 ? ["Idempotency-Key": "\(number)"] : [:]).status == 200)
    }
    #expect(try send(2, key, ["Idempotency-Key": "2"]).status == 200)
    #expect(try site.depths(["send.normal"]) == [5])
    holder.end()

    for name in ["registry.db", "registry.db-wal", "registry.db-shm"] {
      try? FileManager.default.moveItem(atPath: site.file(name), toPath: site.file("away-\(name)"))
    }
    let info = "/iid/info/\(token(1))"
    #expect(try eventually { try door.ask("GET", info, key).status == 503 })
    #expect(try send(6, key, ["Idempotency-Key": "6"]).status == 200)
    // It is unknown whether these keys are valid.
    for answer in [
      try send(7, unseen), try door.ask("GET", info, unseen),
      try door.ask("GET", "/pages/" + String(repeating: "A", count: 30), nil),
    ] {
      #expect(answer.status == 503 && answer.headers["retry-after"] != nil, "\(answer.status) \(answer.body)")
    }
    for name in ["registry.db", "registry.db-wal", "registry.db-shm"] {
      try? FileManager.default.moveItem(atPath: site.file("away-\(name)"), toPath: site.file(name))
    }
    #expect(try eventually { try door.ask("GET", info, key).status == 404 })
    #expect(try send(7, unseen).status == 200)
    #expect(try site.depths(["send.normal"]) == [7])
    door.gateway.signal(15)
    #expect(door.gateway.wait() == 0)
  }
}
