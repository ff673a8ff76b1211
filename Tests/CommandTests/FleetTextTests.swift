import Foundation
import Testing

@testable import pushfleet

@Suite("A fleet's picture")
struct FleetTextTests {
  private func report(_ name: String, shards: Int = 1, state: String = "ok", trouble: Bool = false) throws -> WorkerAnswer {
    let text = """
      {"worker":"\(name)","version":"1","started_at":"2026-11-20T21:22:00.000Z","state":"\(state)","shards":\(shards),"in_hand":1234567,
       "trace_noted":1,"trace_left_out":2,"delivered":98765432,"delivered_per_second":1234.6,"failed":3,"errors":{"Unavailable":2,"NotRegistered":1},
       "latencies":[{"of":"provider_answer","provider":"apns","lane":null,"count":4,"bounds":[0.01,0.1],"counts":[2,2,0]},
        {"of":"publish_to_answer","provider":"apns","lane":"high","count":9,"bounds":[1,60],"counts":[0,8,1]}],
       "pools_in_trouble":\(trouble ? 1 : 0),"holds":[{"app":"a","ready":7}],
       "pools":[{"name":"com.example.app APNs production","state":"\(trouble ? "in trouble" : "ok")","reason":"no connection",
        "remedy":"check the way to the provider","runbook":"docs/operate/runbook.md#pushfleetproviderintrouble","connections":2,"streams":10}]}
      """
    return try #require(WorkerAnswer(Array(text.utf8), now: 1_795_209_720 + 90))
  }

  private func picture(_ workers: [WorkerAnswer], consumers: Int) -> FleetPicture {
    var picture = FleetPicture(prefix: "push", address: "127.0.0.1:5672", at: 1_795_209_720_000)
    picture.queues = [
      .init(name: "push.dead", ready: 12), .init(name: "push.send.normal", ready: 1_000_000, consumers: 4),
      .init(name: "push.acks"),
    ]
    picture.workers = workers
    picture.consumers = consumers
    return picture
  }

  @Test("fits every width, and has no escape sequence where no colour is wanted", arguments: [40, 80, 200])
  func widths(width: Int) throws {
    let workers = try (1...5).map { try report("a-host-with-a-long-name-\($0):12345", trouble: $0 == 2) }
    let lines = FleetText(picture: picture(workers, consumers: 6), width: width, hasColour: false).lines
    #expect(lines.allSatisfy { $0.count <= width && !$0.contains("\u{1B}") })
    let text = lines.joined(separator: "\n")
    #expect(text.contains("1 more shard") && text.contains("in trouble") && text.contains("Unavailable"))
    if width == 200 {
      #expect(text.contains("1 min 30 s") && text.contains("1,234,567") && text.contains("there is no such queue"))
    }
  }

  @Test("says which share of the requests the trace kept, of all workers together, rounded down")
  func trace() throws {
    let workers = [try report("a"), try report("b")]
    let lines = FleetText(picture: picture(workers, consumers: 2), width: 120, hasColour: false).lines
    #expect(lines.contains("the trace kept 33 % of the requests since the workers began, failed ones first"))
  }

  private static let pod = "pushfleet-worker-6d5f8b7c9d-x7k2p:1"

  /// Cells of the table's line that begins with `start`, its heads for `WORKER`.
  private func cells(_ lines: [String], _ start: String) -> [String] {
    lines.first { $0.hasPrefix(start) }?.split(separator: "  ").map { $0.trimmingCharacters(in: .whitespaces) } ?? []
  }

  @Test("in 80 columns, a worker's long name gives way to how it stands and what it sends")
  func longNames() throws {
    let lines = FleetText(
      picture: picture([try report(Self.pod, state: "in trouble")], consumers: 1), width: 80, hasColour: false
    ).lines
    let heads = cells(lines, "WORKER")
    #expect(heads.first == "WORKER" && heads.suffix(4) == ["SENT/S", "FAILED/S", "SENT", "FAILED"], "\(heads)")
    #expect(heads.contains("STATE"))
    let worker = cells(lines, "pushflee")
    #expect(worker[0].contains("…") && worker[0].hasSuffix("x7k2p:1"), "\(worker)")
    #expect(worker[1] == "in trouble" && worker.suffix(4) == ["1,234", "0", "98,765,432", "3"], "\(worker)")
  }

  @Test("in 200 columns, all of a worker is shown")
  func wideNames() throws {
    let lines = FleetText(picture: picture([try report(Self.pod)], consumers: 1), width: 200, hasColour: false).lines
    #expect(
      cells(lines, "WORKER")
        == ["WORKER", "STATE", "UP", "SHARDS", "IN HAND", "ON STREAMS", "SENT/S", "FAILED/S", "SENT", "FAILED"])
    #expect(
      cells(lines, Self.pod)
        == [Self.pod, "ok", "1 min 30 s", "1", "1,234,567", "0", "1,234", "0", "98,765,432", "3"])
  }

  @Test(
    "sums up latencies and pools of all workers, those in trouble before the queues, all of them only where they are asked for")
  func sums() throws {
    let workers = try (1...3).map { try report("h:\($0)", trouble: $0 == 2) }
    let lines = FleetText(picture: picture(workers, consumers: 3), width: 100, hasColour: false).lines
    func line(_ start: String) -> [String] {
      lines.first { $0.hasPrefix(start) }?.split(separator: "  ").map { $0.trimmingCharacters(in: .whitespaces) } ?? []
    }
    #expect(line("apns: answers") == ["apns: answers", "12", "10 ms", "98 ms"])
    #expect(line("apns: from publishing") == ["apns: from publishing, lane high", "27", "35 s", "over 1 min 0 s"])
    let pool = line("com.example.app APNs")
    #expect(pool.prefix(4) == ["com.example.app APNs production", "in trouble (1 of 3)", "6", "30"], "\(pool)")
    let place = try #require(lines.firstIndex { $0.hasPrefix("PROVIDER") }),
      queues = try #require(lines.firstIndex { $0.hasPrefix("QUEUE") })
    #expect(place < queues)
    let well = picture([try report("h:1")], consumers: 1)
    #expect(!FleetText(picture: well, width: 80, hasColour: false).lines.contains { $0.hasPrefix("PROVIDER") })
    let listed = FleetText(picture: well, width: 80, hasColour: false, listsPools: true).lines
    #expect(listed.contains { $0.hasPrefix("com.example.app APNs production  ok") })
  }

  @Test("of hundreds of pools in trouble twenty are shown, and how many more there are")
  func manyPools() throws {
    let names = (0..<50).map { #"{"name":"app \#($0) APNs","state":"in trouble"}"# }.joined(separator: ",")
    let worker = try #require(WorkerAnswer(Array(#"{"worker":"h:1","pools_in_trouble":700,"pools":[\#(names)]}"#.utf8), now: 0))
    let lines = FleetText(picture: picture([worker], consumers: 1), width: 80, hasColour: false).lines
    #expect(lines.count { $0.hasPrefix("app ") } == 20 && lines.contains("680 more in trouble: --pools lists them"))
    let all = FleetText(picture: picture([worker], consumers: 1), width: 80, hasColour: false, listsPools: true).lines
    #expect(all.count { $0.hasPrefix("app ") } == 20 + 50 && all.contains("650 more in trouble"))
    #expect(all.contains("680 more in trouble: in the list below"))
    let place = try #require(all.firstIndex { $0.hasPrefix("app ") }),
      queues = try #require(all.firstIndex { $0.hasPrefix("QUEUE") })
    #expect(place < queues)
  }

  @Test("histograms and counts that can't be are left out")
  func wildFigures() throws {
    for latency in [
      #"{"of":"provider_answer","bounds":[1],"counts":[1]}"#, #"{"of":"provider_answer","bounds":[2,1],"counts":[1,1,1]}"#,
      #"{"of":"?","bounds":[],"counts":[1]}"#,
      #"{"of":"provider_answer","bounds":"x","counts":{}}"#, "{}",
    ] {
      let worker = try #require(WorkerAnswer(Array(#"{"worker":"h","latencies":[\#(latency)]}"#.utf8), now: 0))
      #expect(worker.latencies.isEmpty, "\(latency)")
    }
    let most = #"{"of":"provider_answer","provider":"x","bounds":[1],"counts":[1e300,-4]}"#
    let pools = #"{"name":"a","state":"ok","connections":1e18,"streams":-1}"#
    let worker = try #require(
      WorkerAnswer(Array(#"{"worker":"h","latencies":[\#(most)],"pools":[\#(pools),\#(pools)]}"#.utf8), now: 0))
    let lines = FleetText(picture: picture([worker, worker], consumers: 1), width: 80, hasColour: false, listsPools: true).lines
    #expect(lines.contains { $0.hasPrefix("x: answers") && $0.hasSuffix("-") })
  }

  @Test("impossible figures of another client don't end the command, whatever field has them")
  func trappedFigures() throws {
    let most = Int.max
    let fields = [
      #""shards":\#(most),"errors":{"Unavailable":\#(most)},"in_hand":1e300,"delivered":-\#(most)"#,
      #""latencies":[{"of":"provider_answer","provider":"x","bounds":[-1e300],"counts":[0,1]}]"#,
      #""latencies":[{"of":"provider_answer","provider":"x","bounds":[-1e300,1e300],"counts":[0,1,0]}]"#,
    ]
    for text in fields {
      let worker = try #require(WorkerAnswer(Array(#"{"worker":"h",\#(text)}"#.utf8), now: 0))
      let picture = picture([worker, worker], consumers: 3)
      #expect(picture.silent == 3, "\(text)")
      #expect(!FleetText(picture: picture, width: 80, hasColour: false).lines.isEmpty, "\(text)")
    }
    let limited = #"{"worker":"h","in_hand":1000000000001,"on_streams":-1,"delivered":7,"holds":[{"app":"a","ready":1e300}]}"#
    let worker = try #require(WorkerAnswer(Array(limited.utf8), now: 0))
    #expect(worker.inHand == 0 && worker.onStreams == 0 && worker.delivered == 7 && worker.holds.map(\.ready) == [0])
    #expect(Figures.duration(-1e300) == "0 s" && Figures.duration(.nan) == "years" && Figures.duration(1e300) == "years")
  }

  @Test("says that no worker runs, or that none answers")
  func noWorkers() {
    let none = FleetText(picture: picture([], consumers: 0), width: 80, hasColour: false).lines.joined(separator: "\n")
    #expect(none.contains("no worker is running") && none.contains("push.send.normal"))
    let silent = FleetText(picture: picture([], consumers: 2), width: 80, hasColour: true).lines.joined(separator: "\n")
    #expect(silent.contains("no worker answers") && silent.contains("\u{1B}[31m"))
  }

  @Test("says that workers run and take nothing, which is not that none runs", arguments: [true, false])
  func idleWorkers(answer: Bool) throws {
    var idle = picture(answer ? [try report("h:1", state: "in trouble", trouble: true)] : [], consumers: 0)
    idle.queues = [.init(name: "push.send.normal", ready: 7), .init(name: "push.quarantine", ready: 0, consumers: 2)]
    let said = FleetText(picture: idle, width: 100, hasColour: true).lines.joined(separator: "\n")
    #expect(said.contains("take nothing from the lanes: every provider is in trouble"), "\(said)")
    #expect(!said.contains("no worker is running") && said.contains("no worker answers") == !answer, "\(said)")
    idle.queues[0].consumers = 1
    #expect(!FleetText(picture: idle, width: 100, hasColour: true).lines.joined().contains("take nothing"))
  }

  @Test("says that workers can't write to the registry, and what else it couldn't ask, instead of guessing")
  func problems() throws {
    let worker = try #require(WorkerAnswer(Array(#"{"worker":"h:1","registry":{"up":true,"writable":false}}"#.utf8), now: 0))
    var shown = picture([worker, try report("h:2")], consumers: 2)
    shown.registryProblem = shown.unwritable
    let line = "1 of 2 workers can't write to the registry: `pushfleet doctor` says why"
    #expect(FleetText(picture: shown, width: 80, hasColour: false).lines[1] == line)
    #expect(String(decoding: shown.json.last ?? [], as: UTF8.self).contains(#""registry_problem":"\#(line)""#))
    #expect(picture([try report("h:2")], consumers: 1).unwritable == nil)
    var unasked = picture([], consumers: 1)
    #expect(FleetText(picture: unasked, width: 80, hasColour: false).lines.joined().contains("consumers of the lanes: 1"))
    unasked.problem = "this user may not ask the workers"
    let lines = FleetText(picture: unasked, width: 80, hasColour: false).lines
    #expect(lines[1] == unasked.problem && !lines.joined().contains("no worker answers"))
  }

  @Test("as JSON is one object a line, by kinds")
  func json() throws {
    let lines = try picture([try report("h:1", state: "draining")], consumers: 1).json.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0)) as? [String: Any])
    }
    #expect(lines.map { $0["kind"] as? String } == ["queue", "queue", "queue", "worker", "fleet"])
    #expect(lines[3]["state"] as? String == "draining" && lines[2]["ready"] is NSNull && lines[4]["silent_shards"] as? Int == 0)
  }

  @Test("what a worker says is only shown: nothing reaches the terminal as it came, and what can't be read is no worker")
  func wild() throws {
    #expect(WorkerAnswer(Array("[]".utf8), now: 0) == nil && WorkerAnswer([0xFF], now: 0) == nil)
    let wild =
      #"{"worker":"\u001b[2Jx","shards":"many","in_hand":1e300,"delivered_per_second":-1e999,"pools":{},"errors":{"\u0007":1}}"#
    if let report = WorkerAnswer(Array(wild.utf8), now: 0) {
      let lines = FleetText(picture: picture([report], consumers: 1), width: 200, hasColour: false).lines
      #expect(!lines.joined().unicodeScalars.contains { $0.value < 0x20 })
    }
    let strange = try #require(
      WorkerAnswer(Array(#"{"worker":"\u001b[2Jx","in_hand":-5,"delivered_per_second":1e30}"#.utf8), now: 0))
    let lines = FleetText(picture: picture([strange], consumers: 0), width: 200, hasColour: false).lines
    #expect(!lines.joined().unicodeScalars.contains { $0.value < 0x20 })
  }
}
