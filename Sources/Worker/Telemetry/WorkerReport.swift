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
