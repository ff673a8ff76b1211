import Foundation
import TestSupport
import Testing

private let chromium = "/usr/bin/chromium"
private let isBrowserThere = FileManager.default.isExecutableFile(atPath: chromium) || isNothingLeftOut

@Suite("The console", .blocking)
struct ConsoleTests {
  private static let other = "com.example.other"
  private static let silent = "com.example.silent"
  private static let mark = ["X-Pushfleet-Console": "1"]
  /// The folder for the pictures of docs/operate/console.md; nil if none are wanted.
  private static let pictures = ProcessInfo.processInfo.environment["PUSHFLEET_TEST_PICTURES"]

  /// A fleet with three applications; the provider of the third can't be reached. One device is gone.
  private func start(settings: String = "", devices: Int = 3) throws -> (Site, config: [String]) {
    let site = try Self.pictures == nil ? Site() : Site(broker: Broker(), prefix: "push")
    try site.startSimulator(script: [token(2): ["status": 410, "reason": "Unregistered"]])
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", results: "all", fanOut: { pageSize: 100 }, \(settings)
        apps: {
          "\(Site.app)": { apns: \(site.apns()), webhooks: { billing: {
            url: "https://localhost:1/events", secret: "\(WebhookTests.secret)", events: ["audit"] } } },
          "\(Self.other)": { apns: \(site.apns(topic: Self.other)),
            webpush: { key: "\(site.certificates.p8)", subject: "mailto:push@example.com" } },
          "\(Self.silent)": { apns: \(site.apns(topic: Self.silent, port: 1)) },
        },
      }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    try site.importDevices(0..<3, #""app":"\#(Site.app)","user":"anna","topics":["all"]"#)
    if devices > 3 { try site.importDevices(3..<devices, #""app":"\#(Site.app)","topics":["all"]"#) }
    return (site, ["--config", site.file("pushfleet.json5")])
  }

  private func key(_ site: Site, _ rights: String, apps: String = "\(Site.app),\(other),\(silent)") throws -> String {
    let words = ["keys", "create", "--config", site.file("pushfleet.json5"), "--rights", rights, "--app", apps, "--json"]
    return try #require(Site.objects(try site.run(words).output).first?["key"] as? String)
  }

  /// A process of `pushfleet console`, and its address.
  private func startConsole(_ site: Site, _ config: [String]) throws -> String {
    let port = try FreePorts.take(1)[0]
    let console = try site.start(["console", "--listen", "127.0.0.1:\(port)"] + config)
    guard console.waitForOutput("the console is at http://127.0.0.1:\(port)/console/", seconds: 90) else {
      throw Broken("no console: \(console.outputSoFar)")
    }
    return "http://127.0.0.1:\(port)/console/"
  }

  // MARK: logins

  @Test("a session counts like its key for the fleet and for nothing else, until it ends or the key is revoked")
  func sessions() throws {
    let port = try FreePorts.take(1)[0]
    let (site, config) = try start(settings: Door.settings(port))
    let door = try Door(site, port: port)
    let key = try door.key("view,operate,send", ["--app", "\(Site.app),\(Self.other),\(Self.silent)"])
    func login(_ body: String, _ headers: [String: String] = ConsoleTests.mark) throws -> HTTPProbe.Answer {
      try door.ask("POST", "/console/login", nil, body, headers)
    }
    let good = #"{"key":"\#(key.key)"}"#
    #expect(try login(good, [:]).status == 403)
    let empty = try login("{}")
    #expect(empty.status == 401 && empty.body.contains("the body must be"), "\(empty.body)")
    #expect(try login(#"{"key":"\#(key.key.dropLast(2))AA"}"#).status == 401)
    #expect(try login(#"{"key":"\#(try door.key("send", ["--app", Site.app]).key)"}"#).status == 403)

    let answer = try login(good)
    let cookie = try #require(answer.headers["set-cookie"])
    #expect(answer.status == 200 && cookie.hasSuffix("; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict"))
    let secret = String(try #require(cookie.split(separator: ";").first))
    #expect(secret.count == "pushfleet=".count + 22)
    func ask(_ method: String, _ path: String, _ headers: [String: String] = [:]) throws -> HTTPProbe.Answer {
      try door.ask(method, path, nil, method == "POST" ? "{}" : nil, headers.merging(["Cookie": "a=b; \(secret)"]) { $1 })
    }
    #expect(try ask("GET", "/console/session").body.contains(#""key":"\#(key.id)""#))
    #expect(try ask("GET", "/v1/fleet/apps").status == 200)
    let pause = "/v1/fleet/apps/\(Site.app)/pause"
    let foreign = try ask("POST", pause)
    #expect(foreign.status == 403 && foreign.body.contains("X-Pushfleet-Console"))
    #expect(try ask("POST", pause, Self.mark).status == 200)
    #expect(try ask("POST", "/fcm/send", Self.mark).status == 401)
    let long = #"{"to":"\#(token(1))","data":{"a":"\#(String(repeating: "a", count: 9_000))"}}"#
    let explained = try door.ask(
      "POST", "/v1/fleet/apps/\(Site.app)/explain", nil, long, Self.mark.merging(["Cookie": secret]) { $1 })
    #expect(explained.body.contains("MessageTooBig"), "\(explained.body)")
    #expect(try ask("GET", "/v1/fleet/devices?app=\(Site.app)&user=anna").body.components(separatedBy: "active").count == 4)
    #expect(try ask("GET", "/v1/fleet/devices?app=\(Site.app)&device=\(token(1))").body.contains(token(1)) == false)
    #expect(try ask("GET", "/v1/fleet/devices?app=\(Site.app)").status == 400)
    let elsewhere = try ask("GET", "/v1/fleet/devices?app=com.example.none&user=anna")
    #expect(elsewhere.status == 403 && elsewhere.body.contains("the key is not for this application"), "\(elsewhere.body)")

    #expect(try ask("POST", "/console/logout").status == 403)
    let out = try ask("POST", "/console/logout", Self.mark)
    #expect(out.status == 200 && out.headers["set-cookie"]?.contains("Max-Age=0") == true)
    #expect(try ask("GET", "/v1/fleet/apps").status == 401)

    let next = String(try #require(try login(good).headers["set-cookie"]?.split(separator: ";").first))
    #expect(try door.ask("GET", "/v1/fleet/apps", nil, nil, ["Cookie": next]).status == 200)
    #expect(try site.run(["keys", "revoke", key.id] + config).status == 0)
    #expect(try eventually { try door.ask("GET", "/v1/fleet/apps", nil, nil, ["Cookie": next]).status == 401 })

    // Three logins have failed before.
    #expect(try (0..<9).map { _ in try login("{}").status } == Array(repeating: 401, count: 7) + [429, 429])
    let refused = try login(good)
    #expect(refused.status == 429 && refused.headers["retry-after"] == "60" && refused.body.contains("failed logins"))
  }

  @Test("a proxy logs its users in, with the rights of a key for their groups, and only from its address")
  func proxy() throws {
    let port = try FreePorts.take(1)[0]
    let site = try Site()
    try site.startSimulator()
    func write(_ proxies: String, _ keys: String) throws {
      try site.write(
        """
        { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db",
          gateway: { http: { listen: "127.0.0.1:\(port)", login: {
            proxies: ["\(proxies)"], userHeader: "Remote-User", groupsHeader: "Remote-Groups", operators: ["Push ops", "root"],
            \(keys) } } },
          apps: { "\(Site.app)": { apns: \(site.apns()) } } }
        """, to: "pushfleet.json5")
    }
    try write("127.0.0.0/8", "viewKey: 'k'")
    try site.declareTopology()
    try site.drain()
    func id(_ rights: String) throws -> String {
      let words = ["keys", "create", "--config", site.file("pushfleet.json5"), "--rights", rights, "--app", Site.app, "--json"]
      return try #require(Site.objects(try site.run(words).output).first?["id"] as? String)
    }
    let (view, operate) = (try id("view"), try id("view,operate"))
    try write("127.0.0.0/8", "viewKey: '\(view)', operateKey: '\(operate)'")
    var door = try Door(site, port: port)
    func ask(
      _ method: String, _ path: String, user: String?, groups: String = "", _ headers: [String: String] = ConsoleTests.mark
    ) throws -> HTTPProbe.Answer {
      var headers = headers
      headers["Remote-User"] = user
      headers["Remote-Groups"] = groups
      return try door.ask(method, path, nil, method == "POST" ? #"{"reason":"r"}"# : nil, headers)
    }
    let pause = "/v1/fleet/apps/\(Site.app)/pause"
    #expect(try ask("GET", "/console/session", user: "anna").body.contains(#""key":"anna","rights":["view"]"#))
    #expect(try ask("GET", "/console/session", user: nil).body == "{}")
    #expect(try ask("GET", "/v1/fleet/apps", user: "anna", groups: "dev").status == 200)
    #expect(try ask("GET", "/v1/fleet/apps", user: nil).status == 401)
    #expect(try ask("GET", "/v1/fleet/apps", user: "").status == 401)
    #expect(try ask("GET", "/v1/fleet/apps", user: "anna", [:]).status == 403, "another site's page")
    #expect(try ask("POST", pause, user: "anna", groups: "dev").status == 403)
    // The client's header may be the first or the last of two.
    #expect(try ask("GET", "/v1/fleet/apps", user: "anna\r\nRemote-User: ben").status == 400)
    for groups in ["root\r\nRemote-Groups: dev", "dev\r\nremote-groups: root", "\r\nRemote-Groups: root"] {
      #expect(try ask("POST", pause, user: "anna", groups: groups).status == 400, "\(groups)")
    }
    for groups in ["Former Push ops", "Push", "ops", "push ops", ""] {
      #expect(try ask("POST", pause, user: "Push ops", groups: groups).status == 403, "\(groups)")
    }
    #expect(try ask("POST", pause, user: "ben", groups: "dev, Push ops", [:]).status == 403, "no header of the console")
    #expect(try ask("POST", pause, user: "ben", groups: "dev, Push ops").status == 200)
    #expect(try ask("POST", "/v1/fleet/apps/\(Site.app)/resume", user: "root@example.com", groups: "root").status == 200)
    #expect(try ask("POST", "/fcm/send", user: "ben", groups: "root").status == 401)
    func origin(_ forwarded: String) throws -> String? {
      let headers = Self.mark.merging(["X-Forwarded-For": forwarded]) { $1 }
      #expect(try ask("POST", pause, user: "ben", groups: "root", headers).status == 200)
      return Site.objects(try site.run(["audit", "--json", "--config", site.file("pushfleet.json5")]).output).first?["origin"]
        as? String
    }
    #expect(try origin("192.0.2.1, 203.0.113.7") == "203.0.113.7")
    #expect(try origin("192.0.2.1\r\nX-Forwarded-For: 2001:db8::7") == "2001:db8::7")
    for words in ["203.0.113.7, unknown", "203.0.113.7:4711", ""] { #expect(try origin(words) == "127.0.0.1") }
    // A session with another key counts, until it ends.
    let secret = try door.key("view,operate", ["--app", Site.app]).key
    let login = try door.ask(
      "POST", "/console/login", nil, #"{"key":"\#(secret)"}"#,
      Self.mark.merging(["Remote-User": "anna", "X-Forwarded-Proto": "https"]) { $1 })
    #expect(login.headers["set-cookie"]?.hasSuffix("; Secure") == true)
    func logIn(_ key: String, from address: String) throws -> Int {
      try door.ask(
        "POST", "/console/login", nil, #"{"key":"\#(key)"}"#, Self.mark.merging(["X-Forwarded-For": address]) { $1 }
      ).status
    }
    for number in 0..<12 { #expect(try logIn("wrong", from: "203.0.113.7") == (number < 10 ? 401 : 429)) }
    #expect(try logIn(secret, from: "203.0.113.7") == 429 && logIn(secret, from: "203.0.113.8") == 200)
    let session = String(try #require(login.headers["set-cookie"]?.split(separator: ";").first))
    let both = Self.mark.merging(["Cookie": session]) { $1 }
    #expect(try ask("POST", "/v1/fleet/apps/\(Site.app)/rate", user: "anna", both).status == 400)
    #expect(try ask("POST", "/console/logout", user: "anna", both).status == 200)
    #expect(try ask("POST", "/v1/fleet/apps/\(Site.app)/rate", user: "anna", both).status == 403)
    let events = Site.objects(try site.run(["audit", "--json", "--config", site.file("pushfleet.json5")]).output)
    let ofUsers = events.filter { $0["action"] as? String != "key create" }
    #expect(ofUsers.compactMap { $0["actor"] as? String } == Array(repeating: "ben", count: 5) + ["root@example.com", "ben"])
    #expect(try site.run(["keys", "revoke", operate, "--config", site.file("pushfleet.json5")]).status == 0)
    #expect(try eventually { try ask("POST", pause, user: "ben", groups: "root").status == 401 })

    try write("10.0.0.0/8", "operateKey: '\(view)'")
    door.gateway.signal(SIGTERM)
    #expect(door.gateway.wait() == 0)
    door = try Door(site, port: port)
    #expect(try ask("GET", "/v1/fleet/apps", user: "ben", groups: "root").status == 401)
    // Headers of others count for nothing.
    let forged = Self.mark.merging(["X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"]) { $1 }
    let other = try door.ask("POST", "/console/login", nil, #"{"key":"\#(secret)"}"#, forged)
    #expect(other.status == 200 && other.headers["set-cookie"]?.contains("Secure") == false)
    #expect(try door.ask("POST", "/v1/fleet/apps/\(Site.app)/resume", secret, "{}", forged).status == 200)
    let own = Site.objects(try site.run(["audit", "--json", "--config", site.file("pushfleet.json5")]).output).first
    #expect(own?["origin"] as? String == "127.0.0.1" && own?["action"] as? String == "resume")
    try write("127.0.0.1", "operateKey: '\(view)'")
    door.gateway.signal(SIGTERM)
    #expect(door.gateway.wait() == 0)
    door = try Door(site, port: port)
    #expect(try ask("GET", "/v1/fleet/apps", user: "ben", groups: "root").status == 200)
    #expect(try ask("GET", "/v1/fleet/apps", user: "anna").status == 403)
  }

  @Test("its files need no login, have no data and run only their own scripts; its process serves nothing else")
  func files() throws {
    let (site, config) = try start()
    let address = try startConsole(site, config)
    let probe = HTTPProbe(port: try #require(URL(string: address)?.port.map { UInt16($0) }))
    let scripts = ["console.js", "dom.js", "letters.js", "pages.js", "parts.js", "search.js", "testsend.js"]
    for name in ["", "console.css", "icon.svg", "runbook.md"] + scripts {
      let answer = try #require(probe.ask("/console/\(name)"))
      let policy = try #require(answer.headers["content-security-policy"])
      #expect(answer.status == 200 && answer.headers["x-content-type-options"] == "nosniff", "\(name)")
      #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; ") && !policy.contains("unsafe"))
      #expect(policy.contains("frame-ancestors 'none'") && answer.headers["referrer-policy"] == "no-referrer")
      guard name != "runbook.md" else { continue }
      #expect(answer.body.firstMatch(of: /[ ](style|on[a-z]+)="/) == nil && !answer.body.contains("innerHTML"), "\(name)")
      let elsewhere = answer.body.matches(of: /(https?:)?\/\/[a-z0-9.]+\.[a-z]+[^ "']*/).map { String($0.0) }
      #expect(elsewhere.allSatisfy { $0.hasPrefix("http://www.w3.org/") }, "\(elsewhere)")
    }
    #expect(probe.ask("/readyz") != nil && probe.ask("/console/none")?.status == 404)
    #expect(probe.ask("/fcm/send", method: "POST", body: "{}")?.status == 404)
    #expect(probe.ask("/v1/fleet/status")?.status == 401)
    let refused = try site.run(["console", "--listen", "0.0.0.0:8900"] + config)
    #expect(refused.status == 78 && refused.output.contains("needs TLS"), "\(refused.output)")
  }

  // MARK: in a browser

  private static let pages = [
    ("fleet", "not used yet"), ("apps", other), ("apps/\(Site.app)", "NotRegistered"), ("lanes", "fanout.normal"),
    ("campaigns", "/topics/all"), ("devices?app=\(Site.app)&by=user&name=anna", "active"), ("audit", "All operations"),
    ("devices", "by"), ("dead", "will not be tried again"), ("dead?look=1", "dead-1"), ("dead/dead-1?app=\(Site.app)", "Body"),
    ("test", "The audit records it"), ("search", "The outcome is known"),
    ("search?app=\(Site.app)&by=user&id=anna", "received from"),
    ("held?app=\(other)&look=1", "an operator has paused"),
    ("runbook/pushfleetdeadletters", "PushfleetDeadLetters"),
  ]

  /// Files in docs/images.
  private static let pictured = [
    "light 1280 fleet": "console", "dark 1280 apps/\(Site.app)": "console-dark", "light 375 fleet": "console-phone",
  ]

  @Test(
    "shows a fleet to two users at once, who control it with mouse and keyboard within their rights",
    .enabled(if: isBrowserThere, "chromium isn't installed"))
  func control() throws {
    let (site, config) = try start(devices: 300)
    let workers = [try site.startWorker(), try site.startWorker()]
    let address = try startConsole(site, config)
    let (operator_, viewer) = (0, 1)
    let browser = try Browser(site)
    let operateKey = try key(site, "view,operate")

    // A wrong key, then the right one.
    try browser.open(address, operator_)
    try browser.logIn("wrong", operator_)
    #expect(try browser.shows("This key is not valid.", operator_))
    _ = browser.takeComplaints()
    try browser.logIn(operateKey, operator_)
    #expect(try browser.holds("document.querySelector('table')?.rows.length === 3", operator_))
    try browser.open(address, viewer)
    try browser.logIn(try key(site, "view"), viewer)
    #expect(try browser.shows("Workers", viewer))

    // Paused with the keyboard alone: the other user sees it without a reload, and requests wait.
    try browser.go("apps", operator_)
    try browser.go("apps", viewer)
    #expect(try browser.holds("document.querySelectorAll('tbody tr').length === 3", viewer))
    #expect(try browser.value("document.querySelectorAll('[data-post]').length", viewer) as? Int == 0)
    let pause = "/v1/fleet/apps/\(Site.app)/pause"
    try browser.tab(to: "document.activeElement.dataset.post === '\(pause)'", operator_)
    try browser.order(operator_, ["press": ["Enter"]])
    #expect(try browser.holds("document.getElementById('dialog').open", operator_))
    try browser.tab(to: "document.activeElement.id === 'reason'", operator_)
    try browser.order(operator_, ["press": ["wrong text", "Enter"]])
    #expect(try browser.shows("wrong text", viewer))
    let resume = "/v1/fleet/apps/\(Site.app)/resume"
    #expect(try browser.holds("document.activeElement.dataset.post === '\(resume)'", operator_))
    try site.send(tokens: (100..<110).map(token), app: Site.app)
    #expect(eventually { site.held(Site.app) == 10 })
    #expect(try browser.holds("document.querySelector('[data-key=\"\(Site.app)\"]').innerText.includes('10')", viewer))
    #expect(try site.pushes().isEmpty)
    try browser.click(resume, operator_)
    #expect(try site.followJournal().waitForLines(10, seconds: 60))
    #expect(try browser.holds("!document.getElementById('page').innerText.includes('wrong text')", viewer))

    // A credential, a rate, a lane and a campaign.
    try browser.go("apps/\(Site.app)", operator_)
    try browser.click("/v1/fleet/credentials/\(Site.app)%2Fapns/pause", operator_)
    try browser.go("fleet", viewer)
    #expect(try browser.shows("Credential \(Site.app)/apns is paused", viewer))
    #expect(workers.allSatisfy { $0.waitForOutput("a credential's state", seconds: 30) })
    try site.send(tokens: [token(50)], app: Site.app)
    #expect(try browser.shows("1 waiting.", viewer))
    let credential = "/v1/fleet/credentials/\(Site.app)%2Fapns"
    try browser.click("\(credential)/discard", operator_)
    try browser.click("\(credential)/drain", operator_)
    #expect(try browser.shows("Credential \(Site.app)/apns is draining", viewer))
    try browser.click("\(credential)/resume", operator_)
    #expect(try browser.shows("its waiting pushes fail as Cancelled", operator_))
    // The discarded push has its result when it returns from the ladder.
    #expect(try eventually { try site.take("results").contains { $0.json["success"] as? Int == 0 } })
    #expect(try site.depths(["dead"]) == [0] && site.pushes().count == 10)
    try browser.go("apps", viewer)
    try browser.go("apps", operator_)
    try browser.click("/v1/fleet/apps/\(Self.other)/rate", operator_, ["rate": "7"])
    #expect(try browser.shows("7/s", viewer))
    try browser.go("lanes", operator_)
    for verb in ["pause", "discard", "drain", "resume"] {
      try browser.click("/v1/fleet/lanes/send.high/\(verb)", operator_)
      // A drained lane ends the job.
      if verb == "discard" { #expect(try browser.holds("/discard[\\s\\S]*done/.test(document.body.innerText)", operator_)) }
    }
    try browser.click("/v1/fleet/lanes/fanout.normal/pause", operator_)
    #expect(eventually { workers.allSatisfy { $0.outputSoFar.contains(#""state":"paused""#) } })
    try site.publish([(["to": "/topics/all", "data": ["m": "m"]], ["app_id": Site.app, "message_id": "m"])])
    try browser.go("campaigns", operator_)
    try browser.go("fleet", viewer)
    #expect(try browser.shows("Lane fanout.normal is paused", viewer))
    try browser.go("lanes", operator_)
    try browser.click("/v1/fleet/lanes/fanout.normal/resume", operator_)
    try browser.go("campaigns", operator_)
    #expect(try browser.shows("completed", operator_))
    try browser.order(operator_, ["value": "document.querySelector('td a').click()"])
    #expect(try browser.shows("Failed devices by reason", operator_) && browser.shows("NotRegistered", operator_))
    #expect(try browser.shows("Devices that were not reached", operator_) && browser.shows("pf1r~", operator_))
    let unreachedState = "document.querySelector('[data-label=\"State now\"]')?.innerText"
    #expect(try browser.holds("\(unreachedState) === 'gone'", operator_))
    try site.importDevices(2..<3, #""app":"\#(Site.app)","user":"anna","topics":["all"]"#)
    #expect(try browser.holds("\(unreachedState)?.startsWith('active registered again 2') === true", operator_))
    #expect(try browser.shows("stays active in two cases", operator_))
    let campaign = try #require(Site.objects(try site.run(["campaigns", "--json"] + config).output).first?["id"] as? String)
    let unreached = try site.run(["campaigns", "unreached", campaign, "--json"] + config)
    #expect(Site.objects(unreached.output).map { $0["error"] as? String } == ["NotRegistered"])
    let actions = Site.objects(try site.run(["audit", "--json"] + config).output).compactMap { $0["action"] as? String }
    // A job's end is recorded by itself, perhaps behind the next operation.
    #expect(
      actions.filter { !$0.hasPrefix("discard") } == [
        "resume", "pause", "resume", "drain", "pause", "rate", "resume", "drain", "pause", "resume", "pause", "key create",
        "key create",
      ])
    #expect(actions.filter { $0.hasPrefix("discard") }.sorted() == ["discard", "discard", "discard begun"])
    try browser.go("audit", viewer)
    #expect(try browser.shows("wrong text", viewer) && browser.shows("no limit → 7/s", viewer))

    // A worker that is killed.
    try browser.go("fleet", operator_)
    #expect(try browser.shows("\(workers[0].pid)", operator_))
    workers[0].signal(SIGKILL)
    #expect(try browser.holds("/Worker \\S+:\(workers[0].pid) is gone/.test(document.body.innerText)", operator_))

    // A long audit, page by page.
    let rate =
      "fetch('/v1/fleet/apps/\(Self.other)/rate', { method: 'POST', headers: { 'X-Pushfleet-Console': 1 }, body: '{\"rate\":9}' })"
    let rates = "(async () => { for (let i = 0; i < 50; i++) await \(rate) })()"
    try browser.order(operator_, ["value": rates])
    try browser.go("audit", operator_)
    #expect(try browser.holds("document.querySelectorAll('tbody tr').length === 50", operator_))
    try browser.order(operator_, ["value": "document.querySelector('p.row a').click()"])
    #expect(try browser.holds("document.querySelectorAll('tbody tr').length === 16", operator_))
    try browser.go("audit?app=\(Site.app)", operator_)
    #expect(try browser.holds("document.querySelectorAll('tbody tr').length === 6", operator_))

    // An address with a sign that isn't percent-encoded.
    try browser.go("lanes/%", viewer)
    #expect(try browser.holds("document.querySelector('nav [aria-current]').hash === '#/lanes'", viewer))
    // A name that every object of JavaScript has.
    try browser.order(viewer, ["value": "location.hash = '#/constructor'"])
    #expect(try browser.holds("document.querySelector('nav [aria-current]').hash === '#/fleet'", viewer))

    // A webhook that its receiver has ended.
    try browser.go("apps/\(Site.app)", operator_)
    try browser.click("/v1/fleet/apps/\(Site.app)/rate", operator_, ["rate": "20"])
    #expect(try site.run(["webhooks", "pause", "\(Site.app)/billing", "--reason", "[gone](https://a/)"] + config).status == 0)
    try browser.go("fleet", viewer)
    #expect(try browser.shows("Webhook \(Site.app)/billing is paused", viewer))
    #expect(try browser.shows("because: [gone](https://a/).", viewer))
    try browser.click("/v1/fleet/webhooks/\(Site.app)%2Fbilling/resume", operator_)
    #expect(try browser.holds("!document.getElementById('page').innerText.includes('Webhook')", viewer))

    // A campaign with 15 seconds for its devices.
    try site.publish([(["to": "/topics/all", "data": ["m": "n"]], ["app_id": Site.app, "message_id": "n"])])
    func newest() throws -> [String: Any] { Site.objects(try site.run(["campaigns", "--json"] + config).output)[0] }
    #expect(try eventually { try newest()["message_id"] as? String == "n" })
    let path = "/v1/fleet/campaigns/\(try #require(try newest()["id"] as? String))"
    try browser.go("campaigns", operator_)
    for (verb, state) in [("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")] {
      try browser.click("\(path)/\(verb)", operator_)
      #expect(try newest()["state"] as? String == state)
    }
    #expect(try (newest()["remaining"] as? Int ?? 0) > 0)

    // Without the limit, an application that is drained refuses what comes.
    func app() throws -> [String: Any]? {
      Site.objects(try site.run(["apps", "list", "--json"] + config).output).first { $0["app"] as? String == Site.app }
    }
    try browser.go("apps/\(Site.app)", operator_)
    #expect(try app()?["rate"] as? Int == 20)
    try browser.click("/v1/fleet/apps/\(Site.app)/rate", operator_, ["rate": ""])
    #expect(try app()?["rate"] is Int == false)
    try browser.click("/v1/fleet/apps/\(Site.app)/drain", operator_)
    #expect(try app()?["state"] as? String == "draining")
    #expect(workers[1].waitForOutput(#""app":"\#(Site.app)","state":"draining""#, seconds: 30))
    // The drain's own second counts as before it.
    let late: [String: Any] = ["app_id": Site.app, "message_id": "late", "timestamp": Int(Date().timeIntervalSince1970) + 2]
    try site.publish([(["to": token(400), "data": ["a": "b"]], late)])
    #expect(try eventually { try site.depths(["dead"]) == [1] })
    try browser.click(resume, operator_)

    #expect(browser.takeComplaints().isEmpty)
    // An answer for the first login comes after its end. The next login must not see it.
    try browser.order(operator_, ["value": Browser.lateStatus])
    #expect(try browser.holds("window.answerLate !== undefined", operator_))
    try browser.order(operator_, ["value": "document.getElementById('logout').click()"])
    #expect(try browser.holds("!document.getElementById('login').hidden", operator_))
    try browser.order(operator_, ["value": "window.answerLate()"])
    try browser.order(operator_, ["value": "location.hash = '#/apps'"])
    try browser.logIn(try key(site, "view", apps: Self.other), operator_)
    #expect(try browser.shows("9/s", operator_))
    #expect(try browser.holds("document.querySelectorAll('tbody tr').length === 1", operator_))
    try browser.go("fleet", operator_)
    #expect(try browser.shows("needs a key for all of them", operator_))
    workers[1].signal(SIGTERM)
    #expect(workers[1].wait() == 0)
  }

  @Test(
    "dead letters are found, read, replayed and dropped, and held requests discarded, with the mouse",
    .enabled(if: isBrowserThere, "chromium isn't installed"))
  func letters() throws {
    let (site, config) = try start()
    try site.publish((0..<12).map { ([:], ["app_id": Site.app, "message_id": "a\($0)"]) })
    try site.publish((0..<3).map { ([:], ["app_id": Self.other, "message_id": "b\($0)"]) })
    #expect(try site.run(["apps", "pause", Self.other] + config).status == 0)
    let worker = try site.startWorker()
    #expect(try eventually { try site.depths(["dead"]) == [15] })
    try site.send(tokens: (100..<104).map(token), app: Self.other)
    #expect(eventually { site.held(Self.other) == 4 })
    let browser = try Browser(site)
    try browser.open(try startConsole(site, config), 0)
    try browser.logIn(try key(site, "view,operate"), 0)
    try browser.go("held", 0)
    #expect(try browser.holds("document.querySelector('[data-key=\"\(Self.other)\"]')?.innerText.includes('4') === true", 0))
    try browser.go("dead", 0)
    #expect(try browser.shows("15 dead letters wait.", 0) && browser.shows("will not be tried again", 0))
    try browser.order(0, ["value": "document.querySelector('form.filter button').click()"])
    #expect(try browser.shows("15 of 15 dead letters", 0))
    try browser.go("dead?app=\(Site.app)&look=1", 0)
    #expect(try browser.shows("12 of 15 dead letters", 0))
    // The address changes in the moment in which the page before gets its answer.
    try browser.order(0, ["value": Browser.lateStatus])
    #expect(try browser.holds("window.answerLate !== undefined", 0))
    try browser.order(0, ["value": "window.answerLate(); location.hash = '#/dead?app=\(Self.other)&look=1'"])
    #expect(try browser.shows("3 of 15 dead letters", 0), "\(browser.text(0))")
    // As a campaign's page selects the letters of its devices.
    try browser.go("dead?app=\(Site.app)&id=a9&look=1", 0)
    #expect(try browser.shows("1 of 15 dead letters", 0))
    try browser.click("/v1/fleet/dead/drop", 0)
    let news = "document.getElementById('news').textContent"
    #expect(try browser.holds("\(news) === 'Done: Drop 1 dead letter. Messages: 1'", 0))
    #expect(try browser.holds("document.activeElement.textContent === '0 of 14 dead letters'", 0))
    try browser.go("dead/a3?app=\(Site.app)", 0)
    #expect(try browser.holds("document.querySelector('pre')?.textContent === '{}'", 0))
    try browser.click("/v1/fleet/dead/drop", 0)
    #expect(try browser.shows("It is not among the dead letters.", 0))
    #expect(try browser.holds("document.activeElement.tagName === 'H1'", 0))
    #expect(try site.depths(["dead"]) == [13])
    // A replayed letter's page says what became of it, also if it dies some seconds later.
    try browser.go("dead/a4?app=\(Site.app)", 0)
    worker.signal(SIGSTOP)
    try browser.click("/v1/fleet/dead/replay", 0)
    #expect(try browser.shows("It was replayed at", 0) && browser.shows("It is not among the dead letters.", 0))
    worker.signal(SIGCONT)
    #expect(try browser.shows("It became a dead letter again at", 0))
    #expect(try site.depths(["dead"]) == [13])
    // Letters that come after the look stay.
    try browser.go("dead?app=\(Self.other)&look=1", 0)
    #expect(try browser.shows("3 of 13 dead letters", 0))
    try site.publish([([:], ["app_id": Self.other, "message_id": "b3"])])
    #expect(try browser.shows("14 wait now.", 0))
    try browser.click("/v1/fleet/dead/drop", 0)
    #expect(try browser.shows("1 of 11 dead letters", 0))
    #expect(try browser.holds("document.activeElement.dataset.post === '/v1/fleet/dead/drop'", 0))
    // Two jobs are stopped, which would need a minute.
    try site.publish((0..<60).map { ([:], ["app_id": Self.silent, "message_id": "c\($0)"]) })
    #expect(try eventually { try site.depths(["dead"]) == [71] })
    try browser.go("dead", 0)
    let replay =
      "fetch('/v1/fleet/dead/replay', { method: 'POST', headers: { 'X-Pushfleet-Console': 1 }, body: '{\"filter\":{},\"rate\":1}' })"
    let stops = "document.querySelectorAll('[data-post$=stop]')"
    for count in 1...2 {
      try browser.order(0, ["value": replay])
      #expect(try browser.holds("\(stops).length === \(count)", 0))
    }
    let paths = try #require(try browser.value("[...\(stops)].map(stop => stop.dataset.post)", 0) as? [String])
    try browser.click(paths[0], 0)
    #expect(try browser.holds("document.activeElement.dataset.post === '\(paths[1])'", 0))
    try browser.click(paths[1], 0)
    #expect(try browser.holds("document.activeElement.textContent.startsWith('Replays and deletions')", 0))
    // The heading keeps the focus while the page asks again.
    try browser.order(0, ["value": "window.asked = performance.now()"])
    let isLater =
      "performance.getEntriesByType('resource').some(one => one.name.endsWith('/fleet/jobs') && one.startTime > asked)"
    #expect(try browser.holds(isLater, 0))
    #expect(try browser.value("document.activeElement.tagName", 0) as? String == "H2")
    #expect(try eventually { try site.depths(["dead"]) == [71] })
    // A job may be stopped as soon as it is shown.
    try browser.go("dead?app=\(Self.silent)&look=1", 0)
    #expect(try browser.shows("60 of 71 dead letters", 0))
    try browser.click("/v1/fleet/dead/replay", 0, ["rate": "1"])
    #expect(try browser.value(news, 0) as? String == "Begun: Replay 60 dead letters")
    #expect(try browser.holds("\(stops).length === 1", 0))
    try browser.click(try #require(try browser.value("\(stops)[0].dataset.post", 0) as? String), 0)
    #expect(try browser.holds("\(stops).length === 0", 0))
    // A replayed letter is dead again.
    try browser.go("dead?app=\(Site.app)&look=1", 0)
    try browser.click("/v1/fleet/dead/replay", 0, ["rate": "50", "reason": "fixed"])
    #expect(try browser.holds("\(news) === 'Done: Replay 10 dead letters. Messages: 10'", 0))
    #expect(try eventually { try site.depths(["dead"]) == [71] })
    // As if the look stopped before the last letter: all that match are dropped, those that come later too.
    try browser.order(0, ["value": Browser.shortLook])
    try browser.go("dead?app=\(Self.other)&look=1", 0)
    #expect(try browser.shows("Only the 70 oldest were looked at.", 0) && browser.shows("Drop all", 0))
    try site.publish([([:], ["app_id": Self.other, "message_id": "b4"])])
    #expect(try eventually { try site.depths(["dead"]) == [72] })
    try browser.click("/v1/fleet/dead/drop", 0)
    #expect(try browser.holds("\(news) === 'Done: Drop all dead letters that match. Messages: 2'", 0))

    try browser.go("held?app=\(Self.other)&look=1", 0)
    #expect(try browser.shows("4 of 4 held requests", 0))
    let body = "document.querySelector('pre')?.textContent"
    try browser.order(0, ["value": "document.querySelector('td.name a').click()"])
    #expect(try browser.holds("\(body)?.includes('\(token(100))') === true", 0))
    try browser.click("/v1/fleet/apps/\(Self.other)/held/drop", 0)
    #expect(try browser.shows("It is not among the held requests.", 0))
    try browser.go("held?app=\(Self.other)&look=1", 0)
    #expect(try browser.shows("3 of 3 held requests", 0) && browser.shows("Discard all 3", 0))
    #expect(try browser.value("document.querySelectorAll('[data-post$=drop]').length", 0) as? Int == 0)
    // A deletion needs a reason.
    let discard = "/v1/fleet/apps/\(Self.other)/discard"
    try browser.order(0, ["value": "document.querySelector('[data-post=\"\(discard)\"]').click()"])
    try browser.order(0, ["value": "document.getElementById('confirm').click()"])
    #expect(try browser.value("document.getElementById('dialog').open", 0) as? Bool == true)
    try browser.order(0, ["value": "document.getElementById('cancel').click()"])
    try browser.click(discard, 0)
    #expect(try browser.shows("0 of 0 held requests", 0))
    let actions = Site.objects(try site.run(["audit", "--json"] + config).output).compactMap { $0["action"] as? String }
    let jobs =
      ["discard", "held drop", "dead drop", "dead replay", "dead replay stopped", "dead replay stopped"]
      + ["dead drop", "dead replay", "dead drop", "dead drop"]
    let expected = jobs.flatMap { [$0, $0.replacing(" stopped", with: "") + " begun"] } + ["key create", "pause"]
    #expect(actions == expected)
    #expect(browser.takeComplaints().isEmpty)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test(
    "a request is explained, refused with its reason, sent to one device with the keyboard, and found again",
    .enabled(if: isBrowserThere, "chromium isn't installed"))
  func tests() throws {
    let (site, config) = try start()
    let worker = try site.startWorker()
    let address = try startConsole(site, config)
    let browser = try Browser(site)
    try browser.look("light", width: 375, 0)
    try browser.open(address, 0)
    try browser.logIn(try key(site, "view,operate"), 0)
    try browser.go("test", 0)
    func type(_ request: String) throws {
      let field = "document.querySelector('textarea')"
      try browser.order(0, ["value": "\(field).value = ''; \(field).focus()"])
      try browser.order(0, ["press": [request]])
    }
    #expect(try browser.holds("document.querySelector('textarea')?.labels.length === 1", 0))
    try browser.tab(to: "document.activeElement.name === 'app'", 0)
    try browser.order(0, ["press": [Site.app]])
    try type(#"{"to":"apns:\#(token(1))","notification":{"title":5}}"#)
    try browser.tab(to: "document.activeElement.value === 'explain'", 0)
    try browser.order(0, ["press": ["Enter"]])
    #expect(try browser.shows("notification.title", 0))
    #expect(try browser.value("document.querySelector('textarea').getAttribute('aria-invalid')", 0) as? String == "true")
    #expect(browser.takeComplaints().allSatisfy { $0.contains("400") })

    try type(#"{"to":"apns:\#(token(1))","notification":{"title":"tried"}}"#)
    try browser.tab(to: "document.activeElement.value === 'explain'", 0)
    try browser.order(0, ["press": ["Enter"]])
    #expect(try browser.shows("iPhone, through APNs", 0) && browser.shows("apns-push-type", 0))
    #expect(try browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth", 0) as? Int == 0)
    #expect(try browser.value(Browser.faintText, 0) as? [String] == [])
    #expect(try site.pushes().isEmpty)
    try browser.tab(to: "document.activeElement.value === 'test'", 0)
    try browser.order(0, ["press": ["Enter"]])
    let asksFor = "document.getElementById('dialog').open && document.getElementById('dialog-words').textContent"
    #expect(try browser.holds("\(asksFor) === 'The test goes to apns:\(token(1)) of the application \(Site.app).'", 0))
    #expect(try browser.value(Browser.faintText, 0) as? [String] == [])
    #expect(try site.pushes().isEmpty)
    try browser.order(0, ["press": ["Enter"]])
    #expect(try browser.shows("\"success\": 1", 0))
    #expect(try site.pushes().count == 1)
    let events = Site.objects(try site.run(["audit", "--json"] + config).output)
    #expect(events.compactMap { $0["action"] as? String } == ["test", "key create"])
    let id = try #require(
      try browser.value("document.querySelector('#test section p').innerText.split(' ').pop()", 0) as? String)
    try browser.go("search?app=\(Site.app)&id=\(id)", 0)
    #expect(try browser.shows("\"success\": 1", 0) && browser.shows("received from", 0))
    try browser.go("search?app=\(Site.app)&id=none", 0)
    #expect(try browser.shows("Nothing is known of none here.", 0) && browser.takeComplaints().isEmpty)
    try browser.go("devices?app=\(Site.app)&by=user&name=anna", 0)
    #expect(try browser.holds("document.querySelectorAll('tbody tr').length === 3", 0))
    let pushes = "[...document.querySelectorAll('tbody a')].find(link => link.textContent === 'Pushes').click()"
    try browser.order(0, ["value": pushes])
    #expect(try browser.shows("The last requests to", 0))
    try browser.go("search?app=\(Site.app)&by=token&id=\(token(1))", 0)
    #expect(try browser.shows("answered 200", 0))
    // A refusal is no empty answer, and a field that was filled in stays on its page.
    try browser.go("devices?app=\(Site.app)&by=gone_since&name=yesterday", 0)
    #expect(try browser.shows("a time such as", 0))
    #expect(try browser.value("document.body.innerText.includes('There is none.')", 0) as? Bool == false)
    try browser.go("devices?app=\(Site.app)&by=gone_since&name=2099-01-01", 0)
    #expect(try browser.shows("There is none.", 0))
    let complaints = browser.takeComplaints()
    #expect(complaints.allSatisfy { $0.contains("400") }, "\(complaints)")
    // A test goes to a user. Then the user is forgotten.
    try browser.go("devices?app=\(Site.app)&by=user&name=anna", 0)
    #expect(try browser.holds("document.querySelector('[aria-label=\"Send a test to /users/anna\"]') !== null", 0))
    try browser.order(0, ["value": "document.querySelector('[aria-label=\"Send a test to /users/anna\"]').click()"])
    #expect(try browser.holds("document.querySelector('textarea')?.value.includes('/users/anna') === true", 0))
    try browser.order(0, ["value": "document.querySelector('#test [value=test]').click()"])
    #expect(try browser.holds("\(asksFor) === 'The test goes to /users/anna of the application \(Site.app).'", 0))
    try browser.order(0, ["value": "document.getElementById('confirm').click()"])
    #expect(try browser.shows("\"success\": 2", 0))
    try browser.go("devices?app=\(Site.app)&by=user&name=anna", 0)
    try browser.click("/v1/fleet/apps/\(Site.app)/forget", 0, ["reason": "asked for it"])
    #expect(try browser.shows("There is none.", 0))
    let forgotten = Site.objects(try site.run(["audit", "--json"] + config).output).first
    #expect(forgotten?["action"] as? String == "forget user" && forgotten?["reason"] as? String == "asked for it")
    #expect(try site.run(["devices", "show", "--user", "anna", "--app", Site.app] + config).status == 65)
    #expect(browser.takeComplaints().isEmpty)

    // A viewer has no button to send.
    try browser.order(0, ["value": "document.getElementById('logout').click()"])
    #expect(try browser.holds("!document.getElementById('login').hidden", 0))
    try browser.logIn(try key(site, "view"), 0)
    try browser.go("test", 0)
    #expect(try browser.holds("document.querySelectorAll('#test button').length === 1", 0))
    #expect(try browser.value("document.querySelector('#explained').children.length", 0) as? Int == 0)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }

  @Test(
    "each page fits a phone and a screen, and its text is readable, light and dark",
    .enabled(if: isBrowserThere, "chromium isn't installed"))
  func views() throws {
    let (site, config) = try start(devices: Self.pictures == nil ? 3 : 4_000)
    #expect(try site.run(["apps", "rate", Site.app, "50/s"] + config).status == 0)
    let worker = try site.startWorker()
    try site.publish([([:], ["app_id": Site.app, "message_id": "dead-1"])])
    try site.send(tokens: (100..<110).map(token), app: Self.silent)
    try site.publish([(["to": "/topics/all", "data": ["m": "m"]], ["app_id": Site.app, "message_id": "m"])])
    #expect(try site.followJournal().waitForLines(3, seconds: 60))
    #expect(try site.run(["apps", "pause", Self.other, "--reason", "wrong text in <title>"] + config).status == 0)
    #expect(worker.waitForOutput(#""state":"paused""#, seconds: 30))
    try site.send(tokens: (200..<205).map(token), app: Self.other)
    #expect(try eventually { try site.held(Self.other) == 5 && site.depths(["dead"]) == [1] })
    let browser = try Browser(site)
    try browser.open(try startConsole(site, config), 0)
    try browser.logIn(try key(site, "view,operate"), 0)
    #expect(try browser.shows("Workers", 0))
    for (scheme, width) in [("light", 375), ("dark", 375), ("light", 1280), ("dark", 1280)] {
      try browser.look(scheme, width: width, 0)
      for (page, words) in Self.pages {
        try browser.go(page, 0)
        #expect(try browser.shows(words, 0), "\(page) \(scheme) \(width): \(browser.text(0))")
        let wide = try browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth", 0)
        #expect(wide as? Int == 0, "\(page) \(width)")
        let faint = try browser.value(Browser.faintText, 0) as? [String]
        #expect(faint == [], "\(page) \(scheme)")
        if let folder = Self.pictures, let name = Self.pictured["\(scheme) \(width) \(page)"] {
          let rates = "document.querySelector('polyline')?.getAttribute('points').split(' ').length"
          #expect(try page != "fleet" || browser.holds("\(rates) > 8", 0))
          try browser.order(0, ["picture": "\(folder)/\(name).png"])
        }
      }
    }
    try browser.go("fleet", 0)
    #expect(try browser.shows("Dead letters", 0) && browser.shows("Seen since 2", 0))
    try browser.go("apps", 0)
    #expect(try browser.shows("wrong text in <title>", 0))
    try browser.order(0, ["value": "document.querySelector('[data-post]').click()"])
    try browser.order(0, ["value": "document.querySelector('[data-minutes=\"15\"]').click()"])
    let until = "new Date(document.getElementById('until').value)"
    #expect(try browser.value("\(until) - Date.now() >= 15 * 60 * 1000", 0) as? Bool == true)
    try browser.order(0, ["value": "document.querySelector('[data-minutes=\"\"]').click()"])
    #expect(try browser.value("document.getElementById('until').value", 0) as? String == "")
    #expect(try browser.value(Browser.faintText, 0) as? [String] == [])
    #expect(browser.takeComplaints().isEmpty)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }
}

/// Pages of the console in headless Chromium (Support/pages.py).
private final class Browser {
  private let process: ChildProcess
  private let input = Pipe()
  private var answers = 0
  private var complaints: [String] = []

  init(_ site: Site) throws {
    process = try ChildProcess(
      ["/usr/bin/python3", Site.support("pages.py"), chromium, site.file("browser")],
      environment: ["PATH": "/usr/bin:/bin", "HOME": site.folder.path], output: nil, input: input.fileHandleForReading,
      errors: .standardError)
  }

  deinit { process.end() }

  @discardableResult
  func order(_ page: Int, _ order: [String: Any]) throws -> Any? {
    let line = try JSONSerialization.data(withJSONObject: order.merging(["page": page]) { $1 })
    try input.fileHandleForWriting.write(contentsOf: line + [0x0A])
    answers += 1
    guard process.waitForLines(answers, seconds: 90), let answer = Site.objects(process.outputSoFar).last else {
      throw Broken("the browser doesn't answer \(order): \(process.outputSoFar.suffix(500))")
    }
    complaints += answer["complaints"] as? [String] ?? []
    return answer["value"]
  }

  /// The errors and violations of the page's policy so far.
  func takeComplaints() -> [String] {
    defer { complaints = [] }
    return complaints
  }

  func value(_ expression: String, _ page: Int) throws -> Any? { try order(page, ["value": expression]) }

  /// Waits until the expression is true.
  func holds(_ expression: String, _ page: Int) throws -> Bool { try order(page, ["wait": expression]) as? Bool == true }

  func shows(_ text: String, _ page: Int) throws -> Bool {
    try holds("document.getElementById('main').innerText.includes(\(Self.quoted(text)))", page)
  }

  /// The text that the page shows, for the message of a failed test.
  func text(_ page: Int) -> String {
    (try? value("document.getElementById('main').innerText", page) as? String) ?? "nothing"
  }

  private static func quoted(_ text: String) throws -> String {
    String(decoding: try JSONSerialization.data(withJSONObject: text, options: .fragmentsAllowed), as: UTF8.self)
  }

  func open(_ address: String, _ page: Int) throws {
    try order(page, ["call": "Page.navigate", "with": ["url": address]])
    _ = try holds("document.getElementById('login')?.hidden === false", page)
  }

  func logIn(_ key: String, _ page: Int) throws {
    try order(page, ["value": "document.getElementById('secret').focus(); document.getElementById('secret').select()"])
    try order(page, ["press": [key, "Enter"]])
  }

  /// Opens a page of the console, without a reload.
  func go(_ place: String, _ page: Int) throws {
    try order(page, ["value": "location.hash = \(try Self.quoted("#/" + place))"])
    let name = place.prefix { $0.isLetter }
    _ = try holds("document.querySelector('nav [aria-current]')?.hash === '#/\(name)'", page)
  }

  func look(_ scheme: String, width: Int, _ page: Int) throws {
    let feature = ["name": "prefers-color-scheme", "value": scheme]
    try order(page, ["call": "Emulation.setEmulatedMedia", "with": ["features": [feature]]])
    let metrics: [String: Any] = ["width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false]
    try order(page, ["call": "Emulation.setDeviceMetricsOverride", "with": metrics])
  }

  /// Presses Tab until the expression is true.
  func tab(to expression: String, _ page: Int) throws {
    for _ in 0..<60 {
      if try value(expression, page) as? Bool == true { return }
      try order(page, ["press": ["Tab"]])
    }
    throw Broken("no Tab leads to \(expression)")
  }

  /// Clicks the button of an operation, fills in the dialog and confirms it.
  func click(_ path: String, _ page: Int, _ fields: [String: String] = [:]) throws {
    let button = "document.querySelector('[data-post=\"\(path)\"]')"
    guard try holds("\(button) !== null", page) else { throw Broken("there is no button for \(path)") }
    try order(page, ["value": "\(button).focus(); \(button).click()"])
    // Deletions need a reason.
    for (name, value) in fields.merging(["reason": "a test"], uniquingKeysWith: { given, _ in given }) {
      try order(page, ["value": "document.getElementById('\(name)').value = \(try Self.quoted(value))"])
    }
    try order(page, ["value": "document.getElementById('confirm').click()"])
    guard try holds("!document.getElementById('dialog').open", page) else { throw Broken("\(path) was refused") }
  }

  /// Looks at dead letters say from now on that they haven't seen one of them.
  static let shortLook = """
    (() => {
      const ask = window.fetch;
      window.fetch = async (path, ...more) => {
        const answer = await ask(path, ...more);
        if (!path.includes("/fleet/dead?")) return answer;
        const body = await answer.json();
        return new Response(JSON.stringify({ ...body, seen: body.ready - 1 }));
      };
    })()
    """

  /// Keeps the next answer about the fleet until `answerLate` is called.
  static let lateStatus = """
    (() => {
      const ask = window.fetch;
      window.fetch = async (path, ...more) => {
        const answer = await ask(path, ...more);
        if (!path.endsWith("/fleet/status")) return answer;
        window.fetch = ask;
        const { ok, status } = answer, body = await answer.json();
        return { ok, status, json: () => new Promise(resolve => { window.answerLate = () => resolve(body); }) };
      };
    })()
    """

  /// Visible texts with a contrast below 4.5 : 1 (WCAG 2.1, 1.4.3).
  static let faintText = """
    (() => {
      const parts = color => color.match(/[\\d.]+/g).map(Number);
      const light = color => parts(color).slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      const ground = node => {
        for (; node; node = node.parentElement) {
          const color = getComputedStyle(node).backgroundColor;
          if ((parts(color)[3] ?? 1) > 0) return color;
        }
      };
      const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode.parentElement, text = walker.currentNode.nodeValue.trim();
        if (!text || !node.checkVisibility()) continue;
        const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${text.slice(0, 40)}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
      }
      return found;
    })()
    """
}
