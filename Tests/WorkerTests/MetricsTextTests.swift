import Foundation
import PushCore
import Reactor
import TestSupport
import Testing
import Wire

@testable import DeviceRegistry
@testable import Delivery
@testable import Worker

private let promtool = "/usr/bin/promtool"

@Suite("A worker's figures")
struct MetricsTextTests {
  private static let app = 2

  /// A report of two shards in which every event has happened.
  static func report(_ change: (inout ShardReport) -> Void = { _ in }) -> WorkerReport {
    let reports = (0..<2).map { number in
      var report = ShardReport(at: MonotonicTime(nanoseconds: 1))
      report.isReady = number == 0
      report.series = AppSeries().names + ["com.example.app", #"a"} 1 \"# + "\n# x"]
      report.providers = [[], [], [.apns], [.apns, .fcm]]
      report.counters.delivered = 3
      report.counters.pushes.add(.delivered, app, .apns, .high, times: 3)
      report.counters.pushes.add(.failed(.notRegistered), app, .apns, .normal, times: 2)
      report.counters.pushes.add(.failed(.invalidJSON), AppSeries.none, nil, .normal)
      report.counters.pushes.add(.retried(.unavailable), app, .apns, .normal)
      report.counters.pushes.add(.deadLetter(.invalidJSON), AppSeries.none, nil, .normal)
      report.counters.ledger.add(.accepted, app, 5)
      report.counters.ledger.add(.settled, app, 4)
      report.counters.ledger.add(.inHand, app)
      report.times.answered(.apns, .high, after: 0.4, isExact: false)
      report.times.answered(.apns, .high, after: 86_401, isExact: false)
      report.times.confirms.record(seconds: 0.002)
      report.registry = .init(isUp: number == 0, isWritable: false)
      report.oldestAge = Double(number) + 0.5
      report.openBreakers = [Array("com.example.app".utf8)]
      report.holds = [
        .init(app: Array("a".utf8), ready: 70 + number, inHand: 8), .init(app: Array("b".utf8), ready: nil, inHand: 0),
      ]
      report.pools = [
        .init(
          name: "a APNs", troubledSince: number == 1 ? 0 : nil,
          isCredentialRefused: number == 1, connections: 1, streams: 3),
        .init(name: "b FCM"),
      ]
      report.deadLetters = [.init(app: "(none)", error: .invalidJSON, reason: "not an object", count: 1)]
      report.expiries = [.init(name: "c", notAfter: 99)]
      if number == 0 {
        report.campaigns = CampaignSummary(counts: [.running: 2], latest: [])
        report.queues = [.init(name: "push.dead", ready: 7)]
      }
      change(&report)
      return report
    }
    return WorkerReport(
      version: "1.2.3", at: 1_000, shards: 2, shardsReady: reports.count { $0.isReady }, health: FleetHealth(),
      whole: .merged(reports), usage: .current(), droppedLogLines: 0, refusedTunnels: [407: 3, 0: 1])
  }

  private func samples(_ report: WorkerReport, _ prefix: String) -> [String] {
    MetricsText.of(report).split(separator: "\n").map(String.init).filter { $0.hasPrefix("pushfleet_\(prefix)") }
  }

  @Test("are summed over shards; a possible event has a sample before it happens")
  func zeroes() {
    let report = Self.report()
    let delivered = samples(report, "pushes_delivered_total")
    #expect(delivered.contains(#"pushfleet_pushes_delivered_total{app="com.example.app",provider="apns",lane="high"} 6"#))
    #expect(delivered.contains(#"pushfleet_pushes_delivered_total{app="com.example.app",provider="apns",lane="normal"} 0"#))
    #expect(!delivered.contains { $0.contains(#"app="com.example.app",provider="fcm""#) })
    let failed = samples(report, "pushes_failed_total{app=\"com.example.app\"")
    #expect(
      failed.contains(
        #"pushfleet_pushes_failed_total{app="com.example.app",provider="apns",lane="normal",code="NotRegistered"} 4"#))
    #expect(
      failed.contains(
        #"pushfleet_pushes_failed_total{app="com.example.app",provider="apns",lane="high",code="InternalServerError"} 0"#))
    #expect(failed.contains { $0.contains(#"provider="apns",lane="high",code="InvalidPackageName"} 0"#) })
    #expect(samples(report, "dead_letters_total{app=\"(none)\"").contains { $0.hasSuffix(#"code="InvalidJSON"} 2"#) })
    #expect(
      samples(report, "requests_accepted_total{app=\"com.example.app\"") == [
        #"pushfleet_requests_accepted_total{app="com.example.app"} 10"#
      ])
    #expect(samples(report, "shards") == ["pushfleet_shards 2", "pushfleet_shards_ready 1"])
    #expect(samples(report, "build_info") == [#"pushfleet_build_info{version="1.2.3"} 1"#])
  }

  @Test("count shared facts once; a problem of one shard is a problem of the worker")
  func merged() {
    let report = Self.report()
    #expect(samples(report, "registry_up") == ["pushfleet_registry_up 0"])
    #expect(samples(report, "oldest_request_age_seconds") == ["pushfleet_oldest_request_age_seconds 1.5"])
    #expect(
      samples(report, "credential_ok")
        == [#"pushfleet_credential_ok{pool="a APNs"} 0"#, #"pushfleet_credential_ok{pool="b FCM"} 1"#])
    #expect(
      samples(report, "proxy_refusals_total")
        == [("none", 1), ("403", 0), ("407", 3), ("502", 0), ("504", 0)].map {
          #"pushfleet_proxy_refusals_total{status="\#($0)"} \#($1)"#
        })
    #expect(samples(report, "provider_streams")[0] == #"pushfleet_provider_streams{pool="a APNs"} 6"#)
    #expect(
      samples(report, "hold_queue_requests_ready") == [#"pushfleet_hold_queue_requests_ready{app="a"} 71"#]
        && samples(report, "hold_queue_requests_in_hand").count == 2)
    #expect(samples(report, "campaigns").contains(#"pushfleet_campaigns{state="running"} 2"#))
    #expect(samples(report, "queue_messages_ready") == [#"pushfleet_queue_messages_ready{queue="push.dead"} 7"#])
    #expect(samples(report, "breaker_open")[0] == #"pushfleet_breaker_open{app="com.example.app"} 1"#)
  }

  @Test("have a sample for each order of an operator that is in force")
  func orders() {
    let report = Self.report {
      var (paused, drained, ended) = (
        Control(.app(Array("a".utf8))), Control(.lane(Array("send.low".utf8))), Control(.lane(Array("send.high".utf8)))
      )
      paused.mode = .paused
      drained.mode = .draining
      (ended.mode, ended.until) = (.paused, 1)
      $0.controls = [paused, drained, ended]
    }
    #expect(
      samples(report, "control") == [
        #"pushfleet_control{kind="app",name="a",state="paused"} 1"#,
        #"pushfleet_control{kind="lane",name="send.low",state="draining"} 1"#,
      ])
  }

  @Test("have histograms whose counts add up over their bounds")
  func histograms() {
    let lines = samples(Self.report(), "publish_to_answer_seconds").filter { $0.contains(#"provider="apns",lane="high""#) }
    let values = lines.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
    let expected = [0, 0, 0, 0] + Array(repeating: 2.0, count: 13) + [4, 172_802.8, 4]
    #expect(values.count == expected.count && zip(values, expected).allSatisfy { abs($0 - $1) < 1e-6 }, "\(lines)")
  }

  @Test("have no registry samples without a registry, and no queues or campaigns without a survey")
  func absent() {
    let report = Self.report {
      $0.registry = nil
      $0.campaigns = nil
      $0.queues = nil
    }
    #expect(samples(report, "registry").isEmpty && samples(report, "campaigns").isEmpty)
    #expect(samples(report, "queue_messages").isEmpty)
  }

  @Test("are separate for thirty applications; the others share one series")
  func manyApplications() {
    let apps = Applications()
    for number in 0..<2_000 { apps.put(Array("app\(number)".utf8), packages: [], senders: []) }
    #expect(apps.series.names.count == AppSeries.most + 2)
    #expect(apps.series.number(of: 0) == 2 && apps.series.number(of: AppSeries.most - 1) == AppSeries.most + 1)
    #expect(apps.series.number(of: AppSeries.most) == AppSeries.others && apps.series.number(of: 1_999) == AppSeries.others)
    #expect(apps.series.number(of: nil) == AppSeries.none)
    apps.remove(0)
    apps.put(Array("app0".utf8), packages: [], senders: [])
    #expect(apps.series.number(of: 0) == 2)
    let text = MetricsText.of(
      Self.report {
        $0.series = apps.series.names
        $0.providers = Array(repeating: [.apns, .fcm], count: apps.series.names.count)
        $0.holds = Self.manyHolds
        $0.pools = Self.manyPools
      })
    #expect(text.split(separator: "\n").count < 9_000)
  }

  private static let manyHolds = (0..<300).map { (number: Int) in
    HoldReport(app: Array("app\(number)".utf8), ready: number, inHand: 1)
  }
  /// The first ten are in trouble, the last one's credential is refused.
  private static let manyPools = (0..<300).map {
    ShardReport.Pool(
      name: "app\($0) APNs", troubledSince: $0 < 10 ? 0 : nil, isCredentialRefused: $0 == 0, connections: 1, streams: $0)
  }

  @Test("name a hundred hold queues and a hundred pools; all others share one name, in any order")
  func manyInTrouble() throws {
    var reports: [WorkerReport] = []
    for isTurned in [false, true] {
      reports.append(
        Self.report {
          $0.holds = isTurned ? Self.manyHolds.reversed() : Self.manyHolds
          $0.pools = isTurned ? Self.manyPools.reversed() : Self.manyPools
        })
    }
    let families = [
      "hold_queue_requests_ready", "hold_queue_requests_in_hand", "credential_ok", "pool_in_trouble", "provider_connections",
      "provider_streams",
    ]
    for family in families {
      let lines = samples(reports[0], family + "{")
      #expect(lines.count == WorkerReport.mostNamed + 1 && lines == samples(reports[1], family + "{"), "\(family)")
    }
    let report = reports[0]
    #expect(samples(report, "hold_queue_requests_ready{")[0] == #"pushfleet_hold_queue_requests_ready{app="app299"} 299"#)
    // Shards count the same queues.
    let ready = (0..<200).reduce(0, +)
    let held = ["ready", "in_hand"].map { samples(report, "hold_queue_requests_\($0){").last }
    #expect(held[0] == #"pushfleet_hold_queue_requests_ready{app="(other)"} \#(ready)"#)
    #expect(held[1] == #"pushfleet_hold_queue_requests_in_hand{app="(other)"} 400"#)
    let refused = samples(report, "credential_ok{").filter { $0.hasSuffix(" 0") }
    #expect(refused == [#"pushfleet_credential_ok{pool="app0 APNs"} 0"#])
    #expect(samples(report, "pool_in_trouble{").count { $0.hasSuffix(" 1") } == 10)
    #expect(samples(report, "provider_connections{").last == #"pushfleet_provider_connections{pool="(other)"} 400"#)
    let json = try #require(try JSONSerialization.jsonObject(with: Data(report.json.line)) as? [String: Any])
    #expect((json["pools"] as? [[String: Any]])?.last?["state"] as? String == "200 others")
    #expect((json["pools"] as? [Any])?.count == 101 && (json["holds"] as? [Any])?.count == 101)
  }

  @Test("show a troubled or refused pool among the unnamed ones")
  func othersInTrouble() {
    let report = Self.report {
      $0.pools = Self.manyPools.map {
        var pool = $0
        (pool.troubledSince, pool.isCredentialRefused) = (0, true)
        return pool
      }
    }
    #expect(samples(report, "credential_ok{").last == #"pushfleet_credential_ok{pool="(other)"} 0"#)
    #expect(samples(report, "pool_in_trouble{").last == #"pushfleet_pool_in_trouble{pool="(other)"} 1"#)
  }

  @Test(
    "pass promtool for any application names",
    .enabled(if: FileManager.default.isExecutableFile(atPath: promtool) || isNothingLeftOut, "promtool isn't installed"))
  func promtoolChecks() throws {
    let file = NSTemporaryDirectory() + "/pushfleet-metrics-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: file) }
    try MetricsText.of(Self.report()).write(toFile: file, atomically: false, encoding: .utf8)
    let child = try ChildProcess(
      [promtool, "check", "metrics"], environment: [:], output: nil, input: FileHandle(forReadingAtPath: file))
    #expect(child.wait() == 0 && child.outputSoFar.isEmpty, "\(child.outputSoFar)")
  }

  @Test("are the same in the JSON report, on one line")
  func json() throws {
    let bytes = Self.report().json.line
    #expect(!bytes.contains(0x0A))
    let object = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    #expect(object["version"] as? String == "1.2.3" && object["at"] as? String == "1970-01-01T00:00:01.000Z")
    #expect((object["totals"] as? [String: Int])?["delivered"] == 6)
    let apps = try #require(object["apps"] as? [[String: Any]])
    #expect(apps.map { $0["app"] as? String } == ["(none)", "com.example.app", #"a"} 1 \"# + "\n# x"])
    #expect((apps[1]["ledger"] as? [String: Int])?["in_hand"] == 2)
    let letters = try #require(object["dead_letters"] as? [[String: Any]])
    #expect(letters.count == 1 && letters[0]["count"] as? Int == 2)
    #expect((object["queues"] as? [String: Int]) == ["push.dead": 7])
    #expect((object["pools"] as? [[String: Any]])?.first?["credential_ok"] as? Bool == false)
  }

  @Test("include the trace's counts and the latest campaigns in the JSON report, without targets")
  func traceAndCampaigns() throws {
    let description = CampaignDescription(
      id: Array("c-1".utf8), app: Array("com.example.app".utf8), messageID: Array("m".utf8),
      target: Array("/users/secret".utf8), total: 10, highWater: 9)
    let report = Self.report {
      $0.counters.traced = 3
      $0.counters.untracedByRate = 1
      $0.campaigns?.latest = [
        Campaign(description: description, state: .running, sent: 6, failed: 1, pagesDone: 1, createdAt: 0, updatedAt: 0)
      ]
    }
    let text = String(decoding: report.json.line, as: UTF8.self)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(report.json.line)) as? [String: Any])
    let totals = try #require(object["totals"] as? [String: Int])
    // The sum of two shards.
    #expect(totals["trace_noted"] == 6 && totals["trace_left_out"] == 2)
    let campaign = try #require((object["latest_campaigns"] as? [[String: Any]])?.first)
    #expect(campaign["campaign"] as? String == "c-1" && campaign["state"] as? String == "running")
    #expect(campaign["sent"] as? Int == 6 && campaign["failed"] as? Int == 1 && campaign["remaining"] as? Int == 3)
    #expect(!text.contains("secret"))
  }

  @Test("count a replaced push by its code, and not as failed")
  func withdrawn() throws {
    let report = Self.report {
      $0.counters.collapsed = 5
      $0.counters.pushes.add(.failed(.collapsed), Self.app, .apns, .high, times: 5)
    }
    let counters = report.whole.counters
    #expect(counters.failures == 6)
    #expect(counters.failuresByCode.map { "\($0.code) \($0.count)" } == ["InvalidJSON 2", "NotRegistered 4", "Collapsed 10"])
    let line = #"pushfleet_pushes_failed_total{app="com.example.app",provider="apns",lane="high",code="Collapsed"} 10"#
    #expect(samples(report, "pushes_failed_total").contains(line))
    let json = try #require(try JSONSerialization.jsonObject(with: Data(report.json.line)) as? [String: Any])
    let totals = try #require(json["totals"] as? [String: Int])
    #expect(totals["failed"] == 6 && totals["collapsed"] == 10)
    let status = ProcessStatus(startedAt: 0).json(report, at: MonotonicTime(nanoseconds: 0))
    let answer = try #require(try JSONSerialization.jsonObject(with: Data(status)) as? [String: Any])
    #expect(answer["failed"] as? Int == 6 && (answer["errors"] as? [String: Int])?["Collapsed"] == 10)
  }

  @Test("keep each code separate for every application, provider and lane")
  func cells() {
    var counts = PushCounts()
    var places: [(PushCounts.Field, Int, Platform?, PushCounts.Lane)] = []
    for series in [0, 7] {
      for provider in PushCounts.providers {
        for lane in PushCounts.Lane.allCases {
          for code in PushError.allCases {
            places += [.failed(code), .retried(code), .deadLetter(code)].map { ($0, series, provider, lane) }
          }
          places += [.delivered, .parked].map { ($0, series, provider, lane) }
        }
      }
    }
    for (number, place) in places.enumerated() { counts.add(place.0, place.1, place.2, place.3, times: number + 1) }
    for (number, place) in places.enumerated() { #expect(counts.amount(place.0, place.1, place.2, place.3) == number + 1) }
    #expect(counts.amount(.delivered, 3, .apns, .high) == 0 && counts.amount(.delivered, 99, .apns, .high) == 0)
    counts += counts
    #expect(counts.amount(places[5].0, places[5].1, places[5].2, places[5].3) == 12)
  }

  @Test("have a bounded number of dead-letter reasons, without tokens")
  func reasons() {
    var reasons = DeadLetterReasons()
    for number in 0..<500 { reasons.note(app: number % 200, error: .invalidParameters, reason: "reason \(number)") }
    #expect(reasons.counts.count <= 2 * DeadLetterLog.mostKinds + PushError.allCases.count)
    #expect(reasons.counts.values.reduce(0, +) == 500)
    reasons = DeadLetterReasons()
    reasons.note(app: nil, error: .invalidJSON, reason: "unknown key \(String(repeating: "ab", count: 32)) at byte 7")
    #expect(reasons.counts.keys.first?.reason == "unknown key …")
  }
}
