import Delivery

extension WorkerReport {
  /// Of pools and of hold queues, how many are named; one more stands for all others.
  static let mostNamed = 100

  /// Those that something is wrong with and then those with most on their streams; what the others come to stands under
  /// ``AppSeries/othersName``, which is in trouble or refused where one of them is.
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

  /// The longest, and under ``AppSeries/othersName`` what the others come to.
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
  /// Those with most ready first, then those with most in hand, then by their names.
  var longestFirst: [HoldReport] {
    sorted {
      let (first, second) = (($0.ready ?? 0, $0.inHand), ($1.ready ?? 0, $1.inHand))
      return first != second ? first > second : $0.app.lexicographicallyPrecedes($1.app)
    }
  }
}
