/// A distribution of durations as in Prometheus: counts by fixed upper bounds, and the sum.
public struct Histogram: Sendable {
  /// Upper bounds in seconds, ascending. An additional count has all longer durations.
  public let bounds: [Double]
  /// Not cumulative; the last count is for durations above all bounds.
  public private(set) var counts: [Int]
  public private(set) var sum = 0.0

  public init(bounds: [Double]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  public var count: Int { counts.reduce(0, +) }

  /// - Parameter counts: one for each bound and one more, none negative; otherwise nil.
  public init?(bounds: [Double], counts: [Int]) {
    guard counts.count == bounds.count + 1, counts.allSatisfy({ (0...1 << 48).contains($0) }),
      zip(bounds, bounds.dropFirst()).allSatisfy(<)
    else { return nil }
    self.bounds = bounds
    self.counts = counts
  }

  /// The quantile in seconds, interpolated linearly between bounds. Infinite above the last bound; nil if nothing was recorded.
  public func quantile(_ share: Double) -> Double? {
    let count = Double(count)
    guard count > 0 else { return nil }
    let rank = share * count
    var below = 0.0
    for (index, bound) in bounds.enumerated() {
      let here = Double(counts[index])
      if here > 0, below + here >= rank {
        let start = index == 0 ? 0 : bounds[index - 1]
        return start + (bound - start) * max(0, rank - below) / here
      }
      below += here
    }
    return .infinity
  }

  /// Negative durations, from a clock that was set back, count as 0.
  public mutating func record(seconds: Double) {
    let seconds = max(seconds, 0)
    var index = 0
    while index < bounds.count, bounds[index] < seconds { index += 1 }
    counts[index] += 1
    sum += seconds
  }

  /// The durations recorded since `earlier`, which has the same bounds.
  public func since(_ earlier: Histogram) -> Histogram {
    var recent = self
    for index in counts.indices { recent.counts[index] -= earlier.counts[index] }
    recent.sum -= earlier.sum
    return recent
  }

  public static func += (a: inout Histogram, b: Histogram) {
    for index in a.counts.indices { a.counts[index] += b.counts[index] }
    a.sum += b.sum
  }
}

/// A histogram that several objects of one thread share.
public final class Latencies {
  public private(set) var histogram: Histogram

  public init(bounds: [Double]) { histogram = Histogram(bounds: bounds) }

  public func record(seconds: Double) { histogram.record(seconds: seconds) }
}
