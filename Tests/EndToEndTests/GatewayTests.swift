import Foundation
import TestSupport
import Testing

@Suite("The gateway's HTTP door", .blocking)
struct GatewayTests {
  @Test("old senders send through it, groups and topics are kept, and every request has its answer")
  func senders() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    let gone = token(9)
    try site.startFleet(
      script: [gone: ["status": 410, "reason": "Unregistered", "timestamp": 1_732_137_600_000]], settings: Door.settings(port))
    let door = try Door(site, port: port)
    let worker = try site.startWorker()
    let (id, key) = try door.key()

    // JSON: one target, many, a dry run; then a form.
    let one = try door.json("POST", "/gcm/send", key, #"{"to":"\#(token(1))","data":{"n":"1"}}"#)
    #expect(one["success"] as? Int == 1 && one["canonical_ids"] as? Int == 0 && (one["multicast_id"] as? Int ?? 0) > 0)
    #expect(((one["results"] as? [[String: Any]])?.first?["message_id"] as? String)?.isEmpty == false)
    let many = try door.json(
      "POST", "/fcm/send", key, #"{"registration_ids":["\#(token(1))","\#(gone)","b d"],"data":{"n":"2"}}"#)
    #expect(many["success"] as? Int == 1 && many["failure"] as? Int == 2)
    #expect(
      (many["results"] as? [[String: String]])?.dropFirst().map { $0["error"] } == ["NotRegistered", "InvalidRegistration"])
    let form = try door.ask(
      "POST", "/gcm/send", key, "registration_id=\(token(2))&data.n=3", ["Content-Type": "application/x-www-form-urlencoded"])
    let large = #"{"to":"/topics/news","data":{"n":"\#(String(repeating: "x", count: 5_000))"}}"#
    #expect(try door.ask("POST", "/fcm/send", key, large).body == #"{"error":"MessageTooBig"}"#)
    let nobody = try door.json("POST", "/fcm/send", key, #"{"to":""}"#)
    #expect((nobody["results"] as? [[String: String]])?.map { $0["error"] } == ["MissingRegistration"])
    #expect(form.status == 200 && form.body.hasPrefix("id=") && form.body.filter { $0 == "=" }.count == 1)

    // A repetition is the same request: the same answer, and one push. With the same idempotency key another body is refused.
    #expect(
      try door.json("POST", "/gcm/send", key, #"{"to":"\#(token(1))","data":{"n":"1"}}"#)["multicast_id"] as? Int == one[
        "multicast_id"] as? Int)
    for _ in 0..<2 {
      _ = try door.json("POST", "/fcm/send", key, #"{"to":"\#(token(3))","data":{"n":"4"}}"#, ["Idempotency-Key": "x"])
    }
    let reused = try door.ask("POST", "/fcm/send", key, #"{"to":"\#(token(3))","data":{"n":"5"}}"#, ["Idempotency-Key": "x"])
    #expect(reused.status == 422)
    #expect(try site.deliveries() == [token(1): 2, token(2): 1, token(3): 1])

    // FCM v1.
    let v1 = try door.json(
      "POST", "/v1/projects/p/messages:send", key, #"{"message":{"token":"\#(token(4))","notification":{"title":"x"}}}"#)
    #expect((v1["name"] as? String)?.hasPrefix("projects/p/messages/") == true)
    let dead = try door.ask("POST", "/v1/projects/p/messages:send", key, #"{"message":{"token":"\#(gone)"}}"#)
    #expect(dead.status == 404 && dead.body.contains(#""errorCode":"UNREGISTERED""#))

    // Devices by tokens: topics, groups, their details.
    let imported = try door.json(
      "POST", "/iid/v1:batchImport", key, #"{"application":"\#(Site.app)","sandbox":false,"apns_tokens":["\#(token(5))","zz"]}"#
    )
    let wrong = #"{"application":"\#(Site.app)","sandbox":"true","apns_tokens":["\#(token(5))"]}"#
    #expect(try door.ask("POST", "/iid/v1:batchImport", key, wrong).status == 400)
    let null = wrong.replacing(#""true""#, with: "null")
    #expect(try door.ask("POST", "/iid/v1:batchImport", key, null).status == 200)
    let items = try #require(imported["results"] as? [[String: String]])
    #expect(items.map { $0["status"] } == ["OK", "Internal Server Error"])
    let registration = try #require(items.first?["registration_token"])
    let added = try door.json(
      "POST", "/iid/v1:batchAdd", key, #"{"to":"/topics/news","registration_tokens":["\#(registration)","x"]}"#)
    #expect((added["results"] as? [[String: String]])?.map { $0["error"] } == [nil, "NOT_FOUND"])
    _ = try door.json("POST", "/iid/v1/\(registration)/rel/topics/sport", key, "")
    let info = try door.json("GET", "/iid/info/\(registration)?details=true", key)
    #expect(
      info["platform"] as? String == "IOS" && info["scope"] as? String == "*" && info["application"] as? String == Site.app)
    #expect(((info["rel"] as? [String: Any])?["topics"] as? [String: Any])?.keys.sorted() == ["news", "sport"])
    #expect(try door.ask("GET", "/iid/info/\(token(77))", key).status == 404)
    let create = #"{"operation":"create","notification_key_name":"g","registration_ids":["\#(registration)"]}"#
    let group = try #require(try door.json("POST", "/fcm/notification", key, create)["notification_key"] as? String)
    #expect(try door.ask("POST", "/fcm/notification", key, create).body == #"{"error":"notification_key already exists"}"#)
    #expect(try door.json("GET", "/gcm/notification?notification_key_name=g", key)["notification_key"] as? String == group)
    let toGroup = try door.json("POST", "/fcm/send", key, #"{"to":"\#(group)","data":{"a":"b"}}"#)
    #expect(toGroup["success"] as? Int == 1 && toGroup["failure"] as? Int == 0)
    #expect(try door.json("POST", "/fcm/send", key, #"{"to":"/topics/news","data":{"a":"b"}}"#)["message_id"] as? Int ?? 0 > 0)

    // Keys: another right, a revoked one, none.
    let other = try door.key("ack").key
    #expect(try door.ask("POST", "/fcm/send", other, "{}").status == 401)
    #expect(try door.ask("GET", "/iid/info/x", other).status == 403)
    let began = ContinuousClock.now
    #expect(try door.ask("POST", "/fcm/send", nil, "{}").body.contains("Unauthorized"))
    #expect(ContinuousClock.now - began > .milliseconds(900))
    let listed = Site.objects(try site.run(["keys", "list", "--config", site.file("pushfleet.json5"), "--json"]).output)
    #expect(listed.first?["used_at"] is String && !listed.description.contains(key))
    #expect(try site.run(["keys", "revoke", id, "--config", site.file("pushfleet.json5")]).status == 0)
    #expect(try eventually { try door.ask("POST", "/fcm/send", key, "{}").status == 401 })

    for child in [door.gateway, worker] {
      child.signal(15)
      #expect(child.wait() == 0)
    }
    let last = try #require(Site.objects(door.gateway.outputSoFar).last { $0["message"] as? String == "gateway ended" })
    for total in ["requests", "confirmed"] { #expect((last[total] as? Int ?? 0) > 5, "\(last)") }
    #expect(last["unconfirmed"] as? Int == 0)
    #expect(!door.gateway.outputSoFar.contains(key) && !door.gateway.outputSoFar.contains(token(1)))
  }

  @Test("devices register and report users and reads, each with its own secret")
  func devices() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port), apps: "upmc: true,")
    let door = try Door(site, port: port)
    let worker = try site.startWorker()
    let key = try door.key().key
    let place = "/v1/apps/\(Site.app)/installations/one"
    let device = #"{"platform":"apns","token":"\#(token(1))","user":"anna","name":"Anna"}"#

    // UP-01, UP-03: registered twice it is one device; without its user, name or token none.
    let first = try door.json("PUT", place, key, device)
    let secret = try #require(first["secret"] as? String)
    let again = try door.json("PUT", place, secret, device)
    #expect(again["registration"] as? String == first["registration"] as? String && again["secret"] == nil)
    for missing in [#""user":"anna","#, #","name":"Anna""#, #""token":"\#(token(1))","#] {
      #expect(try door.ask("PUT", place + "x", key, device.replacing(missing, with: "")).status == 400)
    }
    #expect(try door.ask("PUT", place + "x", key, device.replacing("anna", with: "")).status == 400)

    // An error names the place in the request. A device can't take another's token with its own secret; its backend can.
    let unknown = try door.ask("PUT", place, key, #"{"platform":"apns","tokne":"x"}"#)
    #expect(unknown.status == 400 && unknown.body.contains("at byte 19"), "\(unknown)")
    let other = try #require(
      try door.json("PUT", place + "y", key, device.replacing(token(1), with: token(9)))["secret"] as? String)
    for same in [token(1), token(1).uppercased(), "apns:" + token(1)] {
      let taken = try door.ask("PUT", place + "y", other, device.replacing(token(1), with: same))
      #expect(taken.status == 409, "\(taken)")
    }
    _ = try door.json("PUT", place + "y", other, device.replacing(token(1), with: token(8)).replacing("anna", with: "mal"))

    // UP-02, UP-05: another user, no user.
    /// The number of pushes of a message at the time of its answer.
    func reached(_ target: String) throws -> Int {
      let before = try site.pushes().count
      _ = try door.json(
        "POST", "/fcm/send", key, #"{"to":"\#(target)","notification":{"title":"x"},"data":{"n":"\#(UUID().uuidString)"}}"#)
      return try site.pushes().count - before
    }
    #expect(try reached("/users/anna") == 1)
    _ = try door.json("PUT", place + "/user", secret, #"{"user":"bob","name":"Bob"}"#)
    #expect(try reached("/users/anna") == 0)
    #expect(try reached("/users/bob") == 1)
    _ = try door.json("DELETE", place + "/user", secret)
    #expect(try reached("/users/bob") == 0)
    #expect(try reached(token(1)) == 1)

    // UP-07, UP-08: no group of that name, no user.
    #expect(try door.ask("PUT", place + "/groups/nobody", secret).status == 404)
    let group = #"{"operation":"create","notification_key_name":"7","users":["carl"]}"#
    #expect(try door.json("POST", "/fcm/notification", key, group)["notification_key"] is String)
    #expect(try door.ask("PUT", place + "/groups/7", secret).status == 409)
    _ = try door.json("PUT", place + "/user", secret, #"{"user":"anna","name":"Anna"}"#)
    for _ in 0..<2 { _ = try door.json("PUT", place + "/groups/7", secret) }
    _ = try door.json("DELETE", place + "/groups/7", secret)
    for _ in 0..<2 { _ = try door.json("PUT", place + "/topics/news", secret) }
    _ = try door.json("DELETE", place + "/topics/news", secret)

    // UP-11 to UP-18: reading a message decrements the badge once, even if repeated.
    #expect(try door.ask("PUT", place + "/badge", secret, #"{"badge":5}"#).status == 202)
    for badge in ["0", "1001", "-1", "2.5", #""abc""#] {
      #expect(try door.ask("PUT", place + "/badge", secret, #"{"badge":\#(badge)}"#).status == 400)
    }
    let pushes = try site.pushes().suffix(2).map {
      String(decoding: try JSONSerialization.data(withJSONObject: $0.payload), as: UTF8.self)
    }
    let messages = pushes.map { #""notification":\#($0)"# }
    for message in [#""message_id":"never""#, messages[0], messages[0], messages[1]] {
      #expect(try door.ask("POST", place + "/acks", secret, #"{"op":"read",\#(message)}"#).status == 202)
    }
    #expect(try eventually { try site.depths(["receipts"]) == [2] })
    #expect(try site.take("receipts").compactMap { $0.json["badge"] as? Int }.sorted() == [3, 4])

    // Its secret is only for itself.
    #expect(try door.ask("PUT", "/v1/apps/\(Site.app)/installations/two/badge", secret, #"{"badge":5}"#).status == 401)
    #expect(try door.ask("POST", "/v1/apps/\(Site.app)/acks", secret, #"{"op":"badge","badge":1}"#).status == 401)
    #expect(try door.ask("POST", place + "/acks", secret, #"{"op":"badge","badge":1,"installation":"two"}"#).status == 400)
    #expect(try door.ask("POST", "/fcm/send", secret, "{}").status == 401)
    let fresh = try #require(try door.json("POST", place + "/secret", key, "")["secret"] as? String)
    #expect(try door.ask("DELETE", place, secret).status == 401)
    // UP-06: gone, and gone again.
    for _ in 0..<2 { _ = try door.json("DELETE", place, fresh) }
    #expect(try reached("/users/anna") == 0)
    // It registers itself again. A device that its backend removes has no rights, and gets another secret with its next
    // registration.
    _ = try door.json("PUT", place, fresh, device)
    _ = try door.json("DELETE", place, key)
    #expect(try door.ask("PUT", place, fresh, device).status == 401)
    #expect(try door.ask("POST", place + "/secret", key, "").status == 404)
    let last = try #require(try door.json("PUT", place, key, device)["secret"] as? String)
    #expect(last != fresh)
    #expect(try reached("/users/anna") == 1)
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("a backend names the users of devices that may not do it")
  func backendsUsers() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port), apps: "upmc: true,")
    let door = try Door(site, port: port, environment: ["PUSHFLEET_GATEWAY_HTTP_DEVICEUSERS": "false"])
    let worker = try site.startWorker()
    let key = try door.key().key
    let place = "/v1/apps/\(Site.app)/installations/one"
    let device = #"{"platform":"apns","token":"\#(token(1))""#
    let user = #""user":"anna","name":"Anna"}"#
    let secret = try #require(try door.json("PUT", place, key, device + "," + user)["secret"] as? String)
    #expect(try door.ask("PUT", place, secret, device + "," + user).status == 403)
    #expect(try door.ask("PUT", place + "/user", secret, "{" + user).status == 403)
    #expect(try door.ask("DELETE", place + "/user", secret).status == 403)
    _ = try door.json("PUT", place, secret, device + "}")
    _ = try door.json("PUT", place + "/user", key, "{" + user)
    let shown = try site.run(["devices", "show", "--installation", "one", "--config", site.file("pushfleet.json5"), "--json"])
    #expect(Site.objects(shown.output).first?["user"] as? String == "anna")
    worker.signal(15)
    #expect(worker.wait() == 0)
  }

  @Test("without a worker a request is accepted under the id of its outcome; without a broker it is refused for now")
  func outages() throws {
    let broker = try Broker()
    let site = try Site(broker: broker)
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port, wait: 1))
    let door = try Door(site, port: port)
    let key = try door.key().key
    // The gateway has every path of the description, for its methods and no others.
    let places = Dictionary(grouping: try DoorDescription.shared.get().operations, by: \.path)
    for (place, operations) in places {
      let answer = try #require(door.probe.ask(place.replacing(/\{\w+\}/, with: "x"), method: "OPTIONS"))
      let allowed = Set(answer.headers["allow"]?.components(separatedBy: ", ") ?? []).subtracting(["HEAD"])
      #expect(answer.status == 405 && allowed == Set(operations.map(\.method)), "\(place)")
    }
    #expect(door.probe.ask("/fcm", method: "POST")?.status == 404)
    let accepted = try door.json("POST", "/fcm/send", key, #"{"to":"\#(token(1))","data":{"n":"1"}}"#)
    let id = (accepted["results"] as? [[String: String]])?.first?["message_id"]
    #expect(try site.take("send.normal").map(\.id) == [id])
    _ = try door.json("POST", "/fcm/send", key, #"{"to":"\#(token(1))","priority":"high","data":{"n":"2"}}"#)
    #expect(try site.depths(["send.high"]) == [1])
    // A change of devices isn't reported as done before it is.
    let changes = [
      ("/iid/v1:batchImport", #"{"application":"\#(Site.app)","apns_tokens":["\#(token(5))","\#(token(6))"]}"#),
      ("/iid/v1:batchAdd", #"{"to":"/topics/a","registration_tokens":["\#(token(5))"]}"#),
      (
        "/fcm/notification", #"{"operation":"create","notification_key_name":"g","registration_ids":["\#(token(5))"]}"#
      ),
    ]
    func postponed() throws {
      for (path, body) in changes {
        let answer = try door.ask("POST", path, key, body)
        #expect(answer.status == 503 && answer.headers["retry-after"] != nil, "\(path): \(answer.status) \(answer.body)")
      }
    }
    try postponed()
    // An alarm: waiting requests are answered after a moment, new ones at once; when it is over everything works.
    try broker.raiseMemoryAlarm()
    var slowest = Duration.zero
    let isRefused = try eventually {
      let began = ContinuousClock.now
      let body = #"{"to":"\#(token(1))","data":{"n":"\#(UUID().uuidString)"}}"#
      let answer = try door.ask("POST", "/fcm/send", key, body)
      slowest = max(slowest, began.duration(to: .now))
      return answer.status == 503
    }
    #expect(isRefused && slowest < .seconds(12))
    try broker.clearMemoryAlarm()
    #expect(eventually { door.probe.ask("/readyz")?.status == 200 })
    _ = try door.json("POST", "/fcm/send", key, #"{"to":"\#(token(1))","data":{"n":"4"}}"#)
    broker.stop()
    try postponed()
    let refused = try door.ask("POST", "/fcm/send", key, #"{"to":"\#(token(1))","data":{"n":"3"}}"#)
    #expect(refused.status == 503 && refused.headers["retry-after"].flatMap(Int.init) != nil)
    #expect(door.probe.ask("/readyz")?.status == 503 && door.probe.ask("/livez")?.status == 200)
    door.gateway.signal(15)
    #expect(door.gateway.wait() == 0)
  }
}
