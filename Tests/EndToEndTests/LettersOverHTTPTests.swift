import Foundation
import TestSupport
import Testing

@Suite("Dead letters and held requests over HTTP", .blocking)
struct LettersOverHTTPTests {
  private static let other = "com.example.other"

  /// A fleet with two applications and a gateway.
  private struct Place {
    let site: Site
    let door: Door
    let config: [String]
    let operate: String
    let view: String
    /// For the second application.
    let one: String

    init() throws {
      site = try Site()
      try site.startSimulator()
      let port = try FreePorts.take(1)[0]
      try site.write(
        """
        {
          broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", \(Door.settings(port))
          apps: {
            "\(Site.app)": { apns: \(site.apns()) },
            "\(other)": { apns: \(site.apns(topic: other)) },
          },
        }
        """, to: "pushfleet.json5")
      try site.declareTopology()
      try site.drain()
      config = ["--config", site.file("pushfleet.json5")]
      door = try Door(site, port: port)
      let both = ["--app", "\(Site.app),\(other)"]
      operate = try door.key("operate", both).key
      view = try door.key("view", both).key
      one = try door.key("operate", ["--app", other]).key
    }

    /// Requests without a target, which become dead letters.
    func makeLetters() throws {
      try site.publish((0..<30).map { ([:], ["app_id": Site.app, "message_id": "a\($0)"]) })
      try site.publish((0..<5).map { ([:], ["app_id": other, "message_id": "b\($0)"]) })
      try site.drain()
    }

    /// Posts an operation and waits for the end of its job.
    func perform(_ path: String, _ key: String, _ body: String, until states: Set<String> = ["done", "failed", "stopped"])
      throws -> [String: Any]
    {
      let answer = try door.ask("POST", path, key, body)
      #expect(answer.status == 202, "\(path): \(answer.body)")
      let number = try #require(Site.objects(answer.body).first?["job"] as? Int)
      var job: [String: Any] = [:]
      #expect(
        try eventually {
          job = try door.json("GET", "/v1/fleet/jobs/\(number)", key)
          return states.contains(job["state"] as? String ?? "")
        }, "\(job)")
      return job
    }

    /// Without the creation of keys.
    func audit() throws -> [[String: Any]] {
      Site.objects(try site.run(["audit", "--json"] + config).output).filter { $0["action"] as? String != "key create" }
    }
  }

  @Test("dead letters are shown, replayed and dropped by a filter, within the rights of the key")
  func dead() throws {
    let place = try Place()
    let (site, door) = (place.site, place.door)
    try place.makeLetters()
    let seen = try door.json("GET", "/v1/fleet/dead?app=\(Site.app)&limit=2", place.view)
    #expect(seen["matched"] as? Int == 30 && seen["seen"] as? Int == 35 && seen["ready"] as? Int == 35)
    // Foundation's reader accepts a comma before a closing brace.
    #expect(try !door.ask("GET", "/v1/fleet/dead", place.view).body.contains(/,\s*[}\]]/))
    let letters = try #require(seen["letters"] as? [[String: Any]])
    #expect(letters.map { $0["message_id"] as? String } == ["a0", "a1"] && letters[0]["body"] == nil)
    let groups = try #require(seen["groups"] as? [[String: Any]])
    #expect(groups.count == 1 && groups[0]["count"] as? Int == 30 && groups[0]["origin"] as? String == "send.normal")
    let whole = try door.json("GET", "/v1/fleet/dead?id=b3&content=true", place.operate)
    #expect((whole["letters"] as? [[String: Any]])?.first?["body"] as? String == "{}")
    for (method, path, key, body, status) in [
      ("GET", "/v1/fleet/dead?content=true", place.view, nil, 403), ("GET", "/v1/fleet/dead", place.one, nil, 403),
      ("GET", "/v1/fleet/dead?app=\(Site.app)", place.one, nil, 403), ("GET", "/v1/fleet/dead?limit=x", place.view, nil, 400),
      ("GET", "/v1/fleet/dead?since=now", place.view, nil, 400), ("POST", "/v1/fleet/dead/drop", place.view, "{}", 403),
      ("POST", "/v1/fleet/dead/drop", place.one, #"{"filter":{}}"#, 403),
      ("POST", "/v1/fleet/dead/drop", place.operate, #"{"filter":{},"rate":1}"#, 400),
      ("POST", "/v1/fleet/dead/drop", place.operate, nil, 400), ("POST", "/v1/fleet/dead/drop", place.operate, "{}", 400),
      ("POST", "/v1/fleet/dead/replay", place.operate, #"{"filter":{"eror":"x"}}"#, 400),
      ("POST", "/v1/fleet/dead/replay", place.operate, #"{"filter":{"ids":[]}}"#, 400),
      ("POST", "/v1/fleet/dead/drop", place.operate, #"{"filter":{"app":null}}"#, 400),
      ("POST", "/v1/fleet/dead/drop", place.operate, #"{"filter":{"ids":null}}"#, 400),
      ("POST", "/v1/fleet/dead/drop", place.operate, #"{"filter":null}"#, 400),
      ("GET", "/v1/fleet/dead?app=-", place.one, nil, 403),
      ("GET", "/v1/fleet/dead?app=-", place.view, nil, 200), ("GET", "/v1/fleet/dead?app=removed", place.view, nil, 200),
      ("POST", "/v1/fleet/dead/replay", place.operate, #"{"filter":{},"rate":0}"#, 400),
      ("GET", "/v1/fleet/jobs/9", place.view, nil, 404),
    ] as [(String, String, String, String?, Int)] {
      let answer = try door.ask(method, path, key, body)
      #expect(answer.status == status, "\(method) \(path) \(body ?? ""): \(answer.status) \(answer.body)")
    }

    let replay = try place.perform(
      "/v1/fleet/dead/replay", place.operate, #"{"filter":{"app":"\#(Site.app)","limit":10},"rate":200,"reason":"fixed"}"#)
    #expect(replay["state"] as? String == "done" && replay["messages"] as? Int == 10, "\(replay)")
    #expect(try site.depths(["dead", "send.normal"]) == [25, 10])
    let drop = try place.perform("/v1/fleet/dead/drop", place.one, #"{"filter":{"app":"\#(Self.other)","ids":["b1","b2"]}}"#)
    #expect(drop["messages"] as? Int == 2 && drop["app"] as? String == Self.other)
    #expect(try site.depths(["dead"]) == [23])
    #expect(try eventually { try place.audit().count == 4 })
    let events = try place.audit().reversed()
    #expect(
      events.compactMap { $0["action"] as? String } == ["dead replay begun", "dead replay", "dead drop begun", "dead drop"])
    let event = try #require(events.dropFirst().first)
    #expect(
      event["reason"] as? String == "fixed"
        && event["origin"] as? String == "127.0.0.1")
    let after = try #require(event["after"] as? [String: Any])
    #expect(after["messages"] as? Int == 10 && (after["filter"] as? [String: Any])?["limit"] as? String == "10")
    #expect((after["filter"] as? [String: Any])?["rate"] as? String == "200/s")
    let gone = try place.perform("/v1/fleet/dead/drop", place.operate, #"{"filter":{"app":"removed"}}"#)
    #expect(gone["state"] as? String == "done" && gone["messages"] as? Int == 0)
    #expect((try door.json("GET", "/v1/fleet/jobs", place.one)["jobs"] as? [Any])?.count == 1)
    #expect((try door.json("GET", "/v1/fleet/jobs", place.view)["jobs"] as? [Any])?.count == 3)
  }

  @Test("a replay is stopped: what is left stays in the queue, and what waits behind it begins")
  func stop() throws {
    let place = try Place()
    let (site, door) = (place.site, place.door)
    try place.makeLetters()
    let slow =
      try door.json("POST", "/v1/fleet/dead/replay", place.operate, #"{"filter":{},"rate":2}"#, status: 202)["job"] as? Int ?? 0
    let next =
      try door.json(
        "POST", "/v1/fleet/dead/drop", place.operate, #"{"filter":{"app":"\#(Self.other)"}}"#, status: 202)["job"] as? Int ?? 0
    #expect(try eventually { try site.depths(["send.normal"])[0] > 0 })
    #expect(try door.json("GET", "/v1/fleet/jobs/\(next)", place.view)["state"] as? String == "waiting")
    #expect(try door.ask("POST", "/v1/fleet/jobs/\(slow)/stop", place.view, "{}").status == 403)
    let look = try door.ask("GET", "/v1/fleet/dead", place.view)
    #expect(look.status == 503 && look.body.contains("job \(slow) works on these messages"), "\(look.body)")
    #expect(try door.json("GET", "/v1/fleet/apps/\(Site.app)/held", place.operate)["matched"] as? Int == 0, "another queue")
    _ = try door.json("POST", "/v1/fleet/jobs/\(slow)/stop", place.operate, "{}")
    #expect(try eventually { try door.json("GET", "/v1/fleet/jobs/\(next)", place.view)["state"] as? String == "done" })
    let ended = try door.json("GET", "/v1/fleet/jobs/\(slow)", place.view)
    let sent = ended["messages"] as? Int ?? 0
    #expect(ended["state"] as? String == "stopped" && sent > 0 && sent < 30, "\(ended)")
    #expect(try site.depths(["dead", "send.normal"]) == [30 - sent, sent])
    let stops = try place.audit().filter { $0["action"] as? String == "dead replay stopped" }
    #expect(stops.map { ($0["after"] as? [String: Any])?["messages"] as? Int } == [sent])
    #expect(try door.ask("POST", "/v1/fleet/jobs/\(slow)/stop", place.operate, "{}").status == 409)
  }

  @Test("a job that another operator stops stays that of the first; the audit has the other one and the other reason")
  func stoppedByAnother() throws {
    let place = try Place()
    try place.makeLetters()
    let body = #"{"filter":{},"rate":2,"reason":"fixed"}"#
    let answer = try place.door.json("POST", "/v1/fleet/dead/replay", place.operate, body, status: 202)
    let job = "/v1/fleet/jobs/\(answer["job"] as? Int ?? 0)"
    #expect(try eventually { try place.site.depths(["send.normal"])[0] > 0 })
    let other = try place.door.key("operate", ["--app", "\(Site.app),\(Self.other)"])
    #expect(try place.door.ask("POST", job + "/stop", other.key, #"{"reason":5}"#).status == 400)
    _ = try place.door.json("POST", job + "/stop", other.key, #"{"reason":"wrong letters"}"#)
    #expect(try eventually { try place.audit().contains { $0["action"] as? String == "dead replay stopped" } })
    let events = try place.audit().prefix(2)
    #expect(events.compactMap { $0["reason"] as? String } == ["wrong letters", "fixed"])
    #expect(events.map { $0["actor"] as? String == other.id } == [true, false], "\(events)")
    let ended = try place.door.json("GET", job, place.operate)
    #expect(ended["by"] as? String == events.last?["actor"] as? String && ended["reason"] as? String == "fixed", "\(ended)")
  }

  @Test("of a job whose process is killed, the audit has the beginning")
  func killed() throws {
    let place = try Place()
    try place.makeLetters()
    let body = #"{"filter":{"app":"\#(Site.app)"},"rate":2,"reason":"fixed"}"#
    _ = try place.door.json("POST", "/v1/fleet/dead/replay", place.operate, body, status: 202)
    #expect(try eventually { try place.site.depths(["send.normal"])[0] > 0 })
    place.door.gateway.signal(SIGKILL)
    _ = place.door.gateway.wait()
    let event = try #require(try place.audit().first)
    #expect(event["action"] as? String == "dead replay begun" && event["reason"] as? String == "fixed", "\(event)")
    let after = event["after"] as? [String: Any]
    #expect(after?["filter"] as? [String: String] == ["rate": "2/s"] && after?["messages"] == nil)
  }

  @Test("the trace of a request, and the pushes to a device, are shown")
  func trace() throws {
    let place = try Place()
    let (site, door) = (place.site, place.door)
    try site.importDevices(1..<3, #""app":"\#(Site.app)","user":"anna""#)
    let note = ["app_id": Site.app]
    try site.publish((0..<12).map { (["to": token(1), "data": ["m": "x"]], note.merging(["message_id": "m\($0)"]) { $1 }) })
    try site.publish([(["to": "/users/anna", "data": ["m": "x"]], note.merging(["message_id": "both"]) { $1 })])
    try site.publish([(["to": token(1), "data": ["m": "x"]], ["app_id": Self.other, "message_id": "foreign"])])
    try site.drain()
    let path = "/v1/fleet/apps/\(Site.app)/trace?"
    func ids(_ query: String) throws -> [String] {
      (try door.json("GET", path + query, place.view)["rounds"] as? [[String: Any]] ?? [])
        .compactMap { $0["message_id"] as? String }
    }
    #expect(try ids("id=m3") == ["m3"] && ids("id=foreign").isEmpty && ids("id=none").isEmpty)
    #expect(try ids("token=\(token(1))").count == 10 && ids("token=\(token(2))") == ["both"])
    #expect(try ids("user=anna").count == 10 && ids("user=nobody").isEmpty)
    let text = try door.json("GET", path + "id=both", place.view)["text"] as? String ?? ""
    #expect(text.contains("message both") && text.contains("answered 200"), "\(text)")
    for (query, key, status) in [
      ("id=m3", place.one, 403), ("", place.view, 400), ("id=a&user=b", place.view, 400), ("id=", place.view, 400),
    ] {
      #expect(try door.ask("GET", path + query, key).status == status, "\(query)")
    }
  }

  @Test("an operation is recorded as soon as the registry can be written")
  func recordedLater() throws {
    let place = try Place()
    try place.makeLetters()
    let holder = try LockHolder(place.site.file("registry.db"), "IMMEDIATE")
    let drop = try place.perform("/v1/fleet/dead/drop", place.operate, #"{"filter":{"app":"\#(Self.other)"},"reason":"old"}"#)
    #expect(drop["messages"] as? Int == 5)
    #expect(place.door.gateway.waitForOutput("an operation isn't recorded yet", seconds: 60))
    holder.end()
    #expect(try eventually { try place.audit().count == 2 })
    #expect(try Set(place.audit().compactMap { $0["action"] as? String }) == ["dead drop", "dead drop begun"])
  }

  @Test("a look leaves no open file behind")
  func descriptors() throws {
    let place = try Place()
    func opened() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/\(place.door.gateway.pid)/fd").count
    }
    _ = try place.door.json("GET", "/v1/fleet/dead", place.view)
    let before = try opened()
    for _ in 0..<10 { _ = try place.door.json("GET", "/v1/fleet/dead", place.view) }
    #expect(try eventually { try opened() <= before + 2 })
  }

  @Test("a discard is refused with 503 while too many operations wait")
  func crowded() throws {
    let place = try Place()
    try place.makeLetters()
    _ = try place.door.json("POST", "/v1/fleet/apps/\(Site.app)/pause", place.operate)
    _ = try place.door.json("POST", "/v1/fleet/dead/replay", place.operate, #"{"filter":{},"rate":1}"#, status: 202)
    for _ in 0..<16 {
      _ = try place.door.json("POST", "/v1/fleet/dead/drop", place.operate, #"{"filter":{"app":"-"}}"#, status: 202)
    }
    let refused = try place.door.ask("POST", "/v1/fleet/apps/\(Site.app)/discard", place.operate, "{}")
    #expect(refused.status == 503 && refused.body.contains("too many operations wait"), "\(refused)")
  }

  @Test("held requests are shown, and discarded while their application is paused")
  func held() throws {
    let place = try Place()
    let (site, door) = (place.site, place.door)
    let path = "/v1/fleet/apps/\(Site.app)"
    #expect(try door.ask("POST", path + "/discard", place.operate, "{}").status == 409)
    _ = try door.json("POST", path + "/pause", place.operate)
    try site.send(tokens: (0..<20).map(token), app: Site.app)
    let worker = try site.startWorker()
    #expect(eventually { site.held(Site.app) == 20 })
    #expect(try door.ask("GET", path + "/held", place.view).status == 403, "a look is a return")
    let seen = try door.json("GET", path + "/held", place.operate)
    #expect(seen["matched"] as? Int == 20 && (seen["letters"] as? [Any])?.count == 20, "\(seen)")
    #expect(try door.ask("GET", path + "/held", place.one).status == 403)
    #expect(try door.ask("POST", path + "/discard", place.one, "{}").status == 403)
    let id = ((seen["letters"] as? [[String: Any]])?.first?["message_id"] as? String) ?? ""
    let dropped = try place.perform(path + "/held/drop", place.operate, #"{"filter":{"ids":["\#(id)"]}}"#)
    #expect(dropped["messages"] as? Int == 1 && site.held(Site.app) == 19)
    let all = try place.perform(path + "/discard", place.operate, #"{"reason":"wrong text"}"#)
    #expect(all["messages"] as? Int == 19 && site.held(Site.app) == 0)
    #expect(try eventually { try place.audit().first?["action"] as? String == "discard" })
    _ = try door.json("POST", path + "/resume", place.operate)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try site.pushes().isEmpty)
  }
}
