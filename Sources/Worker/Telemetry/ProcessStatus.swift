import Delivery
import DeviceRegistry
import PushCore
import Reactor
import Wire

/// A worker process's status as one JSON object of bounded size, for `pushfleet status`.
struct ProcessStatus {
  private struct Sample {
    var at: MonotonicTime
    var received: Int
    var delivered: Int
    var failed: Int
  }

  private struct Times {
    var at: MonotonicTime
    var times: PushTimes
  }

  /// Seconds over which rates are measured.
  private static let span = 10
  /// Seconds over which latencies are measured, and seconds between two samples.
  private static let latencySpan = 60.0
  private static let latencyStep = 5.0
  private static let mostNamed = 50
  /// Bytes of pool entries if all are requested; a longer answer would be truncated.
  private static let mostNames = 96 << 10

  /// Unix milliseconds.
  private let startedAt: Int64
  private var samples = Ring<Sample>()
  private var times = Ring<Times>()
  private var nextTimes = MonotonicTime(nanoseconds: .min)

  init(startedAt: Int64) { self.startedAt = startedAt }

  /// Call once a second.
  mutating func sample(_ reports: [ShardReport], at now: MonotonicTime) {
    let sum = reports.reduce(into: Counters()) { $0 += $1.counters }
    samples.append(Sample(at: now, received: sum.received, delivered: sum.delivered, failed: sum.failures))
    if samples.count > Self.span + 1 { _ = samples.popFirst() }
    sampleTimes(reports, at: now)
  }

  private mutating func sampleTimes(_ reports: [ShardReport], at now: MonotonicTime) {
    guard now >= nextTimes else { return }
    nextTimes = now.advanced(bySeconds: Self.latencyStep)
    times.append(Times(at: now, times: reports.reduce(into: PushTimes()) { $0 += $1.times }))
    while let first = times.first, now.seconds(since: first.at) > Self.latencySpan + Self.latencyStep { _ = times.popFirst() }
  }

  /// - Parameter allPools: lists all pools instead of some. Pools in trouble come first.
  func json(_ report: WorkerReport, allPools: Bool = false, at now: MonotonicTime) -> [UInt8] {
    let whole = report.whole
    let sum = whole.counters
    let status: JSONObject = [
      "worker": ThisProcess.name, "host": ThisProcess.host, "pid": Int(ThisProcess.pid), "version": report.version,
      "started_at": Timestamp.text(startedAt), "state": report.health.readiness, "shards": report.shards,
      "in_hand": whole.inHand, "ahead": whole.ahead, "on_streams": whole.inFlight, "unconfirmed": whole.unconfirmed,
      "stuck": whole.stuck, "received": sum.received, "delivered": sum.delivered, "failed": sum.failures,
      "retries": sum.retries, "dead_letters": sum.deadLetters, "trace_noted": sum.traced,
      "trace_left_out": sum.untraced, "received_per_second": rate(sum.received, \.received, at: now),
      "delivered_per_second": rate(sum.delivered, \.delivered, at: now),
      "failed_per_second": rate(sum.failures, \.failed, at: now),
      "errors": JSONObject(sum.failuresByCode.map { ($0.code, $0.count) }), "apps": Self.apps(whole),
      "latencies": latencies(whole.times), "pools_in_trouble": whole.pools.count(where: \.isInTrouble),
      "pools": Self.pools(whole.pools, all: allPools), "holds": Self.holds(whole.holds),
      "waiting": Self.waiting(whole.controls), "registry": JSONOptional(whole.registry?.json),
      "cpu_seconds": Self.figure(report.usage.cpuSeconds), "resident_bytes": report.usage.residentBytes,
    ]
    return status.line
  }

  /// Counts of the configured applications since the start.
  private static func apps(_ whole: ShardReport) -> [JSONObject] {
    let pushes = whole.counters.pushes
    return whole.series.indices.dropFirst(AppSeries.others + 1).prefix(mostNamed).map { series in
      let failed = PushError.allCases.map { ($0.rawValue, pushes.total(.failed($0), series)) }.filter { $1 > 0 }
      return [
        "app": whole.series[series], "in_hand": whole.counters.ledger.amount(.inHand, series),
        "delivered": pushes.total(.delivered, series), "failed": JSONObject(failed),
      ]
    }
  }

  /// Histograms of the last minute that are not empty.
  private func latencies(_ now: PushTimes) -> [JSONObject] {
    let recent = times.first.map { now.since($0.times) } ?? now
    return recent.ofProviders.filter { $0.histogram.count > 0 }.map { part in
      [
        "of": part.name, "provider": part.provider?.word, "lane": part.lane?.name, "count": part.histogram.count,
        "whole_seconds": part.provider.flatMap { provider in part.lane.map { recent.wholeSeconds(provider, $0) } },
        // null means longer than the last bound.
        "p50": Self.seconds(part.histogram.quantile(0.5)), "p99": Self.seconds(part.histogram.quantile(0.99)),
        "bounds": JSONRaw(Array("\(part.histogram.bounds)".utf8)), "counts": JSONRaw(Array("\(part.histogram.counts)".utf8)),
      ]
    }
  }

  private static func seconds(_ value: Double?) -> JSONRaw? {
    guard let value, value.isFinite else { return nil }
    return JSONRaw(Array("\((value * 10_000).rounded() / 10_000)".utf8))
  }

  /// Pools in trouble come first, then those with an order.
  private static func pools(_ pools: [ShardReport.Pool], all: Bool) -> [JSONObject] {
    func rank(_ pool: ShardReport.Pool) -> Int { pool.isInTrouble ? 0 : pool.mode != .running ? 1 : 2 }
    let sorted = pools.sorted { (rank($0), $0.name) < (rank($1), $1.name) }
    var room = mostNames
    let named = sorted.prefix { pool in
      room -= pool.name.utf8.count + (pool.reason?.utf8.count ?? 0) + (pool.remedy?.words.utf8.count ?? 0) + poolOverhead
      if pool.isInTrouble { room -= sinceOverhead }
      return room >= 0
    }
    return named.prefix(all ? .max : mostNamed).map { pool in
      [
        "name": pool.name,
        "state": pool.isInTrouble ? "in trouble" : pool.mode == .running ? "ok" : pool.mode.rawValue,
        "since": JSONOptional(pool.troubledSince.map(Timestamp.text)),
        "reason": pool.isInTrouble ? pool.reason.map(DeadLetterLog.words) : nil, "remedy": pool.remedy?.words,
        "runbook": pool.remedy?.section, "connections": pool.connections, "streams": pool.streams,
      ]
    }
  }

  /// Bytes of a pool's object besides its texts; escaping may double the texts.
  private static let poolOverhead = 170

  private static let sinceOverhead = 35

  /// The longest queues come first.
  private static func holds(_ holds: [HoldReport]) -> [JSONObject] {
    holds.longestFirst.prefix(mostNamed).map { ["app": $0.app, "ready": $0.ready ?? 0] }
  }

  /// Credentials whose pushes this worker has put on the ladder.
  private static func waiting(_ controls: [Control]) -> [JSONObject] {
    controls.filter { $0.waiting > 0 }.sorted { $0.waiting > $1.waiting }.prefix(mostNamed).map {
      ["credential": $0.subject.name, "pushes": $0.waiting]
    }
  }

  private func rate(_ count: Int, _ part: KeyPath<Sample, Int>, at now: MonotonicTime) -> JSONRaw {
    guard let first = samples.first, now.seconds(since: first.at) > 0.5 else { return Self.figure(0) }
    return Self.figure(Double(count - first[keyPath: part]) / now.seconds(since: first.at))
  }

  /// With one decimal place.
  private static func figure(_ value: Double) -> JSONRaw { JSONRaw(Array("\((value * 10).rounded() / 10)".utf8)) }
}
