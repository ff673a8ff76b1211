import Delivery

extension WorkerReport {
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

extension [HoldReport] {
  /// Sorted by ready messages, then by messages in hand, then by name.
  var longestFirst: [HoldReport] {
    sorted {
      let (first, second) = (($0.ready ?? 0, $0.inHand), ($1.ready ?? 0, $1.inHand))
      return first != second ? first > second : $0.app.lexicographicallyPrecedes($1.app)
    }
  }
}
