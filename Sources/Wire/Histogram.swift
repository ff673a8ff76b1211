/// How often something took how long: counts by upper bounds that are fixed, and the sum, as Prometheus wants them.
public struct Histogram: Sendable {
  /// Seconds, ascending; a last count stands for what took longer.
  public let bounds: [Double]
  /// Of each bound alone, and of what is beyond the last.
  public private(set) var counts: [Int]
  /// Seconds.
  public private(set) var sum = 0.0

  public init(bounds: [Double]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  public var count: Int { counts.reduce(0, +) }

  /// - Parameter counts: as ``counts`` has them; nil unless there is one for each bound and one more, none below zero.
  public init?(bounds: [Double], counts: [Int]) {
    guard counts.count == bounds.count + 1, counts.allSatisfy({ (0...1 << 48).contains($0) }),
      zip(bounds, bounds.dropFirst()).allSatisfy(<)
    else { return nil }
    self.bounds = bounds
    self.counts = counts
  }

  /// Seconds within which a share of them lie, taken as spread evenly between two bounds; infinite beyond the last one, nil where there
  /// are none.
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

  /// A clock that was set back makes it no less than no time.
  public mutating func record(seconds: Double) {
    let seconds = max(seconds, 0)
    var index = 0
    while index < bounds.count, bounds[index] < seconds { index += 1 }
    counts[index] += 1
    sum += seconds
  }

  /// What was recorded since an earlier time; both have the same bounds.
  public func since(_ earlier: Histogram) -> Histogram {
    var recent = self
    for index in counts.indices { recent.counts[index] -= earlier.counts[index] }
    recent.sum -= earlier.sum
    return recent
  }

  /// Both have the same bounds.
  public static func += (a: inout Histogram, b: Histogram) {
    for index in a.counts.indices { a.counts[index] += b.counts[index] }
    a.sum += b.sum
  }
}

/// One that several of one thread record into.
public final class Latencies {
  public private(set) var histogram: Histogram

  public init(bounds: [Double]) { histogram = Histogram(bounds: bounds) }

  public func record(seconds: Double) { histogram.record(seconds: seconds) }
}
