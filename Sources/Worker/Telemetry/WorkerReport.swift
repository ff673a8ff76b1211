import Delivery
import DeviceRegistry
import PushCore
import Reactor
import Wire

/// How a worker stands: what its shards are together, and the process around them. All that it shows of itself is made of this.
struct WorkerReport: Sendable {
  /// The program's.
  let version: String
  /// Unix milliseconds.
  let at: Int64
  let shards: Int
  let shardsReady: Int
  let health: FleetHealth
  let whole: ShardReport
  let usage: ProcessUsage
  let droppedLogLines: Int

  /// - Parameter shards: that the worker was started with; fewer may have reported.
  init(
    _ reports: [ShardReport], shards: Int, health: FleetHealth, usage: ProcessUsage, droppedLogLines: Int, version: String,
    at: Int64
  ) {
    self.version = version
    self.at = at
    self.shards = shards
    self.health = health
    self.usage = usage
    self.droppedLogLines = droppedLogLines
    shardsReady = reports.count { $0.isReady }
    whole = ShardReport.merged(reports)
  }

  init(_ board: ShardBoard, version: String, now: MonotonicTime) {
    self.init(
      board.reports, shards: board.shards, health: board.health(at: now), usage: .current(),
      droppedLogLines: StandardError.droppedLines, version: version, at: SystemClock.unixMilliseconds)
  }

  /// Figures of one application, provider and lane.
  struct Row {
    var app: String
    var series: Int
    var provider: PushCounts.Provider
    var lane: PushCounts.Lane
    /// Shown though nothing has happened: the application is configured with the provider.
    var isExpected: Bool
  }

  /// Every application with figures of its own, and what sums up others where there are any.
  var rows: [Row] {
    var rows: [Row] = []
    for (series, app) in whole.series.enumerated() {
      for provider in PushCounts.Provider.allCases {
        let isExpected =
          provider == .none
          ? series != AppSeries.others : whole.providers.indices.contains(series) && whole.providers[series].contains(provider)
        for lane in PushCounts.Lane.allCases {
          rows.append(Row(app: app, series: series, provider: provider, lane: lane, isExpected: isExpected))
        }
      }
    }
    return rows
  }
}

extension PushError {
  /// Codes that a push by a provider may end with, and those that a request may be refused with before that.
  static func expected(with provider: PushCounts.Provider) -> [PushError] {
    switch provider {
    case .apns: allCases.filter { ![.invalidJSON, .missingRegistration, .invalidTTL, .notAllowed].contains($0) }
    case .fcm:
      allCases.filter { ![.invalidJSON, .missingRegistration, .invalidTTL, .invalidPackageName, .notAllowed].contains($0) }
    case .none:
      allCases.filter {
        ![.deviceMessageRateExceeded, .topicsMessageRateExceeded, .nothingForPlatform, .unknown, .cancelled].contains($0)
      }
    }
  }

  /// Codes after which a push is tried again.
  static let retried: [PushError] = [
    .unavailable, .internalServerError, .deviceMessageRateExceeded, .topicsMessageRateExceeded, .unknown,
  ]
}
