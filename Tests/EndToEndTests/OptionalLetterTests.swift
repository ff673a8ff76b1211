import Foundation
import TestSupport
import Testing

@Suite("Outcomes that make a dead letter by the setting deadLetters", .blocking)
struct OptionalLetterTests {
  @Test("expired, collapsed and untranslatable requests are dead letters, and come back once from a replay")
  func letters() throws {
    let site = try Site()
    try site.startFleet(
      script: [token(1): ["status": 429, "reason": "TooManyRequests", "retry_after": 2, "times": 1] as [String: Any]],
      settings: #"deadLetters: ["Expired", "Collapsed", "NothingForPlatform"],"#)
    try site.importDevices(3...4, #""topics":["all"]"#)
    let worker = try site.startWorker()
    func publish(_ id: String, _ body: [String: Any], at second: Int? = nil) throws {
      var properties: [String: Any] = ["message_id": id]
      properties["timestamp"] = second
      try site.publish([(body, properties)])
    }
    let key = ["to": token(1), "collapse_key": "k"]
    try publish("first", key)
    #expect(try eventually { try site.pushes().count == 1 })
    try publish("second", key)
    let past = Int(Date().timeIntervalSince1970) - 100
    let list = [token(5), token(6)]
    try publish("late", ["to": token(2), "time_to_live": 10], at: past)
    try publish("late list", ["registration_ids": list, "time_to_live": 10], at: past)
    try publish("late broadcast", ["to": "/topics/all", "time_to_live": 10], at: past)
    try publish("icon", ["to": token(7), "notification": ["icon": "i"]])
    try publish("icons", ["to": "/topics/all", "notification": ["icon": "i"]])
    #expect(try eventually { try site.depths(["dead", "send.normal", "fanout.normal"]) == [6, 0, 0] })
    let replay = ["dead", "replay", "--config", site.file("pushfleet.json5"), "--error", "Expired"]
    #expect(try site.run(replay).status == 0)
    #expect(try eventually { try site.depths(["dead", "send.normal"]) == [6, 0] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let letters = Dictionary(grouping: try site.take("dead")) { $0.id }
    #expect(letters.values.allSatisfy { $0.count == 1 } && letters.count == 6)
    let errors = letters.mapValues { $0[0].header("x-push-error") ?? "" }
    #expect(
      errors == [
        "first": "Collapsed", "late": "Expired", "late list": "Expired", "late broadcast": "Expired",
        "icon": "NothingForPlatform", "icons": "NothingForPlatform",
      ])
    #expect(letters["late list"]?[0].json["registration_ids"] as? [String] == list)
    #expect(letters["late broadcast"]?[0].json["to"] as? String == "/topics/all")
    #expect(letters["first"]?[0].header("x-push-attempts") == "1")
    #expect(try site.pushes().map(\.token) == [token(1), token(1)])
  }

  @Test("an expired device of a broadcast has its own letter, which names it")
  func devices() throws {
    let site = try Site()
    // The second device of a page waits for the only stream until the lifetime is over.
    try site.startFleet(
      script: ["*": ["delay_ms": 1_500]], options: ["--streams", "1"],
      settings: #"deadLetters: ["Expired"], fanOut: { pageSize: 2 },"#)
    try site.importDevices(1...4, #""topics":["all"]"#)
    let worker = try site.startWorker()
    try site.broadcast("b", to: ["to": "/topics/all", "time_to_live": 1])
    #expect(try eventually { try site.depths(["results"]) == [1] })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let reached = Set(try site.pushes().map(\.token))
    let letters = try site.take("dead")
    #expect(!letters.isEmpty && letters.count + reached.count == 4)
    #expect(
      letters.allSatisfy { ($0.json["to"] as? String)?.hasPrefix("pf1r~") == true && $0.header("x-push-error") == "Expired" })
    #expect(Set(letters.compactMap { $0.json["to"] as? String }).count == letters.count)
  }
}
