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
    var line = JSONObjectWriter()
    line.set("worker", ThisProcess.name)
    line.set("host", ThisProcess.host)
    line.set("pid", Int64(ThisProcess.pid))
    line.set("version", report.version)
    line.set("started_at", time: startedAt)
    line.set("state", report.health.readiness)
    line.set("shards", Int64(report.shards))
    line.set("in_hand", Int64(whole.inHand))
    line.set("ahead", Int64(whole.ahead))
    line.set("on_streams", Int64(whole.inFlight))
    line.set("unconfirmed", Int64(whole.unconfirmed))
    line.set("stuck", Int64(whole.stuck))
    line.set("received", Int64(sum.received))
    line.set("delivered", Int64(sum.delivered))
    line.set("failed", Int64(sum.failures))
    line.set("retries", Int64(sum.retries))
    line.set("dead_letters", Int64(sum.deadLetters))
    line.set("trace_noted", Int64(whole.observability.traced))
    line.set("trace_left_out", Int64(whole.observability.untraced))
    line.set("received_per_second", raw: rate(sum.received, \.received, at: now))
    line.set("delivered_per_second", raw: rate(sum.delivered, \.delivered, at: now))
    line.set("failed_per_second", raw: rate(sum.failures, \.failed, at: now))
    line.set("errors") { errors in
      for (code, count) in sum.failuresByCode { errors.set(code, Int64(count)) }
    }
    line.set("apps", objects: Self.apps(whole))
    line.set("latencies", objects: latencies(whole.times))
    line.set("pools_in_trouble", Int64(whole.pools.count(where: \.isInTrouble)))
    line.set("pools", objects: Self.pools(whole.pools, all: allPools))
    line.set("holds", objects: Self.holds(whole.holds))
    line.set("waiting", objects: Self.waiting(whole.controls))
    line.set("cpu_seconds", raw: Self.figure(report.usage.cpuSeconds))
    line.set("resident_bytes", Int64(report.usage.residentBytes))
    return line.closed()
  }

  private typealias Members = (inout JSONObjectWriter) -> Void

  /// Counts of the configured applications since the start.
  private static func apps(_ whole: ShardReport) -> [Members] {
    let pushes = whole.counters.pushes
    func sum(_ field: PushCounts.Field, _ series: Int) -> Int64 {
      let lanes = PushCounts.Provider.allCases.flatMap { provider in PushCounts.Lane.allCases.map { (provider, $0) } }
      return Int64(lanes.reduce(0) { $0 + pushes.amount(field, series, $1.0, $1.1) })
    }
    return whole.series.indices.dropFirst(AppSeries.others + 1).prefix(mostNamed).map { series in
      {
        $0.set("app", whole.series[series])
        $0.set("in_hand", Int64(whole.counters.ledger.amount(.inHand, series)))
        $0.set("delivered", sum(.delivered, series))
        $0.set("failed") { failed in
          for code in PushError.allCases where sum(.failed(code), series) > 0 {
            failed.set(code.rawValue, sum(.failed(code), series))
          }
        }
      }
    }
  }

  /// Histograms of the last minute that are not empty.
  private func latencies(_ now: PushTimes) -> [Members] {
    let recent = times.first.map { now.since($0.times) } ?? now
    var histograms: [(of: String, provider: PushCounts.Provider, lane: PushCounts.Lane?, histogram: Histogram)] = []
    for provider in PushTimes.providers {
      histograms.append(("provider_answer", provider, nil, recent[answersOf: provider]))
      for lane in PushCounts.Lane.allCases {
        histograms.append(("publish_to_answer", provider, lane, recent.publishToAnswer(provider, lane)))
      }
    }
    return histograms.filter { $0.histogram.count > 0 }.map { part in
      {
        $0.set("of", part.of)
        $0.set("provider", part.provider.name)
        $0.set("lane", part.lane?.name)
        $0.set("count", Int64(part.histogram.count))
        $0.set("whole_seconds", part.lane.map { Int64(recent.wholeSeconds(part.provider, $0)) })
        // null means longer than the last bound.
        $0.set("p50", raw: Self.seconds(part.histogram.quantile(0.5)))
        $0.set("p99", raw: Self.seconds(part.histogram.quantile(0.99)))
        $0.set("bounds", raw: Array("\(part.histogram.bounds)".utf8))
        $0.set("counts", raw: Array("\(part.histogram.counts)".utf8))
      }
    }
  }

  private static func seconds(_ value: Double?) -> [UInt8] {
    guard let value, value.isFinite else { return Array("null".utf8) }
    return Array("\((value * 10_000).rounded() / 10_000)".utf8)
  }

  /// Pools in trouble come first, then those with an order.
  private static func pools(_ pools: [ShardReport.Pool], all: Bool) -> [Members] {
    func rank(_ pool: ShardReport.Pool) -> Int { pool.isInTrouble ? 0 : pool.mode != .running ? 1 : 2 }
    let sorted = pools.sorted { (rank($0), $0.name) < (rank($1), $1.name) }
    var room = mostNames
    let named = sorted.prefix { pool in
      room -= pool.name.utf8.count + (pool.reason?.utf8.count ?? 0) + (pool.remedy?.words.utf8.count ?? 0) + poolOverhead
      if pool.isInTrouble { room -= sinceOverhead }
      return room >= 0
    }
    return named.prefix(all ? .max : mostNamed).map { pool in
      {
        $0.set("name", pool.name)
        $0.set("state", pool.isInTrouble ? "in trouble" : pool.mode == .running ? "ok" : pool.mode.rawValue)
        if let since = pool.troubledSince { $0.set("since", time: since) }
        $0.set("reason", pool.isInTrouble ? pool.reason.map(DeadLetterLog.words) : nil)
        $0.set("remedy", pool.remedy?.words)
        $0.set("runbook", pool.remedy?.section)
        $0.set("connections", Int64(pool.connections))
        $0.set("streams", Int64(pool.streams))
      }
    }
  }

  /// Bytes of a pool's object besides its texts; escaping may double the texts.
  private static let poolOverhead = 170

  private static let sinceOverhead = 35

  /// The longest queues come first.
  private static func holds(_ holds: [HoldReport]) -> [Members] {
    holds.longestFirst.prefix(mostNamed).map { hold in
      {
        $0.set("app", hold.app)
        $0.set("ready", Int64(hold.ready ?? 0))
      }
    }
  }

  /// Credentials whose pushes this worker has put on the ladder.
  private static func waiting(_ controls: [Control]) -> [Members] {
    controls.filter { $0.waiting > 0 }.sorted { $0.waiting > $1.waiting }.prefix(mostNamed).map { control in
      {
        $0.set("credential", control.subject.name)
        $0.set("pushes", Int64(control.waiting))
      }
    }
  }

  private func rate(_ count: Int, _ part: KeyPath<Sample, Int>, at now: MonotonicTime) -> [UInt8] {
    guard let first = samples.first, now.seconds(since: first.at) > 0.5 else { return Self.figure(0) }
    return Self.figure(Double(count - first[keyPath: part]) / now.seconds(since: first.at))
  }

  /// With one decimal place.
  private static func figure(_ value: Double) -> [UInt8] { Array("\((value * 10).rounded() / 10)".utf8) }
}
