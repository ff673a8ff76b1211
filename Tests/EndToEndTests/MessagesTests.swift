import Foundation
import TestSupport
import Testing

/// The gateway's own interface for send requests.
@Suite("Requests through the gateway's own interface", .blocking)
struct MessagesTests {
  private static let place = "/v1/apps/\(Site.app)/messages"

  private func object(_ answer: HTTPProbe.Answer) throws -> NSDictionary {
    try #require(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? NSDictionary, "\(answer)")
  }

  private func open(_ site: Site, wait: Int = 30) throws -> Door {
    let port = try FreePorts.take(1)[0]
    try site.startFleet(
      script: [token(9): ["status": 410, "reason": "Unregistered", "timestamp": 1_732_137_600_000]],
      settings: Door.settings(port, wait: wait))
    return try Door(site, port: port)
  }

  private func state(_ door: Door, _ key: String, _ id: String) throws -> [String: Any] {
    try door.json("GET", Self.place + "/" + id, key)
  }

  @Test("one request is confirmed or answered with its result, and its outcome can be asked for")
  func one() throws {
    let site = try Site()
    let door = try open(site)
    let key = try door.key().key
    func post(_ body: String, _ query: String = "", _ headers: [String: String] = [:]) throws -> HTTPProbe.Answer {
      try door.ask("POST", Self.place + query, key, body, headers)
    }

    // Without a worker: the lanes, and no outcome yet. Each request has its id on the queue.
    let named = ["Idempotency-Key": "n"]
    let waiting = try post(#"{"to":"\#(token(1))","data":{"n":"1"}}"#, "", named)
    #expect(waiting.status == 202)
    let id = try #require(try object(waiting)["message_id"] as? String)
    _ = try post(#"{"to":"\#(token(2))","data":{"n":"2"}}"#, "?lane=high")
    _ = try post(#"{"to":"\#(token(2))","priority":"high","data":{"n":"3"}}"#)
    _ = try post(#"{"message":{"token":"\#(token(2))","notification":{"title":"4"}}}"#, "?lane=normal&wait=0")
    #expect(try site.depths(["send.high", "send.normal"]) == [2, 2])
    #expect(try state(door, key, id)["state"] as? String == "accepted")

    // Refused requests name the place, and nothing is published.
    for (body, query, place) in [
      (#"{"to":"x","notification":{"title":5}}"#, "", "notification.title"), (#"{"to":"x""#, "", "at byte 9"),
      ("", "", "at byte 0"), ("{}", "", "target"), (#"{"to":"\#(token(1))"}"#, "?wait=31", "wait: expected 0 to 30"),
      (#"{"to":"\#(token(1))"}"#, "?wait=x", "wait"), (#"{"to":"\#(token(1))"}"#, "?lane=fast", "lane"),
    ] {
      let refused = try post(body, query)
      #expect(refused.status == 400 && refused.body.contains(place), "\(refused.body)")
    }
    #expect(try door.ask("POST", "/v1/apps/other/messages", key, #"{"to":"x"}"#).status == 403)
    #expect(try site.depths(["send.high", "send.normal"]) == [2, 2])

    // A result that comes after the answer.
    let worker = try site.startWorker()
    #expect(try eventually { try state(door, key, id)["state"] as? String == "done" })
    let result = try #require(try state(door, key, id)["result"] as? NSDictionary)
    #expect(eventually { (try? site.pushes().count) == 4 })
    #expect(try site.take("results", count: 4).first { $0.id == id }?.json as NSDictionary? == result)
    #expect(result["success"] as? Int == 1 && result["message_id"] as? String == id)
    // A repetition has the same answer, or with another body none.
    #expect(try object(post(#"{"to":"\#(token(1))","data":{"n":"1"}}"#, "", named)) == result)
    let reused = try post(#"{"to":"\#(token(1))","data":{"n":"7"}}"#, "", named)
    #expect(reused.status == 409 && reused.body.contains("Idempotency-Key"))

    // A result in time.
    let list = try post(#"{"registration_ids":["\#(token(3))","\#(token(9))","b d"],"data":{"n":"5"}}"#, "?wait=30")
    #expect(list.status == 200)
    #expect(try site.take("results", count: 1).map { $0.json as NSDictionary } == [try object(list)])
    #expect(try object(list)["failure"] as? Int == 2 && list.body.contains("NotRegistered"))
    // Without an Idempotency-Key this gateway remembers it for a while.
    let listed = try #require(try object(list)["message_id"] as? String)
    #expect(try state(door, key, listed)["result"] as? NSDictionary == object(list))

    for path in [Self.place + "/" + UUID().uuidString, Self.place + "/x", Self.place + "/%2F"] {
      let nothing = try door.ask("GET", path, key)
      #expect(nothing.status == 404 && nothing.body.contains("pushfleet trace"))
    }
    #expect(try door.ask("GET", "/v1/apps/other/messages/\(id)", key).status == 403)
    #expect(try door.ask("GET", Self.place + "/\(id)", try door.key("register").key).status == 403)
    for child in [door.gateway, worker] {
      child.signal(15)
      #expect(child.wait() == 0)
    }
    #expect(try site.deliveries() == [token(1): 1, token(2): 3, token(3): 1])
  }

  @Test("a result that comes after the gateway's whole wait is noted too")
  func late() throws {
    let site = try Site()
    let door = try open(site, wait: 1)
    let key = try door.key().key
    let answer = try door.ask(
      "POST", Self.place + "?wait=1", key, #"{"to":"\#(token(1))","data":{"n":"1"}}"#, ["Idempotency-Key": "n"])
    #expect(answer.status == 202, "\(answer)")
    let id = try #require(try object(answer)["message_id"] as? String)
    #expect(try state(door, key, id)["state"] as? String == "accepted")
    let worker = try site.startWorker()
    #expect(try eventually { try state(door, key, id)["state"] as? String == "done" })
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("a broadcast's result is the fan-out's, and that of any broadcast can be asked for")
  func broadcast() throws {
    let site = try Site()
    let door = try open(site)
    let worker = try site.startWorker()
    let key = try door.key().key
    try site.importDevices([1, 2, 9], #""topics":["news"]"#)
    let answer = try door.ask("POST", Self.place + "?wait=30", key, #"{"to":"/topics/news","data":{"n":"1"}}"#)
    #expect(answer.status == 200)
    let result = try object(answer)
    #expect(result["success"] as? Int == 2 && result["failure"] as? Int == 1)
    let id = try #require(result["message_id"] as? String)
    #expect(try site.take("results", count: 1).map { $0.json as NSDictionary } == [result])
    #expect(try state(door, key, id)["result"] as? NSDictionary == result)
    // One that came by the queue.
    try site.broadcast("b-1", to: ["to": "/topics/news"])
    #expect(try eventually { try door.ask("GET", Self.place + "/b-1", key).body.contains("done") })
    let late = try #require(try state(door, key, "b-1")["result"] as? NSDictionary)
    #expect(try site.take("results", count: 1).map { $0.json as NSDictionary } == [late])
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try door.ask("GET", Self.place + "/b-1", try door.key("send", ["--app", Site.app]).key).status == 200)
  }

  // MARK: many requests

  private func lines(
    _ door: Door, _ key: String, _ lines: [String], _ query: String = "", _ headers: [String: String] = [:]
  ) throws -> [[String: Any]] {
    let answer = try door.ask(
      "POST", Self.place + query, key, lines.joined(separator: "\n"),
      headers.merging(["Content-Type": "application/x-ndjson"]) { $1 })
    #expect(answer.status == 200 && answer.headers["content-type"] == "application/x-ndjson", "\(answer)")
    return Site.objects(answer.body)
  }

  @Test("many requests are answered line by line; a bad line doesn't stop the others, and no repetition sends twice")
  func many() throws {
    let site = try Site()
    let door = try open(site)
    let worker = try site.startWorker()
    let key = try door.key().key
    func request(_ number: Int, _ n: Int) -> String { #"{"to":"\#(token(number))","data":{"n":"\#(n)"}}"# }
    let body = [request(1, 1), "{", "", " \r", request(9, 2) + "\r", request(2, 3), request(2, 3), #"{"to":"x","ttl":1}"#, ""]

    let first = try lines(door, key, body, "?wait=30")
    #expect(first.map { $0["line"] as? Int } == [1, 2, 5, 6, 7, 8])
    #expect(first.map { $0["status"] as? Int } == [200, 400, 200, 200, 200, 400])
    #expect(first[0]["success"] as? Int == 1 && first[2]["failure"] as? Int == 1)
    #expect((first[1]["reason"] as? String)?.contains("byte 1") == true && first[1]["error"] as? String == "InvalidJSON")
    #expect((first[5]["reason"] as? String)?.contains("ttl") == true)
    // Two equal lines are one request, unless the call has an Idempotency-Key.
    #expect(first[3]["message_id"] as? String == first[4]["message_id"] as? String)
    #expect(try site.deliveries() == [token(1): 1, token(2): 1])
    let named = ["Idempotency-Key": "k"]
    let second = try lines(door, key, body, "?wait=30", named)
    #expect(second.map { $0["status"] as? Int } == [200, 400, 200, 200, 200, 400])
    #expect(Set(second.compactMap { $0["message_id"] as? String }).count == 4)
    #expect(try site.deliveries() == [token(1): 2, token(2): 3])
    // The repetition, in which one line is another request.
    var other = body
    other[0] = request(1, 7)
    let third = try lines(door, key, other, "?wait=30", named)
    #expect(third.map { $0["status"] as? Int } == [409, 400, 200, 200, 200, 400])
    #expect(Array(third.dropFirst()) as NSArray == Array(second.dropFirst()) as NSArray)
    #expect(try site.deliveries() == [token(1): 2, token(2): 3])
    for id in second.compactMap({ $0["message_id"] as? String }) {
      #expect(try state(door, key, id)["state"] as? String == "done")
    }

    // A thousand, and one more.
    let thousand = (0..<1_000).map { request(100 + $0, 8) }
    let many = try lines(door, key, thousand)
    #expect(many.count == 1_000 && many.allSatisfy { [200, 202].contains($0["status"] as? Int) })
    #expect(Set(many.compactMap { $0["message_id"] as? String }).count == 1_000)
    #expect(try eventually { try site.deliveries().count == 1_002 })
    for bad in [thousand + [request(1, 8)], [], ["", " "]] {
      let refused = try door.ask(
        "POST", Self.place, key, bad.joined(separator: "\n"), ["Content-Type": "application/x-ndjson"])
      #expect(refused.status == 400 && refused.body.contains("1000"), "\(refused)")
    }
    // Each line counts for the key's rate.
    let slow = try door.key("send", ["--rate", "10"]).key
    #expect(try lines(door, slow, Array(thousand.prefix(100))).count == 100)
    #expect(try door.ask("POST", Self.place, slow, request(1, 9)).status == 429)
    worker.signal(15)
    #expect(worker.wait() == 0)
    try site.drain()
    #expect(try site.deliveries()[token(1)] == 2)
  }

  @Test("while the broker accepts nothing, an answer says whether the request may have been accepted")
  func outages() throws {
    let broker = try Broker()
    let site = try Site(broker: broker)
    let door = try open(site, wait: 1)
    let key = try door.key().key
    let body = #"{"to":"\#(token(1))","data":{"n":"1"}}"#
    try broker.raiseMemoryAlarm()
    // The broker may have read the first one, until it says that it is blocked.
    var answers: [String] = []
    let isRefused = try eventually {
      let answer = try door.ask("POST", Self.place, key, body.replacing("1\"}", with: "\(answers.count + 5)\"}"))
      #expect(answer.status == 503 && answer.headers["retry-after"] != nil)
      answers.append(try object(answer)["error"] as? String ?? "")
      return answers.last == "Unavailable"
    }
    #expect(isRefused)
    #expect(answers.first == "Unknown" && Set(answers) == ["Unknown", "Unavailable"], "\(answers)")
    let many = try lines(door, key, [body, "{"])
    #expect(many.map { $0["status"] as? Int } == [503, 400])
    try broker.clearMemoryAlarm()
    #expect(eventually { door.probe.ask("/readyz")?.status == 200 })
    #expect(try door.ask("POST", Self.place, key, body).status == 202)
    broker.stop()
    #expect(eventually { door.probe.ask("/readyz")?.status == 503 })
    let refused = try door.ask("POST", Self.place, key, body.replacing("1\"}", with: "2\"}"))
    #expect(refused.status == 503 && refused.body.contains("Unavailable"))
    door.gateway.signal(15)
    #expect(door.gateway.wait() == 0)
  }
}
