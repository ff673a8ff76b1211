import Foundation
import PushCore
import Reactor
import Testing
import Wire

@testable import Delivery
@testable import Worker

@Suite("A worker's own status")
struct ProcessStatusTests {
  private func object(_ json: [UInt8]) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
  }

  private func report(_ reports: [ShardReport]) -> WorkerReport {
    WorkerReport(
      version: "1", at: 0, shards: reports.count, shardsReady: reports.count { $0.isReady }, health: FleetHealth(),
      whole: .merged(reports), usage: .current(), droppedLogLines: 0)
  }

  @Test("sums its shards, with rates of the last ten seconds")
  func rates() throws {
    var status = ProcessStatus(startedAt: 0)
    var reports = [ShardReport(at: MonotonicTime(nanoseconds: 0)), ShardReport(at: MonotonicTime(nanoseconds: 0))]
    for second in 1...30 as ClosedRange<UInt64> {
      reports[0].counters.delivered += second > 20 ? 100 : 1
      status.sample(reports, at: MonotonicTime(nanoseconds: Int64(second) * 1_000_000_000))
    }
    reports[1].counters.delivered = 5
    reports[0].inHand = 3
    reports[0].registry = .init(isUp: true, isWritable: false)
    reports[1].inHand = 4
    let now = MonotonicTime(nanoseconds: 30_000_000_000)
    let answer = try object(status.json(report(reports), at: now))
    #expect(answer["in_hand"] as? Int == 7 && answer["delivered"] as? Int == 1_025 && answer["state"] as? String == "ok")
    #expect(answer["registry"] as? [String: Bool] == ["up": true, "writable": false])
    #expect(answer["delivered_per_second"] as? Double == 100.5 && answer["started_at"] as? String == "1970-01-01T00:00:00.000Z")
  }

  @Test("is bounded, even if many applications are in trouble")
  func bounded() throws {
    var report = ShardReport(at: MonotonicTime(nanoseconds: 0))
    for number in 0..<10_000 {
      report.pools.append(
        .init(name: "pool \(number)", troubledSince: number == 9_999 ? 0 : nil, mode: number == 9_998 ? .paused : .running))
      report.holds.append(.init(app: Array("app \(number)".utf8), ready: number))
    }
    let status = ProcessStatus(startedAt: 0)
    let json = status.json(self.report([report]), at: MonotonicTime(nanoseconds: 1))
    #expect(json.count < 20_000)
    let answer = try object(json)
    let pools = try #require(answer["pools"] as? [[String: Any]]), holds = try #require(answer["holds"] as? [[String: Any]])
    #expect(pools.count == 50 && pools[0]["name"] as? String == "pool 9999" && pools[0]["state"] as? String == "in trouble")
    #expect(pools[1]["name"] as? String == "pool 9998" && pools[1]["state"] as? String == "paused")
    #expect(answer["pools_in_trouble"] as? Int == 1 && pools[2]["state"] as? String == "ok")
    #expect(holds.count == 50 && holds[0]["ready"] as? Int == 9_999)
    let long = status.json(self.report([report]), allPools: true, at: MonotonicTime(nanoseconds: 1))
    // The limit that the command reads of an answer.
    #expect(long.count < 256 << 10)
    #expect(try #require(try object(long)["pools"] as? [[String: Any]]).count > 500)
  }

  @Test("has the durations of the last minute's pushes, where there were any")
  func latencies() throws {
    var status = ProcessStatus(startedAt: 0)
    var reports = [ShardReport(at: MonotonicTime(nanoseconds: 0))]
    for second in 0...180 {
      // Slow ones two minutes ago.
      reports[0].times[answersOf: .apns].record(seconds: second < 60 ? 9 : 0.02)
      if second == 179 { reports[0].times.answered(.fcm, .high, after: 100_000, isExact: true) }
      status.sample(reports, at: MonotonicTime(nanoseconds: Int64(second) * 1_000_000_000))
    }
    let answer = try object(status.json(report(reports), at: MonotonicTime(nanoseconds: 180_000_000_000)))
    let latencies = try #require(answer["latencies"] as? [[String: Any]])
    #expect(latencies.map { $0["of"] as? String } == ["provider_answer", "publish_to_answer"])
    #expect((55...66).contains(latencies[0]["count"] as? Int ?? 0) && latencies[0]["p99"] as? Double ?? 1 < 0.03)
    #expect(latencies[1]["lane"] as? String == "high" && latencies[1]["p50"] is NSNull)
    #expect((latencies[1]["counts"] as? [Int])?.last == 1)
  }

  @Test("has quantiles between the bounds of their bucket, and none beyond the last bound")
  func quantiles() throws {
    var histogram = Histogram(bounds: [1, 2, 4])
    #expect(histogram.quantile(0.5) == nil)
    for _ in 0..<4 { histogram.record(seconds: 3) }
    #expect(histogram.quantile(0.5) == 3 && histogram.quantile(1) == 4 && histogram.quantile(0) == 2)
    for _ in 0..<4 { histogram.record(seconds: 9) }
    #expect(histogram.quantile(0.5) == 4 && histogram.quantile(0.99) == .infinity)
    let read = try #require(Histogram(bounds: histogram.bounds, counts: histogram.counts))
    #expect(
      read.quantile(0.25) == 3 && Histogram(bounds: [1, 2], counts: [1]) == nil
        && Histogram(bounds: [1], counts: [1, -1]) == nil)
  }
}
