import Foundation
import Synchronization
import TestSupport
import Testing

/// Devices and their messages through the gateway's HTTP door, by the rules of docs/internals/rules.md.
@Suite("Rules of users, devices and groups through the gateway", .blocking)
struct DoorRulesTests {
  private static let late = 4_000_000_000_000

  /// A site with a gateway and a worker, its key, and short forms for devices' requests.
  private struct Place {
    let site: Site
    let door: Door
    let worker: ChildProcess
    let key: String

    func put(_ installation: String, token number: Int, user: String = "anna", name: String = "Anna") throws {
      _ = try door.json(
        "PUT", path(installation), key,
        #"{"platform":"apns","token":"\#(token(number))","user":"\#(user)","name":"\#(name)"}"#)
    }

    func path(_ installation: String) -> String { "/v1/apps/\(Site.app)/installations/\(installation)" }

    /// The tokens that a message has reached, in ascending order.
    func reached(_ target: String, _ notification: String = #"{"title":"x"}"#, ext: String? = nil) throws -> [Push] {
      let name = UUID().uuidString
      let more = try ext.map { text in
        "," + String(decoding: try JSONSerialization.data(withJSONObject: ["ext": text]), as: UTF8.self).dropFirst().dropLast()
      }
      _ = try door.ask(
        "POST", "/fcm/send", key,
        #"{"to":"\#(target)","notification":\#(notification),"data":{"n":"\#(name)"\#(more ?? "")}}"#)
      return try site.pushes().filter { $0.payload["n"] as? String == name }.sorted { $0.token < $1.token }
    }

    func reads(_ installation: String, _ fields: String) throws {
      #expect(try door.ask("POST", path(installation) + "/acks", key, fields).status == 202)
      #expect(try eventually { try site.depths(["acks"]) == [0] })
    }

    func devices(_ words: String...) throws -> [[String: Any]] {
      Site.objects(try site.run(["devices"] + words + ["--config", site.file("pushfleet.json5"), "--json"]).output)
    }
  }

  private typealias Push = Site.Push

  private func open(_ site: Site, wait: Int = 30) throws -> Place {
    let port = try FreePorts.take(1)[0]
    try site.startFleet(
      script: [
        token(20): ["status": 410, "reason": "Unregistered", "timestamp": 1_732_137_600_000],
        token(21): ["status": 410, "reason": "Unregistered", "timestamp": Self.late],
      ],
      settings: Door.settings(port, wait: wait) + #"richPages: { url: "http://127.0.0.1:\#(port)", keep: "1h" },"#,
      apps: "upmc: true,")
    let door = try Door(site, port: port)
    return Place(site: site, door: door, worker: try site.startWorker(), key: try door.key().key)
  }

  @Test("UP-02: a user is bound to an installation whose token is changing at that moment")
  func userOfANewToken() throws {
    let site = try Site()
    let place = try open(site)
    try place.put("one", token: 1)
    place.worker.signal(15)
    #expect(place.worker.wait() == 0)
    let group = DispatchGroup()
    let statuses = Mutex<[Int?]>([])
    func say(_ path: String, _ body: String, waiting: Int) throws {
      DispatchQueue.global().async(group: group) { [port = place.door.port, key = place.key] in
        let headers = ["Authorization": "key=\(key)", "Content-Type": "application/json"]
        let answer = HTTPProbe(port: port).ask(path, method: "PUT", headers: headers, body: body, seconds: 60)
        statuses.withLock { $0.append(answer?.status) }
      }
      #expect(try eventually { try site.depths(["registry"]) == [waiting] })
    }
    let moved = #"{"platform":"apns","token":"\#(token(2))","user":"anna","name":"Anna"}"#
    try say(place.path("one"), moved, waiting: 1)
    try say(place.path("one") + "/user", #"{"user":"bob","name":"Bob"}"#, waiting: 2)
    _ = try site.startWorker()
    group.wait()
    #expect(statuses.withLock(\.self) == [200, 200])
    #expect(try place.reached("/users/bob").map(\.token) == [token(2)])
    #expect(try place.reached("/users/anna").isEmpty)
  }

  @Test("UP-02: a user whose binding no worker has applied in time gets 503, and is bound by a repetition")
  func userWithoutWorker() throws {
    let site = try Site()
    let place = try open(site, wait: 1)
    try place.put("one", token: 1)
    place.worker.signal(15)
    #expect(place.worker.wait() == 0)
    let body = #"{"user":"bob","name":"Bob"}"#
    let late = try place.door.ask("PUT", place.path("one") + "/user", place.key, body)
    #expect(late.status == 503 && late.headers["retry-after"] != nil, "\(late)")
    _ = try site.startWorker()
    #expect(try eventually { try place.door.ask("PUT", place.path("one") + "/user", place.key, body).status == 200 })
    #expect(try place.reached("/users/bob").map(\.token) == [token(1)])
    #expect(try place.reached("/users/anna").isEmpty)
  }

  @Test("hold for users, groups, badges, payloads, pages and tokens")
  func rules() throws {
    let site = try Site()
    let place = try open(site)
    try names(place)
    try groups(place)
    try subscriptions(place)
    try payloads(place)
    try pages(place)
    try tokens(place)
    for child in [place.door.gateway, place.worker] {
      child.signal(15)
      #expect(child.wait() == 0)
    }
    #expect(try site.depths(["dead"]) == [0])
  }

  /// UP-04.
  private func names(_ place: Place) throws {
    try place.put("one", token: 1)
    try place.put("two", token: 2)
    try place.put("one", token: 1, name: "Anna Maria")
    #expect(try place.devices("show", "--user", "anna").map { $0["name"] as? String } == ["Anna Maria", "Anna Maria"])
    _ = try place.door.json("PUT", place.path("two") + "/user", place.key, #"{"user":"anna","name":"A"}"#)
    #expect(try place.devices("show", "--installation", "one").first?["name"] as? String == "A")
  }

  /// UP-09, UP-10.
  private func groups(_ place: Place) throws {
    let settings = ["--config", place.site.file("pushfleet.json5")]
    let key = try place.site.run(["groups", "create"] + settings + ["--users", "7"]).output
      .trimmingCharacters(in: .whitespacesAndNewlines)
    for _ in 0..<2 { _ = try place.door.json("PUT", place.path("one") + "/groups/7", place.key) }
    let group = try #require(Site.objects(try place.site.run(["groups", "show"] + settings + ["--json", "7"]).output).first)
    #expect(group["users"] as? [String] == ["anna"])
    #expect(try place.reached(key).map(\.token) == [token(1), token(2)])
    // The device is bob's from now on, and anna is the member.
    _ = try place.door.json("PUT", place.path("one") + "/user", place.key, #"{"user":"bob","name":"Bob"}"#)
    #expect(try place.reached(key).map(\.token) == [token(2)])
    _ = try place.door.json("PUT", place.path("one") + "/groups/7", place.key)
    #expect(try place.reached(key).map(\.token) == [token(1), token(2)])
    _ = try place.door.json("DELETE", place.path("one") + "/groups/7", place.key)
    #expect(try place.reached(key).map(\.token) == [token(2)])
  }

  /// As Firebase's libraries join and leave topics, one device at a time.
  private func subscriptions(_ place: Place) throws {
    let base = "/v1/projects/p/registrations/\(token(1))/topicSubscriptions"
    func status(_ method: String, _ end: String) throws -> Int {
      try place.door.ask(method, base + end, place.key, "{}").status
    }
    let joined = try place.door.json("POST", base + "?topic_name=a%2Db%25", place.key, "{}")
    #expect(joined["name"] as? String == base.dropFirst(4) + "/a-b%" && joined["topicName"] as? String == "a-b%")
    #expect((joined["createTime"] as? String)?.hasSuffix("Z") == true)
    let again = try place.door.ask("POST", base + "?topic_name=a-b%25", place.key, "{}")
    #expect(again.status == 409 && again.body.contains(#""status":"ALREADY_EXISTS""#))
    #expect(try status("GET", "/a-b%25") == 200 && status("GET", "/other") == 404)
    #expect(try status("PATCH", "/other") == 404 && status("PATCH", "/other?allow_missing=true") == 200)
    #expect(try place.devices("show", "--installation", "one").first?["topics"] as? [String] == ["a-b%", "other"])
    let all = try place.door.json("GET", base, place.key)["topicSubscriptions"] as? [[String: Any]]
    #expect(all?.map { $0["topicName"] as? String } == ["a-b%", "other"])
    #expect(try place.reached("/topics/other").map(\.token) == [token(1)])
    #expect(try status("DELETE", "/a-b%25") == 200 && status("DELETE", "/a-b%25") == 404)
    #expect(try status("DELETE", "/a-b%25?allow_missing=true") == 200 && status("DELETE", "/other") == 200)
    #expect(try status("POST", "") == 400 && status("POST", "?topic_name=a%20b") == 400)
    let nobody = base.replacing(token(1), with: "x")
    #expect(try place.door.ask("POST", nobody + "?topic_name=a", place.key, "{}").status == 404)
    // A Firebase installation by its id alone.
    let installation = #"{"platform":"fcm","token":"fid:cXyZ0123456789_-AbCdEf","user":"fred","name":"Fred"}"#
    _ = try place.door.json("PUT", place.path("f"), place.key, installation)
    let firebase = base.replacing(token(1), with: "cXyZ0123456789_-AbCdEf")
    #expect(try place.door.json("POST", firebase + "?topic_name=f", place.key, "{}")["topicName"] as? String == "f")
  }

  /// UP-12, UP-19, UP-20.
  private func payloads(_ place: Place) throws {
    func badge(_ push: Push?) -> Int? { (push?.payload["aps"] as? [String: Any])?["badge"] as? Int }
    let counted = #"{"body":"b","badge":"auto"}"#
    #expect(try place.door.ask("PUT", place.path("one") + "/badge", place.key, #"{"badge":9}"#).status == 202)
    #expect(try eventually { try place.site.depths(["acks"]) == [0] })
    let tenth = try #require(try place.reached("/users/bob", counted).first)
    #expect(badge(tenth) == 10)
    let number = (tenth.payload["mps"] as? [String: String])?["seqno"] ?? ""
    try place.reads("one", #"{"op":"read","message_id":"never","badge_option":"reset"}"#)
    try place.reads("one", #"{"op":"read","seqno":\#(number),"badge_option":"reset","badge":10}"#)
    let first = try #require(try place.reached("/users/bob", counted).first)
    #expect(badge(first) == 1)
    let aps = try #require(first.payload["aps"] as? [String: Any])
    #expect(aps["mutable-content"] as? Int == 1 && aps["sound"] as? String == "default" && first.violations == [])
    let mps = try #require(first.payload["mps"] as? [String: String])
    #expect(mps["appid"] == Site.app && mps["db_in"] == "Y" && mps["pushkey"]?.count == 40 && mps["ext"] == nil)
    let own = try #require(try place.reached("/users/bob", #"{"body":"b","sound":"s.caf","badge":"4"}"#).first)
    #expect((own.payload["aps"] as? [String: Any])?["sound"] as? String == "s.caf" && badge(own) == 4)
  }

  /// UP-21.
  private func pages(_ place: Place) throws {
    func ext(_ push: Push?) -> String? { (push?.payload["mps"] as? [String: Any])?["ext"] as? String }
    let small = try #require(try place.reached(token(1), ext: "6|x|https://example.com").first)
    #expect(ext(small) == "6|x|https://example.com")
    let html = "<h1>\"é\"</h1>" + String(repeating: "<p>rich</p>\n", count: 2_000)
    // Each device of a request has the same page, and the same content has it again later.
    let pushes = try place.reached("/users/anna", ext: html) + place.reached(token(1), ext: html)
    #expect(pushes.count == 2 && Set(pushes.map { ext($0) ?? "" }).count == 1 && pushes.allSatisfy { $0.violations == [] })
    let address = try #require(ext(pushes.first))
    let base = "http://127.0.0.1:\(place.door.port)"
    #expect(address.hasPrefix(base + "/pages/") && address.count == base.count + 7 + 30)
    let path = String(address.dropFirst(base.count))
    let page = try place.door.ask("GET", path, nil)
    #expect(page.status == 200 && page.body == html && page.headers["content-type"] == "text/html; charset=utf-8")
    #expect(page.headers["content-security-policy"]?.hasPrefix("default-src 'none';") == true)
    #expect(page.headers["x-robots-tag"]?.hasPrefix("noindex") == true && page.headers["x-content-type-options"] == "nosniff")
    #expect(page.headers["referrer-policy"] == "no-referrer" && page.headers["cache-control"] == "private, no-store")
    let head = try place.door.ask("HEAD", path, nil)
    #expect(head.status == 200 && head.body == "" && head.headers["content-length"] == "\(html.utf8.count)")
    let missing = try ["/pages/x", "/pages/" + String(repeating: "A", count: 30), "/pages/%20", path.lowercased() + "%20"].map {
      try place.door.ask("GET", $0, nil)
    }
    #expect(missing.allSatisfy { $0.status == 404 && $0.body == missing[0].body })
    #expect(missing.allSatisfy { $0.headers["x-robots-tag"] == page.headers["x-robots-tag"] })
    let posted = try place.door.ask("POST", path, place.key, "x")
    #expect(posted.status == 405 && posted.headers["allow"] == "GET, HEAD")
    // Other content is another page.
    let other = try #require(ext(try place.reached(token(1), ext: String(repeating: "& ", count: 3_000)).first))
    #expect(other != address)
    #expect(try place.door.ask("GET", String(other.dropFirst(base.count)), nil).body.contains("<pre>&amp; &amp; "))
    // Content that no page may have is refused at once, and nothing is sent.
    let large = try place.door.ask(
      "POST", "/fcm/send", place.key, #"{"to":"\#(token(1))","data":{"ext":"\#(String(repeating: "x", count: 65_537))"}}"#)
    #expect(large.status == 200 && large.body.contains("MessageTooBig"))
    let explained = try place.site.write(
      #"{"to":"\#(token(1))","notification":{"body":"b"},"data":{"ext":"\#(String(repeating: "x", count: 9_000))"}}"#,
      to: "explained.json")
    let views = Site.objects(
      try place.site.run(["explain", explained, "--config", place.site.file("pushfleet.json5"), "--json"]).output)
    #expect("\(views)".contains(base + "/pages/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx") && "\(views)".contains("UP-21"))
  }

  /// UP-22, UP-23.
  private func tokens(_ place: Place) throws {
    try place.put("late", token: 20, user: "carl", name: "Carl")
    try place.put("gone", token: 21, user: "dora", name: "Dora")
    func state(_ installation: String) throws -> String? {
      try place.devices("show", "--installation", installation).first?["state"] as? String
    }
    for user in ["carl", "dora"] { #expect(try place.reached("/users/\(user)").map(\.status) == [410]) }
    #expect(try eventually { try state("gone") == "gone" })
    #expect(try state("late") == "active")
    #expect(try place.reached("/users/dora").isEmpty && place.reached("/users/carl").count == 1)
    // Another installation's token leaves the first registered, and has its own counter.
    try place.put("old", token: 30, user: "emil", name: "Emil")
    let counted = #"{"body":"b","badge":"auto"}"#
    func badges() throws -> [String: Int?] {
      Dictionary(
        uniqueKeysWithValues: try place.reached("/users/emil", counted).map {
          ($0.token, ($0.payload["aps"] as? [String: Any])?["badge"] as? Int)
        })
    }
    #expect(try badges() == [token(30): 1])
    try place.put("new", token: 31, user: "emil", name: "Emil")
    #expect(try badges() == [token(30): 2, token(31): 1])
    _ = try place.door.json("DELETE", place.path("old"), place.key)
    // The same installation's token replaces it, and continues with its counter.
    try place.put("new", token: 32, user: "emil", name: "Emil")
    #expect(try badges() == [token(32): 2])
  }
}
