/// The shortest form of a failing seed that is found: kinds of trouble, then single events, are left out as long as it still fails.
public struct Reduction {
  public private(set) var outcome: FleetSimulation.Outcome
  public private(set) var kinds: Set<Affliction>
  /// nil while no single event has been left out.
  public private(set) var events: Set<Int>?

  public init(_ failure: FleetSimulation.Outcome) throws {
    outcome = failure
    kinds = Set(failure.afflictions)
    for kind in failure.afflictions { try leaveOut(kind) }
    for event in (0..<outcome.events).reversed() { try leaveOut(event) }
  }

  private mutating func leaveOut(_ kind: Affliction) throws {
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

  /// What repeats it, for the command line.
  public var options: String {
    let kinds = kinds.map(\.rawValue).sorted().joined(separator: ",")
    let events = events.map { " --events \($0.sorted().map(String.init).joined(separator: ","))" } ?? ""
    return "--seed \(outcome.seed) --kinds \(kinds.isEmpty ? "none" : kinds)\(events)"
  }
}
