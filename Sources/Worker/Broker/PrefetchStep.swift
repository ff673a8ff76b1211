/// How much of a queue is in hand: a consumer for each step, each with a prefetch of its own, as a consumer's prefetch can't be changed.
protocol PrefetchStep: RawRepresentable<Int>, CaseIterable {
  /// Deliveries in hand beyond those of the step below; at most 65,535.
  var prefetch: UInt16 { get }
}

extension PrefetchStep {
  /// Deliveries in hand.
  var total: Int { Self.allCases.reduce(0) { $1.rawValue <= rawValue ? $0 + Int($1.prefetch) : $0 } }
}
