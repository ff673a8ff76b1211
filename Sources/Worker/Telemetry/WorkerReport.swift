import Delivery
import DeviceRegistry
import PushCore
import Reactor
import Wire

/// A worker's state: the merged reports of its shards, and the process. Metrics, status and page are derived from it.
struct WorkerReport: Sendable {
  let version: String
  /// Unix milliseconds.
  let at: Int64
  /// The number of started shards; fewer may have reported.
  let shards: Int
  let shardsReady: Int
  let health: FleetHealth
  let whole: ShardReport
  let usage: ProcessUsage
  let droppedLogLines: Int
  /// Tunnels that proxies refused, by the status of the answer; 0 for none.
  var refusedTunnels: [Int: Int] = [:]

  struct Row {
    var app: String
    var series: Int
    var provider: Platform?
    var lane: PushCounts.Lane
    /// True if the row is shown even with zeros, because the application is configured with the provider.
    var isExpected: Bool

    var providerName: String { provider?.word ?? "none" }
  }

  func amount(_ field: PushCounts.Field, _ row: Row) -> Int {
    whole.counters.pushes.amount(field, row.series, row.provider, row.lane)
  }

  /// Rows for each application with its own series, and for the series that sum up others.
  var rows: [Row] {
    var rows: [Row] = []
    for (series, app) in whole.series.enumerated() {
      for provider in PushCounts.providers {
        let isExpected =
          if let provider {
            whole.providers.indices.contains(series) && whole.providers[series].contains(provider)
          } else {
            series != AppSeries.others
          }
        for lane in PushCounts.Lane.allCases {
          rows.append(Row(app: app, series: series, provider: provider, lane: lane, isExpected: isExpected))
        }
      }
    }
    return rows
  }

  /// The most pools and hold queues that are listed; one more entry sums up the others.
  static let mostNamed = 100

  /// Pools in trouble first, then the busiest. ``AppSeries/othersName`` sums up the others, and shows trouble of any of them.
  var pools: [ShardReport.Pool] {
    guard whole.pools.count > Self.mostNamed else { return whole.pools }
    func weight(_ pool: ShardReport.Pool) -> (Int, Int, Int, Int) {
      (pool.isCredentialRefused ? 1 : 0, pool.isInTrouble ? 1 : 0, pool.streams, pool.connections)
    }
    let sorted = whole.pools.sorted {
      let (first, second) = (weight($0), weight($1))
      return first != second ? first > second : $0.name < $1.name
    }
    let others = sorted.dropFirst(Self.mostNamed)
    let sum = ShardReport.Pool(
      name: AppSeries.othersName, troubledSince: others.compactMap(\.troubledSince).min(),
      isCredentialRefused: others.contains(where: \.isCredentialRefused),
      connections: others.reduce(0) { $0 + $1.connections }, streams: others.reduce(0) { $0 + $1.streams },
      state: "\(others.count) others")
    return sorted.prefix(Self.mostNamed) + [sum]
  }

  /// The longest hold queues; the others are summed up as ``AppSeries/othersName``.
  var holds: [HoldReport] {
    guard whole.holds.count > Self.mostNamed else { return whole.holds }
    let sorted = whole.holds.longestFirst
    let others = sorted.dropFirst(Self.mostNamed)
    let counted = others.compactMap(\.ready)
    let sum = HoldReport(
      app: Array(AppSeries.othersName.utf8), ready: counted.isEmpty ? nil : counted.reduce(0, +),
      inHand: others.reduce(0) { $0 + $1.inHand })
    return sorted.prefix(Self.mostNamed) + [sum]
  }
}

extension WorkerReport {
  init(_ board: ShardBoard, version: String, now: MonotonicTime) {
    let reports = board.reports
    self.init(
      version: version, at: SystemClock.unixMilliseconds, shards: board.controls.count,
      shardsReady: reports.count { $0.isReady }, health: board.health(at: now), whole: .merged(reports), usage: .current(),
      droppedLogLines: StandardError.droppedLines, refusedTunnels: ProxyRefusals.shared.byStatus)
  }
}

extension PushError {
  /// Codes with which a push to the provider may end; for nil, codes with which a request may be refused earlier.
  static func expected(with provider: Platform?) -> [PushError] {
    switch provider {
    case .apns: allCases.filter { ![.invalidJSON, .missingRegistration, .invalidTTL, .notAllowed].contains($0) }
    case .fcm, .webpush:
      allCases.filter { ![.invalidJSON, .missingRegistration, .invalidTTL, .invalidPackageName, .notAllowed].contains($0) }
    case nil:
      allCases.filter {
        ![.deviceMessageRateExceeded, .topicsMessageRateExceeded, .nothingForPlatform, .unknown, .cancelled].contains($0)
      }
    }
  }

  /// Codes after which a push is retried.
  static let retried: [PushError] = [
    .unavailable, .internalServerError, .deviceMessageRateExceeded, .topicsMessageRateExceeded, .unknown,
  ]
}

extension [HoldReport] {
  /// Sorted by ready messages, then by messages in hand, then by name.
  var longestFirst: [HoldReport] {
    sorted {
      let (first, second) = (($0.ready ?? 0, $0.inHand), ($1.ready ?? 0, $1.inHand))
      return first != second ? first > second : $0.app.lexicographicallyPrecedes($1.app)
    }
  }
}
