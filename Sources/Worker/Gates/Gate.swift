import DeviceRegistry

/// A step before the first push of a request: the registry has to answer, or to keep something, first.
///
/// A gate is a type in a file of its own, and a line of ``Pipeline/passGates(_:)``. A request passes its gates in that order. It waits at a gate
/// for the registry's answer, and goes on with the next one.
protocol Gate {
  /// Whether the request needs anything. If it doesn't, it pays no more than this question.
  static func concerns(_ entry: InFlight, in pipeline: Pipeline) -> Bool
  static func pass(_ entry: InFlight, in pipeline: Pipeline) -> GateAnswer
}

enum GateAnswer {
  case go
  /// The registry was asked, by ``Pipeline/wait(at:for:then:orElse:)``.
  case wait
}

extension Pipeline {
  /// Into the lanes, as soon as the request has passed its gates.
  func passGates(_ entry: InFlight) {
    guard !entry.registry.isAsked, entry.registry.unresolved == 0,
      pass(MessageGate.self, 1, entry),
      pass(ContentGate.self, 2, entry),
      pass(BadgeGate.self, 3, entry)
    else { return }
    // What FCM is asked goes out, what is refused ends as always, and then the request.
    if entry.parsed?.isDryRun == true, entry.attempt.dryRun == nil {
      DryRun(translator: translations.translator).rehearse(entry, at: time.wallClock)
    }
    enqueue(entry)
  }

  @inline(__always)
  private func pass<G: Gate>(_ gate: G.Type, _ number: Int, _ entry: InFlight) -> Bool {
    if entry.registry.gatesPassed >= number { return true }
    if G.concerns(entry, in: self), case .wait = G.pass(entry, in: self) { return false }
    entry.registry.gatesPassed = number
    return true
  }

  /// Asks the registry for a gate.
  /// - Parameters:
  ///   - then: takes the answer.
  ///   - orElse: whether the request can go on without one. If it can't, it is refused or goes to the ladder.
  func wait<Value>(
    at entry: InFlight, for call: RegistryCall<Value>, then: @escaping (InFlight, Value) -> Void,
    orElse: @escaping (InFlight) -> Bool = { _ in false }
  ) -> GateAnswer {
    entry.registry.isAsked = true
    let reference = entry.reference
    registry?.call(call) { [weak self] result in
      guard let self, let entry = table[reference] else { return }
      entry.registry.isAsked = false
      guard !entry.ledger.isConcluded else { return }
      switch result {
      case .success(let value): then(entry, value)
      case .failure(let error): guard orElse(entry) else { return refuseOrPutOff(entry, error) }
      }
      entry.registry.gatesPassed += 1
      if !entry.ledger.isOrphan { passGates(entry) }
    }
    return .wait
  }
}
