import Wire

/// Latencies of the last minute, merged over all workers.
struct FleetLatencies {
  struct Row {
    /// `apns answers`, `apns high`.
    var name: String
    var histogram: Histogram
    /// False if some times start at a timestamp in whole seconds.
    var isExact = true

    /// `18 ms`, `2.4 s`, `5 min 0 s`, `over 30 s`; for times in whole seconds `< 1 s`, `2 s`.
    func text(_ share: Double) -> String {
      guard let seconds = histogram.quantile(share) else { return "-" }
      guard seconds.isFinite else { return "over \(Figures.duration(histogram.bounds.last ?? 0))" }
      switch seconds {
      case ...1 where !isExact: return "< 1 s"
      case ..<9.95 where !isExact: return "\(Int(seconds.rounded())) s"
      case ..<0.001: return "1 ms"
      case ..<0.9995: return "\(Int((seconds * 1_000).rounded())) ms"
      case ..<9.95: return "\((seconds * 10).rounded() / 10) s"
      default: return Figures.duration(seconds)
      }
    }
  }

  /// Sorted by name: for each provider, round trips come before times from publishing.
  private(set) var rows: [Row] = []

  init(_ workers: [WorkerAnswer]) {
    for latency in workers.flatMap(\.latencies) {
      if let place = rows.firstIndex(where: { $0.name == latency.name && $0.histogram.bounds == latency.histogram.bounds }) {
        rows[place].histogram += latency.histogram
        rows[place].isExact = rows[place].isExact && latency.isExact
      } else if rows.count < Self.most {
        rows.append(Row(name: latency.name, histogram: latency.histogram, isExact: latency.isExact))
      }
    }
    rows.sort { $0.name < $1.name }
  }

  private static let most = 20
}
