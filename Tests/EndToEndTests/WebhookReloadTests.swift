import Foundation
import TestSupport
import Testing

extension WebhookTests {
  /// Replaces a file as a whole, because a process watches it.
  private func replace(_ name: String, _ text: String, _ site: Site) throws {
    try Data(text.utf8).write(to: URL(filePath: site.file(name)), options: .atomic)
  }

  /// Sends SIGHUP and waits until the settings are applied.
  private func reload(_ process: ChildProcess) throws {
    let signal = #""because":"SIGHUP""#
    let before = process.outputSoFar.ranges(of: signal).count
    process.signal(SIGHUP)
    let isReloaded = eventually {
      let ranges = process.outputSoFar.ranges(of: signal)
      return ranges.count > before && process.outputSoFar[ranges[before].upperBound...].contains(#""reloaded""#)
    }
    try #require(isReloaded, "\(process.outputSoFar)")
  }

  /// The call with the result of a further push.
  private func call(_ site: Site, _ receiver: Receiver, _ number: Int) throws -> Receiver.Call {
    let before = receiver.calls.count
    try site.send(tokens: [token(number)], app: Site.app)
    try site.drain()
    try #require(eventually { receiver.calls.count > before })
    return receiver.calls[before]
  }

  @Test("SIGHUP applies another secret and address; settings that can't be used change nothing")
  func reloaded() throws {
    let (site, receiver, _) = try start(#"["results"]"#, secrets: #""billing.secret""#)
    try replace("billing.secret", Self.newer, site)
    let text = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    try replace("webhooks.json5", text, site)
    let process = try serve(site, ["--config", site.file("webhooks.json5")])
    let first = try call(site, receiver, 10)
    #expect(!first.isGood && first.path == "/events")

    try replace("billing.secret", Self.secret, site)
    try replace("webhooks.json5", text.replacing("/events\"", with: "/other\""), site)
    try reload(process)
    let second = try call(site, receiver, 11)
    #expect(second.isGood && second.path == "/other")

    try replace("billing.secret", "whsec_c2hvcnQ=", site)
    try replace("webhooks.json5", text, site)
    try reload(process)
    #expect(process.outputSoFar.contains("a webhook can't use its new settings"))
    #expect(process.outputSoFar.contains("billing.secret") && !process.outputSoFar.contains("c2hvcnQ="))
    let third = try call(site, receiver, 12)
    #expect(third.isGood && third.path == "/other")

    try replace("billing.secret", Self.secret, site)
    try replace("webhooks.json5", "{", site)
    process.signal(SIGHUP)
    #expect(process.waitForOutput("the old configuration stays in force", seconds: 90))
    #expect(try call(site, receiver, 13).isGood)

    try replace("webhooks.json5", text.replacing("results: \"all\"", with: "results: \"all\", drainTimeout: 7"), site)
    try reload(process)
    #expect(process.outputSoFar.contains("take effect only after a restart") && process.outputSoFar.contains("drainTimeout"))
    let fifth = try call(site, receiver, 14)
    #expect(fifth.isGood && fifth.path == "/events")
    end(process)
    #expect(Set(receiver.accepted.map(\.message)).count == 5)
  }

  @Test("a pause after 410 that the registry could not store doesn't pause a webhook that has been replaced since")
  func replaced() throws {
    let (site, receiver, _) = try start(#"["results"]"#)
    let text = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    try replace("webhooks.json5", text, site)
    let process = try serve(site, ["--config", site.file("webhooks.json5")])
    try receiver.answer("410")
    let lock = try LockHolder(site.file("registry.db"), "IMMEDIATE")
    #expect(try call(site, receiver, 20).status == 410)
    #expect(process.waitForOutput("the registry doesn't know that a webhook is paused", seconds: 60))
    try replace("webhooks.json5", text.replacing("billing:", with: "another:"), site)
    try reload(process)
    try receiver.answer("200")
    try replace("webhooks.json5", text.replacing("/events\"", with: "/other\""), site)
    try reload(process)
    lock.end()
    for number in [21, 22, 23] { #expect(try call(site, receiver, number).path == "/other") }
    #expect(process.outputSoFar.ranges(of: "the registry doesn't know that a webhook is paused").count == 1)
    let listed = Site.objects(try site.run(["webhooks", "list", "--json", "--config", site.file("webhooks.json5")]).output)
    #expect(listed.allSatisfy { $0["mode"] as? String != "paused" }, "\(listed)")
    end(process)
  }

  @Test("a missing queue is named once, however often the process looks for it")
  func noQueue() throws {
    let (site, _, config) = try start()
    try site.peer(["delete", "\(site.prefix).webhook.\(Site.app).billing"])
    let process = try serve(site, config)
    #expect(process.waitForOutput("a webhook has no queue", seconds: 60))
    try site.drain()
    try site.declareTopology()
    #expect(process.waitForOutput(#""consuming""#, seconds: 60))
    #expect(process.outputSoFar.ranges(of: "a webhook has no queue").count == 1, "\(process.outputSoFar)")
    end(process)
  }

  @Test("a reload applies another broker, also to a process that can't reach the old one")
  func otherBroker() throws {
    let (site, receiver, _) = try start(#"["results"]"#)
    let text = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    let gone = text.replacing(site.brokerURI, with: "amqp://127.0.0.1:\(try FreePorts.take(1)[0])")
    try replace("webhooks.json5", gone, site)
    let process = try serve(site, ["--config", site.file("webhooks.json5")])
    #expect(process.waitForOutput("no broker connection", seconds: 60))
    try replace("webhooks.json5", text, site)
    try reload(process)
    #expect(try call(site, receiver, 30).isGood)
    end(process)
  }

  @Test("a reload starts new webhooks, ends removed ones and calls a failing receiver at once; metrics and probes show it")
  func figures() throws {
    let (site, receiver, config) = try start(#"["results"]"#)
    let port = try FreePorts.take(1)[0]
    let probe = HTTPProbe(port: port)
    func shows(_ lines: String...) -> Bool {
      let text = probe.ask("/metrics")?.body ?? ""
      return lines.allSatisfy { text.contains("pushfleet_webhook_\($0)\n") }
    }
    let billing = #"webhook="\#(Site.app)/billing""#, statistics = #"webhook="\#(Site.app)/statistics""#
    try receiver.answer("503 3600")
    let process = try serve(site, config, environment: ["PUSHFLEET_METRICS": "127.0.0.1:\(port)"])
    #expect(eventually { probe.ask("/readyz")?.status == 200 } && probe.ask("/livez")?.status == 200)
    #expect(shows("calls_total{\(billing),outcome=\"failed\"} 0", "events_delivered_total{\(billing)} 0"))
    #expect(try call(site, receiver, 10).status == 503)
    #expect(
      eventually { shows("calls_total{\(billing),outcome=\"failed\"} 1", "events_returned_total{\(billing)} 1") },
      "\(process.outputSoFar)")
    #expect(eventually { probe.ask("/metrics")?.body.contains(/failing_seconds\{.*billing"\} [1-9]/) == true })
    #expect(probe.ask("/readyz")?.status == 200)

    try reload(process)
    #expect(eventually { shows("calls_total{\(billing),outcome=\"accepted\"} 1", "failing_seconds{\(billing)} 0") })
    #expect(shows("events_delivered_total{\(billing)} 1", "paused{\(billing)} 0", "ready{\(billing)} 1"))

    let text = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    let other = text.replacing("webhooks: { billing", with: "webhooks: { statistics")
      .replacing("/events\"", with: "/statistics\"")
    let settings = try #require(other.firstMatch(of: /statistics: \{[^}]*\},?/)).0
    try replace(
      "pushfleet.json5",
      text.replacing("[\"results\"]", with: "[\"feedback\"]").replacing("webhooks: {", with: "webhooks: { \(settings),"), site)
    try reload(process)
    #expect(process.outputSoFar.contains("a webhook has new kinds of events"))
    #expect(eventually { probe.ask("/readyz")?.body.contains("\(Site.app)/statistics") == true })
    #expect(shows("ready{\(billing)} 1", "ready{\(statistics)} 0"))
    try site.declareTopology()
    #expect(eventually { probe.ask("/readyz")?.status == 200 })
    #expect(try call(site, receiver, 11).path == "/statistics")
    #expect(eventually { depth(site) == 0 }, "the queue still gets results, which are no longer wanted")

    try replace("pushfleet.json5", other, site)
    try reload(process)
    #expect(eventually { !shows("ready{\(billing)} 1") && shows("ready{\(statistics)} 1") })
    #expect(try call(site, receiver, 12).path == "/statistics")
    #expect(
      eventually { depth(site) == 1 } && receiver.calls.map(\.path) == ["/events", "/events", "/statistics", "/statistics"])
    #expect(try site.run(["webhooks", "pause", "\(Site.app)/statistics"] + config).status == 0)
    #expect(eventually { shows("paused{\(statistics)} 1") } && probe.ask("/readyz")?.status == 200)
    end(process)
  }
}
