import Broker
import Foundation
import Settings
import TestSupport
import Testing

@testable import pushfleet

@Suite("pushfleet dead", .blocking)
struct DeadCommandTests {
  /// Letters written by a worker and by the broker: ids by their queues.
  private func letters(_ site: Site) throws {
    func letter(_ id: String, _ origin: String, _ error: String) -> [String: Any] {
      let headers = [
        "x-push-error": error, "x-push-reason": "said by nobody", "x-push-failed-at": "2026-11-20T21:22:00.000Z",
        "x-push-origin": origin,
      ]
      return [
        "body": ["to": token(1), "data": ["m": id]], "exchange": "\(site.prefix).dead", "routing_key": "dead",
        "properties": ["message_id": id, "app_id": Site.app, "headers": headers],
      ]
    }
    let expired: [String: Any] = ["message_id": "expired", "app_id": Site.app, "expiration": "1"]
    try site.publish(lines: [
      letter("high-1", "send.high", "Unavailable"), letter("high-2", "send.high", "Unavailable"),
      letter("change", "registry", "InvalidParameters"), letter("read", "acks", "InvalidParameters"),
      letter("lost", "nowhere", "Unavailable"),
      ["body": "{}", "exchange": "\(site.prefix).send", "routing_key": "normal", "properties": expired],
      ["body": "{}", "exchange": "\(site.prefix).send", "routing_key": "urgent", "properties": ["message_id": "stray"]],
    ])
    #expect(try eventually { try site.depths(["dead", "send.normal"]) == [7, 0] })
  }

  @Test("counts and shows letters without changing them, sends each back to its queue, and drops the rest")
  func wholeLife() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    func dead(_ words: String...) throws -> Site.Ended {
      try site.run(["dead"] + words + ["--config", site.file("pushfleet.json5")])
    }
    #expect(try dead("list").output.contains("no dead letters"))
    try letters(site)

    for _ in 0..<2 {
      let groups = Site.objects(try dead("list", "--json").output)
      #expect(groups.count == 6 && groups.reduce(0) { $0 + ($1["count"] as? Int ?? 0) } == 7)
      #expect(groups.first?["origin"] as? String == "send.high" && groups.first?["count"] as? Int == 2)
    }
    let shown = Site.objects(try dead("show", "--json").output)
    #expect(shown.compactMap { $0["message_id"] as? String }.prefix(4) == ["high-1", "high-2", "change", "read"])
    #expect(Site.objects(try dead("show", "high-2", "--json").output).count == 1)
    #expect(try dead("show", "--reason", "BY NOBODY", "--limit", "1").output.contains("high-1"))
    let plan = try dead("replay", "--dry-run", "--json")
    #expect(plan.status == 65 && Site.objects(plan.output).first?["would_replay"] as? Int == 6, "\(plan.output)")
    #expect(try site.depths(["dead"]) == [7])

    let some = try dead("replay", "--error", "Unavailable", "--limit", "1", "--json")
    #expect(some.status == 0 && Site.objects(some.output).first?["replayed"] as? Int == 1, "\(some.output)")
    let all = try dead("replay", "--rate", "1000/s", "--json")
    #expect(all.status == 65 && Site.objects(all.output).first?["replayed"] as? Int == 5, "\(all.output)")
    #expect(try site.depths(["send.high", "send.normal", "registry", "acks", "dead"]) == [2, 2, 1, 1, 1])
    let high = try site.take("send.high")
    #expect(high.map(\.id) == ["high-1", "high-2"] && high.allSatisfy { $0.headers.keys.sorted() == ["x-push-origin"] })

    let refused = try dead("drop")
    #expect(refused.status == 64 && refused.output.contains("--yes") && refused.output.contains("for good"))
    #expect(try dead("drop", "--yes", "--json").output.contains(#"{"dropped":1}"#))
    #expect(try site.depths(["dead"]) == [0])
    try site.configure(port: 1, settings: "registry: 'sqlite:missing.db',")
    let unrecorded = try dead("drop", "--yes")
    #expect(unrecorded.status == 69 && !unrecorded.output.contains("CommandFailure"), "\(unrecorded.output)")
    for subject in ["the beginning of `dead drop`", "`dead drop`, 0 dead letters,"] {
      #expect(
        unrecorded.output.contains("pushfleet: \(subject) can't be recorded in the audit: registry "), "\(unrecorded.output)")
    }
  }

  @Test("interrupted, says how far it came, and no letter is lost or duplicated")
  func interrupted() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    try publish(20, site)
    let replay = try site.start(["dead", "replay", "--config", site.file("pushfleet.json5"), "--rate", "60/m"])
    #expect(try eventually { try site.depths(["send.high"]) != [0] })
    replay.signal(2)
    #expect(replay.wait() == 130 && replay.outputSoFar.contains("the same command goes on"), "\(replay.outputSoFar)")
    #expect(try site.depths(["dead", "send.high"]).reduce(0, +) == 20)
    #expect(try site.run(["dead", "replay", "--config", site.file("pushfleet.json5")]).status == 0)
    #expect(Set(try site.take("send.high").map(\.id)).count == 20)
  }

  @Test("interrupted while the broker confirms nothing, ends within seconds and reports unknown letters, and no letter is lost")
  func blocked() throws {
    let broker = try Broker()
    let site = try Site(broker: broker)
    try site.configure(port: 1)
    try site.declareTopology()
    try publish(3, site)
    let replay = try site.start(["dead", "replay", "--config", site.file("pushfleet.json5"), "--rate", "2/m"])
    #expect(try eventually { try site.depths(["send.high"]) != [0] })
    try broker.raiseMemoryAlarm()
    #expect(replay.waitForOutput("the broker accepts no messages now", seconds: 90))
    let begin = Date()
    replay.signal(2)
    #expect(replay.wait() == 130 && Date().timeIntervalSince(begin) < 30, "\(replay.outputSoFar)")
    try broker.clearMemoryAlarm()
    // The one that was on its way when the broker stopped reading may be there twice, and the command has said so.
    #expect(replay.outputSoFar.contains("may be there twice"))
    #expect(try eventually { (3...4).contains(try site.depths(["dead", "send.high"]).reduce(0, +)) })
  }

  @Test("at a rate, lasts longer than the broker's delivery timeout, and handles each letter once")
  func longReplay() throws {
    let broker = try Broker(configuration: ["consumer_timeout = 8000"], erlang: "-rabbit channel_tick_interval 500")
    let site = try Site(broker: broker)
    try site.configure(port: 1)
    try site.declareTopology()
    let stay = [0, 1, 7, 12]
    try publish(20, site) { stay.contains($0) ? "nowhere" : "send.high" }
    let replay = try makeReplay(site, rate: 2, hold: 1)
    try replay.run()
    #expect(replay.replayed == 16 && replay.refused.values.reduce(0, +) == 4, "\(replay.refused)")
    #expect(try site.take("send.high").map(\.id) == (0..<20).filter { !stay.contains($0) }.map(String.init))
    #expect(try site.take("dead").map(\.id) == stay.map(String.init))
  }

  @Test("interrupted while its consumer is connecting, ends at once")
  func interruptedEarly() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    try publish(3, site)
    let replay = try makeReplay(site, rate: 1)
    interruptWhenCounted(replay)
    try replay.run()
    #expect(replay.replayed == 0)
    #expect(try site.depths(["dead", "send.high"]) == [3, 0])
  }

  @Test("stopped while the broker is frozen, ends within seconds and says how far it came")
  func frozen() throws {
    let broker = try Broker()
    defer { broker.stop() }
    let site = try Site(broker: broker)
    try site.configure(port: 1)
    try site.declareTopology()
    try publish(3, site)
    let replay = try makeReplay(site, rate: 0.1)
    var stopped: ContinuousClock.Instant?
    func stopAfterFirst() {
      replay.loop.schedule(after: 0.5) {
        guard replay.replayed == 1 else { return stopAfterFirst() }
        broker.freeze()
        stopped = .now
        replay.stop()
      }
    }
    stopAfterFirst()
    let failure = #expect(throws: CommandFailure.self) { try replay.run() }
    #expect(failure?.message.contains("no sign of life from the broker); 1 replayed") == true, "\(failure?.message ?? "")")
    #expect(try ContinuousClock.now - #require(stopped) < .seconds(15))
  }

  private func makeReplay(_ site: Site, rate: Double, hold: Double = LetterWalk.longestHold) throws -> LetterReplay {
    let configuration = try Configuration.load(path: site.file("pushfleet.json5"), environment: [:])
    let replay = try LetterReplay(configuration, LetterFilter(), rate: rate, isDry: false, hold: hold)
    replay.handlesSignals = false
    return replay
  }

  private func interruptWhenCounted(_ replay: LetterReplay) {
    replay.loop.schedule(after: 0) {
      if replay.hasCounted { replay.interrupt() } else { interruptWhenCounted(replay) }
    }
  }

  @Test("shows letters after it has put them back, even if the reader is slow")
  func slowReader() throws {
    let site = try Site()
    try site.configure(port: 1)
    try site.declareTopology()
    try publish(100, site, body: String(repeating: "x", count: 4_000))
    let pipe = site.file("shown")
    #expect(mkfifo(pipe, 0o600) == 0)
    let reader = open(pipe, O_RDWR)
    let child = try ChildProcess(
      ["/bin/bash", "-c", "exec '\(Program.path)' dead show --config '\(site.file("pushfleet.json5"))' > '\(pipe)'"],
      environment: Site.environment, output: site.file("show.log"))
    defer { child.end() }
    var first = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
    #expect(poll(&first, 1, 90_000) == 1)
    #expect(try site.depths(["dead"]) == [100])
    close(reader)
    _ = child.wait()
  }

  private func publish(
    _ count: Int, _ site: Site, body: String = "{}", origin: (Int) -> String = { _ in "send.high" }
  ) throws {
    try site.publish(
      lines: (0..<count).map {
        [
          "body": body, "exchange": "\(site.prefix).dead", "routing_key": "dead",
          "properties": ["message_id": "\($0)", "headers": ["x-push-origin": origin($0)]],
        ]
      })
  }
}
