/// Finds a shorter form of a failing seed: removes kinds of faults, then single events, while it still fails.
public struct Reduction {
  public private(set) var outcome: FleetSimulation.Outcome
  public private(set) var kinds: Set<FaultKind>
  /// Nil while no single event was removed.
  public private(set) var events: Set<Int>?

  public init(_ failure: FleetSimulation.Outcome) throws {
    outcome = failure
    kinds = Set(failure.faultKinds)
    for kind in failure.faultKinds { try leaveOut(kind) }
    for event in (0..<outcome.events).reversed() { try leaveOut(event) }
  }

  private mutating func leaveOut(_ kind: FaultKind) throws {
    let fewer = kinds.subtracting([kind])
    let again = try FleetSimulation(seed: outcome.seed, kinds: fewer).run()
    guard !again.failures.isEmpty else { return }
    kinds = fewer
    outcome = again
  }

  private mutating func leaveOut(_ event: Int) throws {
    let fewer = (events ?? Set(0..<outcome.events)).subtracting([event])
    let again = try FleetSimulation(seed: outcome.seed, kinds: kinds, events: fewer).run()
    guard !again.failures.isEmpty else { return }
    events = fewer
    outcome = again
  }

  /// The command line options that repeat the failure.
  public var options: String {
    let kinds = kinds.map(\.rawValue).sorted().joined(separator: ",")
    let events = events.map { " --events \($0.sorted().map(String.init).joined(separator: ","))" } ?? ""
    return "--seed \(outcome.seed) --kinds \(kinds.isEmpty ? "none" : kinds)\(events)"
  }
}
