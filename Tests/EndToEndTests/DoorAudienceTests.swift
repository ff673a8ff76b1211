import Foundation
import TestSupport
import Testing

/// Topics, groups, conditions and dry runs through the gateway, and receptions by devices.
@Suite("Audiences and receptions through the gateway", .blocking)
struct DoorAudienceTests {
  /// A gateway, a worker, and three iPhones that are registered through the door.
  private struct Place {
    let site: Site
    let door: Door
    let worker: ChildProcess
    let key: String
    let registrations: [String]

    init() throws {
      site = try Site()
      let port = try FreePorts.take(1)[0]
      try site.startFleet(settings: Door.settings(port), apps: "upmc: true,")
      door = try Door(site, port: port)
      worker = try site.startWorker()
      key = try door.key().key
      registrations = try Self.register(door, key)
    }

    private static func register(_ door: Door, _ key: String) throws -> [String] {
      let tokens = (1...3).map { #""\#(token($0))""# }.joined(separator: ",")
      let imported = try door.json(
        "POST", "/iid/v1:batchImport", key, #"{"application":"\#(Site.app)","sandbox":false,"apns_tokens":[\#(tokens)]}"#)
      return (imported["results"] as? [[String: String]] ?? []).compactMap { $0["registration_token"] }
    }

    /// Sends a legacy request with these members and its own name.
    /// - Returns: its answer, and the numbers of the reached devices.
    func send(_ members: String, to path: String = "/fcm/send") throws -> (answer: [String: Any], reached: [String]) {
      let name = UUID().uuidString
      let body =
        path == "/fcm/send"
        ? #"{\#(members),"notification":{"title":"x"},"data":{"n":"\#(name)"}}"#
        : #"{"message":{\#(members),"notification":{"title":"x"},"data":{"n":"\#(name)"}}}"#
      let answer = try door.json("POST", path, key, body)
      return (answer, try site.pushes().filter { $0.payload["n"] as? String == name }.map(\.token).sorted())
    }

    func errors(_ answer: [String: Any]) -> [String?]? { (answer["results"] as? [[String: String]])?.map { $0["error"] } }

    func close() throws {
      for child in [door.gateway, worker] {
        child.signal(15)
        #expect(child.wait() == 0)
      }
      #expect(try site.depths(["dead"]) == [0])
    }
  }

  @Test("topics are joined and left in batches, and conditions over them hold, with FCM legacy and v1")
  func topics() throws {
    let place = try Place()
    let registrations = place.registrations
    func batch(_ word: String, _ topic: String, _ tokens: [String]) throws -> [String?]? {
      let list = String(decoding: try JSONSerialization.data(withJSONObject: tokens), as: UTF8.self)
      return place.errors(
        try place.door.json(
          "POST", "/iid/v1:batch\(word)", place.key, #"{"to":"/topics/\#(topic)","registration_tokens":\#(list)}"#))
    }
    #expect(try batch("Add", "a", registrations) == [nil, nil, nil])
    // By provider's tokens as well.
    #expect(try batch("Add", "b", [token(2), "nobody", token(3)]) == [nil, "NOT_FOUND", nil])
    #expect(try place.send(#""to":"/topics/a""#).reached == [token(1), token(2), token(3)])
    #expect(try batch("Remove", "a", [registrations[0], "nobody"]) == [nil, "NOT_FOUND"])
    #expect(try batch("Remove", "a", [registrations[0]]) == [nil])
    let v1 = "/v1/projects/p/messages:send"
    for (path, members, reached) in [
      ("/fcm/send", #""to":"/topics/a""#, [2, 3]), (v1, #""topic":"a""#, [2, 3]),
      ("/fcm/send", #""condition":"'a' in topics && 'b' in topics""#, [2, 3]),
      ("/fcm/send", #""condition":"'a' in topics && !('b' in topics)""#, []),
      (v1, #""condition":"'b' in topics || 'c' in topics""#, [2, 3]),
    ] {
      let (answer, devices) = try place.send(members, to: path)
      #expect(devices == reached.map(token), "\(members)")
      if path == v1 {
        #expect((answer["name"] as? String)?.hasPrefix("projects/p/messages/") == true)
      } else {
        #expect(answer["message_id"] is Int || answer["error"] is String, "\(answer)")
      }
    }
    #expect(try batch("Remove", "b", [token(2), token(3)]) == [nil, nil])
    #expect(try place.send(#""condition":"'a' in topics && !('b' in topics)""#).reached == [token(2), token(3)])
    let broken = #"'a' in topics &&"#
    #expect(try place.door.ask("POST", "/fcm/send", place.key, #"{"condition":"\#(broken)","data":{}}"#).status == 400)
    let refused = try place.door.ask("POST", v1, place.key, #"{"message":{"condition":"\#(broken)"}}"#)
    #expect(refused.status == 400 && refused.body.contains("INVALID_ARGUMENT"))
    for (word, body) in [
      ("Add", #"{"to":"/topics/a b","registration_tokens":["x"]}"#),
      ("Remove", #"{"to":"/topics/a","registration_tokens":[]}"#),
      ("Remove", #"{"registration_tokens":["x"]}"#),
    ] { #expect(try place.door.ask("POST", "/iid/v1:batch\(word)", place.key, body).status == 400) }
    let many = "[" + Array(repeating: #""x""#, count: 1_001).joined(separator: ",") + "]"
    for (tokens, words) in [(many, "1001 tokens"), (#""x""#, "array"), ("[1]", "array"), ("[]", "MissingIIdToken")] {
      let answer = try place.door.ask(
        "POST", "/iid/v1:batchAdd", place.key, #"{"to":"/topics/a","registration_tokens":\#(tokens)}"#)
      #expect(answer.status == 400 && answer.body.contains(words), "\(answer)")
    }
    // A topic without members is no error.
    #expect(try place.send(#""to":"/topics/nobody""#).answer["message_id"] is Int)
    #expect(try place.send(#""condition":"'nobody' in topics""#).answer["message_id"] is Int)
    let none = try place.door.json("POST", v1, place.key, #"{"message":{"topic":"nobody","data":{"a":"b"}}}"#)
    #expect((none["name"] as? String)?.hasPrefix("projects/") == true)
    #expect(try place.site.take("dead").map { $0.header("x-push-error") } == Array(repeating: "InvalidRegistration", count: 3))
    try place.close()
  }

  @Test("devices join and leave groups; dry runs reach no device")
  func groups() throws {
    let place = try Place()
    let registrations = place.registrations
    func change(_ members: String, _ tokens: [String]) throws -> HTTPProbe.Answer {
      let list = String(decoding: try JSONSerialization.data(withJSONObject: tokens), as: UTF8.self)
      return try place.door.ask(
        "POST", "/gcm/notification", place.key, #"{\#(members),"registration_ids":\#(list)}"#, ["project_id": "1"])
    }
    let name = #""notification_key_name":"g""#
    let created = try change(#""operation":"create",\#(name)"#, [registrations[0]])
    let group = try #require(Site.objects(created.body).first?["notification_key"] as? String)
    let known = #"\#(name),"notification_key":"\#(group)""#
    #expect(try place.send(#""to":"\#(group)""#).reached == [token(1)])
    let added = try change(#""operation":"add",\#(known)"#, [registrations[1], registrations[2]])
    #expect(added.status == 200 && added.body.contains(group))
    let all = try place.send(#""to":"\#(group)""#)
    #expect(all.answer["success"] as? Int == 3 && all.reached == [token(1), token(2), token(3)])
    #expect(try change(#""operation":"remove",\#(known)"#, [registrations[1]]).status == 200)
    #expect(try place.send(#""to":"\#(group)""#).reached == [token(1), token(3)])
    for (operation, tokens) in [("add", ["nobody"]), ("move", [registrations[0]]), ("remove", [])] {
      let refused = try change(#""operation":"\#(operation)",\#(known)"#, tokens)
      #expect(refused.status == 400 && Site.objects(refused.body).first?["error"] is String, "\(operation): \(refused.body)")
    }
    #expect(try place.send(#""to":"\#(group)""#).reached == [token(1), token(3)])

    let targets = [
      #""to":"\#(token(1))""#, #""registration_ids":["\#(token(1))","\#(token(2))"]"#, #""to":"\#(group)""#,
    ]
    for target in targets {
      let (answer, reached) = try place.send(#"\#(target),"dry_run":true"#)
      #expect(reached == [] && (answer["success"] as? Int ?? 0) > 0 && answer["failure"] as? Int == 0, "\(target): \(answer)")
    }
    #expect(try place.send(#""to":"/topics/none","dry_run":true"#).reached == [])
    let v1 = try place.door.json(
      "POST", "/v1/projects/p/messages:send", place.key,
      #"{"validate_only":true,"message":{"token":"\#(token(1))","data":{"n":"validated"}}}"#)
    #expect(v1["name"] as? String == "projects/p/messages/fake_message_id")
    let wrong = try place.door.ask(
      "POST", "/v1/projects/p/messages:send", place.key, #"{"validate_only":true,"message":{"token":"a b"}}"#)
    #expect(wrong.status == 400 && wrong.body.contains("INVALID_ARGUMENT"))
    #expect(try place.site.pushes().allSatisfy { $0.payload["n"] as? String != "validated" })
    try place.close()
  }

  @Test(
    "a repeated reception counts once, a number names its message like its digits, and an unknown push has no effect (UP-16 to UP-18)"
  )
  func receptions() throws {
    let place = try Place()
    let path = "/v1/apps/\(Site.app)/installations/one"
    _ = try place.door.json(
      "PUT", path, place.key, #"{"platform":"apns","token":"\#(token(1))","user":"anna","name":"Anna"}"#)
    _ = try place.send(#""to":"\#(token(1))""#)
    let payload = try #require(try place.site.pushes().last?.payload)
    let mps = try #require(payload["mps"] as? [String: Any])
    let push = String(decoding: try JSONSerialization.data(withJSONObject: payload), as: UTF8.self)
    let number = try #require("\(mps["seqno"] ?? "")".isEmpty ? nil : "\(mps["seqno"] ?? "")")
    func acknowledge(_ fields: String) throws {
      #expect(try place.door.ask("POST", path + "/acks", place.key, "{\(fields)}").status == 202, "\(fields)")
    }
    let unknown = String(repeating: "0", count: 40)
    try acknowledge(#""op":"received","push_key":"\#(unknown)""#)
    try acknowledge(#""op":"read","notification":{"mps":{"pushkey":"\#(unknown)"}}"#)
    try acknowledge(#""op":"read","seqno":4711"#)
    try acknowledge(#""op":"received","notification":\#(push),"at":"2026-11-20T21:22:00.123Z""#)
    try acknowledge(#""op":"received","notification":\#(push),"feedback":"true","at":"2026-11-20T21:23:00.123Z""#)
    try acknowledge(#""op":"read","seqno":\#(number)"#)
    try acknowledge(#""op":"read","seqno":"\#(number)""#)
    #expect(try eventually { try place.site.depths(["acks"]) == [0] })
    let receipts = try place.site.take("receipts", count: 2)
    #expect(Set(receipts.map { $0.json["event"] as? String }) == ["Received", "Read"])
    let received = receipts.first { $0.json["event"] as? String == "Received" }
    #expect(received?.json["at"] as? String == "2026-11-20T21:22:00.123Z" && received?.json["user"] as? String == "anna")

    // The badge is forced and cleared without a message, and no read is noted of that.
    let secret = try #require(
      try place.door.json("POST", path + "/secret", place.key, "")["secret"] as? String)
    #expect(try place.door.ask("PUT", path + "/badge", secret, #"{"badge":7}"#).status == 202)
    #expect(try place.door.ask("DELETE", path + "/badge", secret).status == 202)
    let counted = #"{"to":"\#(token(1))","notification":{"body":"b","badge":"auto"}}"#
    // Until both are processed it continues to count.
    #expect(
      try eventually {
        _ = try place.door.json("POST", "/fcm/send", place.key, counted)
        return (try place.site.pushes().last?.payload["aps"] as? [String: Any])?["badge"] as? Int == 1
      })
    place.worker.signal(15)
    #expect(place.worker.wait() == 0)
    #expect(try place.site.depths(["receipts", "dead"]) == [0, 0])
    place.door.gateway.signal(15)
    #expect(place.door.gateway.wait() == 0)
  }
}
