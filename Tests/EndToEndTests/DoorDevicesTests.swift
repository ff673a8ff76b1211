import Foundation
import TestSupport
import Testing

/// The actions that devices may take with their secrets, and senders with unregistered tokens.
@Suite("Devices and raw tokens through the gateway", .blocking)
struct DoorDevicesTests {
  private struct Place {
    let site: Site
    let door: Door
    let worker: ChildProcess
    let key: String

    init(settings: String = "", door more: String = "", apps: String = "", environment: [String: String] = [:]) throws {
      site = try Site()
      let port = try FreePorts.take(1)[0]
      try site.startFleet(
        settings: #"\#(settings) receipts: true, gateway: { http: { listen: "127.0.0.1:\#(port)", wait: 30, \#(more) } },"#,
        apps: apps)
      door = try Door(site, port: port, environment: environment)
      worker = try site.startWorker()
      key = try door.key().key
    }

    func path(_ installation: String) -> String { "/v1/apps/\(Site.app)/installations/\(installation)" }

    /// Registers an iPhone by its backend; returns its secret.
    func put(_ installation: String, token number: Int, user: String) throws -> String {
      let body = #"{"platform":"apns","token":"\#(token(number))","user":"\#(user)","name":"x"}"#
      return try #require(try door.json("PUT", path(installation), key, body)["secret"] as? String)
    }

    func devices(_ words: String...) throws -> [[String: Any]] {
      Site.objects(try site.run(["devices"] + words + ["--config", site.file("pushfleet.json5"), "--json"]).output)
    }

    /// The tokens that a message has reached, in ascending order.
    func reached(_ target: String, _ key: String? = nil) throws -> [String] {
      let name = UUID().uuidString
      _ = try door.json("POST", "/fcm/send", key ?? self.key, #"{"to":"\#(target)","data":{"n":"\#(name)"}}"#)
      return try site.pushes().filter { $0.payload["n"] as? String == name }.map(\.token).sorted()
    }

    func stop() {
      worker.signal(15)
      #expect(worker.wait() == 0)
    }
  }

  @Test("a device can't register another device's token, with an installation or without one")
  func takeover() throws {
    let place = try Place()
    try place.site.importDevices([1], #""user":"alice""#)
    let mallory = try place.put("att", token: 9, user: "mallory")
    for spelling in [token(1), token(1).uppercased(), "apns:" + token(1)] {
      let answer = try place.door.ask("PUT", place.path("att"), mallory, #"{"platform":"apns","token":"\#(spelling)"}"#)
      #expect(answer.status == 409, "\(answer)")
    }
    _ = try place.door.json("DELETE", place.path("att"), mallory)
    #expect(try place.reached("/users/alice") == [token(1)])
    // Its backend may bind it to an installation, which then has its rights.
    _ = try place.put("alices", token: 1, user: "alice")
    place.stop()
  }

  @Test("a browser registers its subscription, which no other installation can take")
  func subscription() throws {
    let place = try Place()
    let (endpoint, auth) = ("https://push.example/a", "BTBZMqHH6r4Tts7J_aSIgg")
    func subscription(_ endpoint: String) -> String {
      let key = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
      let object = #"{"endpoint":"\#(endpoint)","expirationTime":null,"keys":{"p256dh":"\#(key)","auth":"\#(auth)"}}"#
      return #"{"platform":"webpush","subscription":\#(object)}"#
    }
    let made = try place.door.json("PUT", place.path("one"), place.key, subscription(endpoint))
    let secret = try #require(made["secret"] as? String)
    #expect(try place.door.json("PUT", place.path("one"), secret, subscription(endpoint))["registration"] != nil)
    let mallory = try place.put("att", token: 9, user: "mallory")
    #expect(try place.door.ask("PUT", place.path("att"), mallory, subscription(endpoint)).status == 409)
    let refused = try place.door.ask("PUT", place.path("one"), secret, subscription("http://push.example/a"))
    #expect(refused.status == 400 && refused.body.contains("subscription.endpoint: not an https address"), "\(refused)")

    _ = try place.door.json("PUT", place.path("one") + "/user", place.key, #"{"user":"anna","name":"Anna"}"#)
    _ = try place.door.json("PUT", place.path("one"), secret, subscription(endpoint + "/renewed"))
    let shown = try place.door.json("GET", place.path("one"), place.key)
    let registrations = try #require(shown["registrations"] as? [[String: Any]])
    #expect(registrations.map { $0["token"] as? String } == [endpoint + "/renewed"] && shown["user"] as? String == "anna")
    // An old sender may name the endpoint, but can't register it.
    func errors(_ object: [String: Any]) -> [String?]? { (object["results"] as? [[String: String]])?.map { $0["error"] } }
    let tokens = #"{"to":"/topics/news","registration_tokens":["\#(endpoint)/renewed","\#(endpoint)/unknown"]}"#
    #expect(errors(try place.door.json("POST", "/iid/v1:batchAdd", place.key, tokens)) == [nil, "NOT_FOUND"])
    place.stop()
  }

  @Test("a client that may not set a device's user can't change the user's groups either")
  func groups() throws {
    let place = try Place(environment: ["PUSHFLEET_GATEWAY_HTTP_DEVICEUSERS": "false"])
    let mallory = try place.put("one", token: 1, user: "mallory")
    let create = #"{"operation":"create","notification_key_name":"board","users":["anna"]}"#
    let board = try #require(try place.door.json("POST", "/fcm/notification", place.key, create)["notification_key"] as? String)
    for method in ["PUT", "DELETE"] {
      #expect(try place.door.ask(method, place.path("one") + "/groups/board", mallory).status == 403)
    }
    _ = try place.door.json("PUT", place.path("one") + "/groups/board", place.key)
    #expect(try place.reached(board) == [token(1)])
    place.stop()
  }

  @Test("a user may have any name, through the gateway, the broker, a file and in a target")
  func users() throws {
    let place = try Place()
    let names = ["김철수", "o'brien@example.com", "+82 10 1234 5678", "uid#1", "a/b", "100%", #"q"\t"#, "=1,2;3"]
    for (index, name) in names.enumerated() {
      let device: [String: Any] = ["platform": "apns", "token": token(index), "user": name]
      switch index % 3 {
      case 0:
        let body = String(decoding: try JSONSerialization.data(withJSONObject: device), as: UTF8.self)
        _ = try place.door.json("PUT", place.path("i\(index)"), place.key, body)
      case 1: _ = try place.site.change([device.merging(["app": Site.app]) { $1 }])
      default:
        let quoted = "\"" + name.replacing("\"", with: "\"\"") + "\""
        let file = try place.site.write("platform,token,user\napns,\(token(index)),\(quoted)\n", to: "users.csv")
        let imported = try place.site.run(["devices", "import", "--config", place.site.file("pushfleet.json5"), file])
        #expect(imported.status == 0, "\(imported)")
      }
      let escaped = try #require(name.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
      #expect(try place.reached("/users/" + escaped) == [token(index)], "\(name)")
      let shown = try place.devices("show", "--user", name)
      #expect(shown.map { $0["user"] as? String } == [name])
    }
    let request = String(
      decoding: try JSONSerialization.data(withJSONObject: ["to": "/users/김철수", "data": ["n": "as it is"]]), as: UTF8.self)
    _ = try place.door.json("POST", "/fcm/send", place.key, request)
    #expect(try place.site.pushes().last?.token == token(0))
    for name in ["a\u{0}", "a\nb", "a\u{85}"] {
      let device = String(
        decoding: try JSONSerialization.data(withJSONObject: ["platform": "apns", "token": token(99), "user": name]),
        as: UTF8.self)
      #expect(try place.door.ask("PUT", place.path("x"), place.key, device).status == 400)
    }
    place.stop()
  }

  @Test("an installation is shown with its badge; its tokens only to its backend")
  func read() throws {
    let place = try Place()
    let secret = try place.put("one", token: 1, user: "anna")
    _ = try place.door.json("PUT", place.path("one") + "/topics/news", secret)
    let voip = #"{"platform":"apns","token":"\#(token(2))","kind":"voip","environment":"sandbox"}"#
    _ = try place.door.json("PUT", place.path("one"), secret, voip)
    #expect(try place.door.json("GET", place.path("one"), secret)["badge"] as? Int == 0)
    #expect(try place.door.ask("PUT", place.path("one") + "/badge", secret, #"{"badge":7}"#).status == 202)
    #expect(try eventually { try place.door.json("GET", place.path("one"), secret)["badge"] as? Int == 7 })
    for (key, isBackend) in [(secret, false), (place.key, true)] {
      let seen = try place.door.json("GET", place.path("one"), key)
      #expect(seen["installation"] as? String == "one" && seen["user"] as? String == "anna" && seen["name"] as? String == "x")
      #expect(seen["topics"] as? [String] == ["news"])
      let registrations = try #require(seen["registrations"] as? [[String: Any]])
      #expect(Set(registrations.map { $0["kind"] as? String }) == ["alert", "voip"])
      #expect(registrations.allSatisfy { $0["platform"] as? String == "apns" && $0["state"] as? String == "active" })
      #expect(Set(registrations.compactMap { $0["token"] as? String }) == (isBackend ? [token(1), token(2)] : []))
    }
    #expect(try place.door.ask("GET", place.path("two"), secret).status == 401)
    #expect(try place.door.ask("GET", place.path("two"), place.key).status == 404)
    #expect(try place.door.ask("GET", place.path("one"), try place.door.key("ack").key).status == 403)
    // An acknowledgement for another user isn't noted.
    let acks = "/v1/apps/\(Site.app)/acks"
    let (others, own) = (#""cuid":"bob","badge":3"#, #""cuid":"anna","badge":4"#)
    for badge in [others, own] {
      let ack = #"{"op":"badge","token":"\#(token(1))",\#(badge)}"#
      #expect(try place.door.ask("POST", acks, place.key, ack).status == 202)
    }
    #expect(try eventually { try place.door.json("GET", place.path("one"), secret)["badge"] as? Int == 4 })
    place.stop()
  }

  @Test("a phone without a user registers its token, and a new one later")
  func serviceAlone() throws {
    let place = try Place(apps: "upmc: true,")
    func register(_ number: Int, _ key: String, _ more: String = "") throws -> HTTPProbe.Answer {
      try place.door.ask("PUT", place.path("one"), key, #"{"platform":"apns","token":"\#(token(number))"\#(more)}"#)
    }
    let first = try place.door.json(
      "PUT", place.path("one"), place.key, #"{"platform":"apns","token":"\#(token(1))","topics":["news"]}"#)
    let secret = try #require(first["secret"] as? String)
    #expect(try place.reached("/topics/news") == [token(1)])
    #expect(try register(2, secret).status == 200)
    #expect(try place.reached("/topics/news") == [token(2)])
    // A user needs a name, and a name needs a user.
    for half in [#","user":"anna""#, #","name":"Anna""#, #","user":"","name":"Anna""#] {
      #expect(try register(2, secret, half).status == 400, "\(half)")
    }
    // The present user stays.
    #expect(try register(2, secret, #","user":"anna","name":"Anna""#).status == 200)
    #expect(try register(3, secret).status == 200)
    #expect(try place.reached("/users/anna") == [token(3)])
    _ = try place.door.json("DELETE", place.path("one") + "/user", secret)
    #expect(try register(4, secret).status == 200)
    #expect(try place.reached("/all") == [token(4)])
    place.stop()
  }

  @Test("groups and topics accept unregistered tokens")
  func rawTokens() throws {
    let place = try Place()
    let (door, sender) = (place.door, try place.door.key("send").key)
    func errors(_ object: [String: Any]) -> [String?]? { (object["results"] as? [[String: String]])?.map { $0["error"] } }

    let many = #"{"to":"/topics/news","registration_tokens":["\#(token(1))","apns:\#(token(2))","x","b d","pf1r~0"]}"#
    // This application has no FCM; a registration is no token.
    let added = try door.json("POST", "/iid/v1:batchAdd", sender, many)
    #expect(errors(added) == [nil, nil, "NOT_FOUND", "INVALID_ARGUMENT", "INVALID_ARGUMENT"])
    _ = try door.json("POST", "/iid/v1/\(token(3))/rel/topics/news", sender, "")
    #expect(try door.ask("POST", "/iid/v1/x/rel/topics/news", sender, "").status == 404)
    let base = "/v1/projects/p/registrations/\(token(4))/topicSubscriptions"
    #expect(try door.json("POST", base + "?topic_name=news", sender, "{}")["topicName"] as? String == "news")
    let patched = base.replacing(token(4), with: token(5)) + "/news?allow_missing=true"
    #expect(try door.json("PATCH", patched, sender, "{}")["topicName"] as? String == "news")
    #expect(try place.reached("/topics/news") == (1...5).map(token))

    let create = #"{"operation":"create","notification_key_name":"g","registration_ids":["\#(token(1))","\#(token(6))"]}"#
    let group = try #require(try door.json("POST", "/gcm/notification", sender, create)["notification_key"] as? String)
    let add = #"{"operation":"add","notification_key":"\#(group)","registration_ids":["\#(token(7))"]}"#
    _ = try door.json("POST", "/fcm/notification", sender, add)
    #expect(try place.reached(group) == [1, 6, 7].map(token))
    // An unknown token can't be removed, and isn't registered for it.
    let removed = try door.json(
      "POST", "/iid/v1:batchRemove", place.key, #"{"to":"/topics/news","registration_tokens":["\#(token(8))"]}"#)
    #expect(errors(removed) == ["NOT_FOUND"])
    let remove = #"{"operation":"remove","notification_key":"\#(group)","registration_ids":["\#(token(9))"]}"#
    #expect(try door.ask("POST", "/fcm/notification", place.key, remove).status == 400)
    #expect(try place.reached("/all") == (1...7).map(token))
    // Only a registrar may read and import devices.
    #expect(try door.ask("GET", "/iid/info/\(token(1))", sender).status == 403)
    let imported = #"{"application":"\#(Site.app)","apns_tokens":["\#(token(8))"]}"#
    #expect(try door.ask("POST", "/iid/v1:batchImport", sender, imported).status == 403)
    #expect(try door.ask("POST", "/iid/v1:batchAdd", try door.key("ack").key, many).status == 403)
    place.stop()
  }

  @Test("without detection of repetitions the same ping three times is three pushes, and one with an idempotency key one")
  func pings() throws {
    let place = try Place(door: "retransmission: 0")
    let body = #"{"to":"\#(token(1))","data":{"n":"ping"}}"#
    var ids: Set<String> = []
    for _ in 0..<3 {
      let answer = try place.door.ask("POST", "/gcm/send", place.key, body)
      ids.insert(try #require(answer.headers["x-push-message-id"]))
    }
    #expect(try ids.count == 3 && place.site.deliveries() == [token(1): 3])
    for _ in 0..<2 { _ = try place.door.json("POST", "/gcm/send", place.key, body, ["Idempotency-Key": "k"]) }
    #expect(try place.site.deliveries() == [token(1): 4])
    place.stop()
  }

  @Test("unregistered raw tokens are not found if the setting forbids their registration")
  func rawTokensRefused() throws {
    let place = try Place(door: "registerUnknown: false")
    let body = #"{"to":"/topics/news","registration_tokens":["\#(token(1))"]}"#
    let added = try place.door.json("POST", "/iid/v1:batchAdd", place.key, body)
    #expect((added["results"] as? [[String: String]])?.map { $0["error"] } == ["NOT_FOUND"])
    let create = #"{"operation":"create","notification_key_name":"g","registration_ids":["\#(token(1))"]}"#
    #expect(
      try place.door.ask("POST", "/gcm/notification", place.key, create).body == #"{"error":"no valid registration ids"}"#)
    let subscribe = "/v1/projects/p/registrations/\(token(1))/topicSubscriptions?topic_name=a"
    #expect(try place.door.ask("POST", subscribe, place.key, "{}").status == 404)
    #expect(try place.door.ask("POST", "/iid/v1/\(token(1))/rel/topics/news", place.key, "").status == 404)
    place.stop()
  }
}
