import Foundation
import TestSupport
import Testing

@Suite("pushfleet doctor, status and config check", .blocking)
struct DoctorTests {
  @Test("finds faults of queues, credentials and providers, with remedies")
  func doctor() throws {
    let site = try Site()
    try site.startSimulator()
    let fcm = try site.startFCM()
    try site.configureFleet("sqlite:registry.db", apps: fcm)
    func doctor() throws -> (status: Int32, findings: [[String: Any]], output: String) {
      let ended = try site.run(["doctor", "--config", site.file("pushfleet.json5"), "--json"])
      return (ended.status, Site.objects(ended.output), ended.output)
    }
    func said(_ findings: [[String: Any]], _ level: String, _ words: String) -> Bool {
      findings.contains { $0["level"] as? String == level && ($0["finding"] as? String ?? "").contains(words) }
    }

    let bare = try doctor()
    #expect(bare.status == 78 && said(bare.findings, "error", "queues are missing"), "\(bare.output)")
    try site.declareTopology()
    try site.importDevices([1], #""user":"u""#)
    let good = try doctor()
    #expect(good.status == 0, "\(good.output)")
    #expect(said(good.findings, "ok", "with the fleet's settings") && said(good.findings, "warning", "no worker consumes"))
    #expect(
      said(good.findings, "ok", "key, team and topic are accepted") && said(good.findings, "ok", "writable"), "\(good.output)")
    #expect(said(good.findings, "ok", "account, project and permission"), "\(good.output)")

    try site.configureFleet("sqlite:nowhere/registry.db", apps: fcm)
    let lost = try doctor()
    #expect(lost.status == 78 && said(lost.findings, "error", "its folder doesn't exist"), "\(lost.output)")
    try site.configureFleet("sqlite:registry.db", apps: fcm)

    let other = try site.run(["doctor", "--config", site.file("pushfleet.json5"), "--app", "com.exampel.app"])
    #expect(other.status == 64 && other.output.contains("did you mean \(Site.app)?"), "\(other.output)")

    site.stopSimulator()
    let gone = try doctor()
    #expect(gone.status == 69 && said(gone.findings, "unreachable", "the provider can't be reached"), "\(gone.output)")
    try site.startSimulator(script: ["*": ["status": 400, "reason": "TopicDisallowed"]])
    try site.configureFleet("sqlite:registry.db", apps: fcm)
    let disallowed = try doctor()
    #expect(disallowed.status == 78 && said(disallowed.findings, "error", "TopicDisallowed"), "\(disallowed.output)")
    #expect(disallowed.findings.contains { ($0["remedy"] as? String ?? "").contains("`topic`") })
    let misspelled = try site.run(["config", "check", site.write("{ brokr: 1 }", to: "bad.json5")])
    #expect(
      misspelled.status == 78
        && misspelled.output.contains("bad.json5:1:3: error: brokr is not a setting: did you mean broker?"))
  }

  @Test("names the user of the metrics port, workers' troubles with remedies, and the way for a user to log in")
  func remedies() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    let metrics = "metrics: '127.0.0.1:\(port)',"
    try site.startSimulator(script: ["*": ["status": 403, "reason": "InvalidProviderToken"]], settings: metrics)
    let config = ["--config", site.file("pushfleet.json5")]
    func doctor() throws -> [(about: String, finding: String, remedy: String)] {
      Site.objects(try site.run(["doctor", "--json"] + config).output).map {
        ($0["about"] as? String ?? "", $0["finding"] as? String ?? "", $0["remedy"] as? String ?? "")
      }
    }
    try site.declareTopology()
    #expect(try doctor().contains { $0.about == "metrics 127.0.0.1:\(port)" && $0.finding == "free" })
    let worker = try site.startWorker()
    try site.send(tokens: [token(1)])
    #expect(worker.waitForOutput("docs/operate/runbook.md#pushfleetcredentialrefused", seconds: 90), "\(worker.outputSoFar)")
    // A worker without processor time may not answer this time.
    var findings = try doctor()
    #expect(
      try eventually {
        findings = try doctor()
        return findings.contains { $0.about == "workers" }
      }, "\(findings)")
    let trouble = try #require(findings.first { $0.about == "workers" })
    #expect(trouble.finding == "\(Site.app) APNs production is in trouble: InvalidProviderToken")
    #expect(trouble.remedy.contains("`keyID`") && trouble.remedy.contains("docs/operate/runbook.md#pushfleetcredentialrefused"))
    #expect(findings.contains { $0.about == "metrics 127.0.0.1:\(port)" && $0.finding == "a worker is there" }, "\(findings)")
    var said = ""
    #expect(
      try eventually {
        said = try site.run(["status"] + config).output
        return said.contains("→ InvalidProviderToken: check `key`")
      }, "\(said)")
    let request = try site.write(#"{"to":"\#(token(1))","notification":{"body":"x"}}"#, to: "request.json")
    #expect(
      try eventually {
        said = try site.run(["send", "--wait", "--timeout", "1", request] + config).output
        return said.contains("requests wait for \(Site.app) APNs production since 20")
          && said.contains("Z: InvalidProviderToken: check `key`")
      }, "\(said)")
    worker.signal(15)
    #expect(worker.wait() == 0)

    for (uri, remedy) in [
      (site.broker.uri.replacing("guest:guest@", with: "guest:wrong@"), "rabbitmqctl change_password 'guest'"),
      (site.broker.uri + "/no-where", "rabbitmqctl add_vhost 'no-where'"),
    ] {
      site.brokerURI = uri
      try site.configure(port: site.port, settings: metrics)
      findings = try doctor()
      #expect(findings.contains { $0.about.hasPrefix("broker ") && $0.remedy.contains(remedy) }, "\(findings)")
      let refused = try site.run(["dead", "list"] + config).output
      #expect(
        refused.contains(/pushfleet: 127\.0\.0\.1:\d+: broker refused .*; check `broker`; `pushfleet doctor` says more/),
        "\(refused)")
    }
  }

  @Test("reports an expired certificate once in doctor and as a warning in config check, with the date")
  func endedCertificate() throws {
    let site = try Site()
    let made = site.certificates
    let apns =
      "certificate: '\(made.expired)', key: '\(made.expiredKey)', topic: '\(Site.app)', endpoint: 'https://127.0.0.1:1', ca: '\(made.authority)'"
    let file = try site.write(
      "{ broker: '\(site.brokerURI)', prefix: '\(site.prefix)', apps: { '\(Site.app)': { apns: { \(apns) } } } }",
      to: "pushfleet.json5")
    let checked = try site.run(["config", "check", file])
    #expect(checked.status == 0 && checked.output.contains(/warning: .*\.certificate ended on 20/), "\(checked.output)")
    try site.declareTopology()
    let looked = try site.run(["doctor", "--config", file, "--json"])
    let found = Site.objects(looked.output).filter { ($0["about"] as? String ?? "").hasPrefix(Site.app) }
    #expect(looked.status == 78 && found.count == 1, "\(looked.output)")
    #expect((found.first?["finding"] as? String ?? "").hasPrefix("its certificate has ended, on 20"), "\(looked.output)")
  }

  @Test("distinguishes a fleet whose every provider is in trouble from one without a worker")
  func idleWorkers() throws {
    let site = try Site()
    try site.startSimulator()
    let worker = try site.startWorker()
    let config = ["--config", site.file("pushfleet.json5")]
    site.stopSimulator()
    try site.send(tokens: [token(1)])
    var said = ""
    #expect(
      try eventually {
        said = try site.run(["doctor"] + config).output
        return said.contains("workers run, but take nothing: every provider is in trouble")
      }, "\(said)")
    #expect(said.contains("pushfleet status") && !said.contains("start a worker"), "\(said)")
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.run(["doctor"] + config).output.contains("no worker consumes"))
  }

  @Test(
    "finds missing permissions of a worker without side effects; a worker that can't answer status says so once and delivers")
  func permissions() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    let users = ["producer": "^$", "worker": "^\(site.prefix)[.](?!control|hold[.]).*"].map { ("\($0)-\(site.prefix)", $1) }
    let calls = users.map { name, configure in
      let others =
        name.hasPrefix("worker")
        ? "<<\"^(\(site.prefix)[.].*|amq.default)$\">>, <<\".*\">>" : "<<\"^\(site.prefix)[.]send$\">>, <<\"^$\">>"
      return
        "ok = A:add_user(<<\"\(name)\">>, <<\"p\">>, <<\"t\">>), ok = A:set_permissions(<<\"\(name)\">>, <<\"/\">>, <<\"\(configure)\">>, \(others), <<\"t\">>)"
    }
    try site.broker.evaluate("A = rabbit_auth_backend_internal, \(calls.joined(separator: ", ")).")
    func doctor(_ user: String) throws -> (status: Int32, findings: [String]) {
      site.brokerURI = site.broker.uri.replacing("guest:guest@", with: "\(user)-\(site.prefix):p@")
      try site.configure(port: site.port)
      let ended = try site.run(["doctor", "--config", site.file("pushfleet.json5"), "--json"])
      return (ended.status, Site.objects(ended.output).map { "\($0["level"] ?? "") \($0["finding"] ?? "")" })
    }
    let producer = try doctor("producer")
    let p = site.prefix
    for words in [
      "error workers with this user may not declare \(p).stray, \(p).send", "may not read \(p).send.high, \(p).fanout.high",
      "may not write to \(p).fanout, \(p).retry, \(p).hold, \(p).events, \(p).dead", "can't answer those who ask for results",
      "warning workers with this user can't declare hold queues",
    ] { #expect(producer.status == 78 && producer.findings.contains { $0.contains(words) }, "\(words): \(producer.findings)") }
    // What they are refused is said in the broker's words, not as a lost connection or a missing worker.
    try site.publish(lines: [
      ["body": "{}", "exchange": "\(p).dead", "routing_key": "dead", "properties": [:] as [String: Any]]
    ])
    let config = ["--config", site.file("pushfleet.json5")]
    let letters = try site.run(["dead", "list"] + config)
    #expect(letters.status == 69 && letters.output.contains("pushfleet: broker refused access: "), "\(letters.output)")
    let unasked = try site.run(["status"] + config)
    #expect(unasked.output.contains("this user may not ask the workers: it can't write to \(p).control"), "\(unasked.output)")
    #expect(!unasked.output.contains("no worker"), "\(unasked.output)")
    _ = try site.take("dead")
    let limited = try doctor("worker")
    #expect(limited.status == 0 && limited.findings.count { $0.hasPrefix("warning") } == 3, "\(limited.findings)")
    #expect(limited.findings.contains { $0.hasPrefix("warning") && $0.contains("can't answer `pushfleet status`") })
    #expect(limited.findings.contains { $0.hasPrefix("ok RabbitMQ 3.") || $0.hasPrefix("ok RabbitMQ 4.") })
    #expect(try site.depths(["dead", "send.normal", "fanout.normal", "retry.1s"]).allSatisfy { $0 == 0 })

    let worker = try site.startWorker()
    try site.send(tokens: [token(1)])
    #expect(try eventually { try site.deliveries()[token(1)] == 1 })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let said = worker.outputSoFar.components(separatedBy: "questions of pushfleet status can't be answered").count - 1
    #expect(said == 1, "\(worker.outputSoFar)")
  }

  @Test("counts queues and finds every worker, through any permitted exchange, and says when none runs")
  func status() throws {
    let site = try Site()
    try site.startSimulator()
    func status() throws -> [[String: Any]] {
      let ended = try site.run(["status", "--config", site.file("pushfleet.json5"), "--json"])
      #expect(ended.status == 0, "\(ended.output)")
      return Site.objects(ended.output)
    }
    let nothing = try status()
    #expect(nothing.first?["ready"] is NSNull && nothing.last?["workers"] as? Int == 0)
    let workers = try [site.startWorker(), site.startWorker()]
    try site.send(tokens: [token(1), token(2)])
    var latest: [[String: Any]] = []
    #expect(
      try eventually {
        latest = try status().filter { $0["kind"] as? String == "worker" }
        return latest.count == 2 && latest.reduce(0) { $0 + ($1["delivered"] as? Int ?? 0) } == 2
      }, "\(latest)")
    #expect(latest.allSatisfy { $0["state"] as? String == "ok" && $0["shards"] as? Int == 1 })
    // A worker without processor time may not answer this time.
    var text = ""
    #expect(
      try eventually {
        text = try site.run(["top", "--once", "--config", site.file("pushfleet.json5")]).output
        return text.contains("WORKER")
      }, "\(text)")
    #expect(text.contains("\(site.prefix).send.high") && !text.contains("\u{1B}"), "\(text)")
    for worker in workers {
      worker.signal(15)
      #expect(worker.wait() == 0)
    }
    #expect(try site.run(["status", "--config", site.file("pushfleet.json5")]).output.contains("no worker is running"))
  }
}
