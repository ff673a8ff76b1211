/// A registry call that a request must complete before its first push. Each gate is a type in its own file and a line of
/// ``Pipeline/passGates(_:)``. A request passes its gates in that order and waits for the registry's answer at each.
protocol Gate {
  /// Whether the request needs the gate. This check must be cheap.
  static func concerns(_ entry: InFlight, in pipeline: Pipeline) -> Bool
  static func pass(_ entry: InFlight, in pipeline: Pipeline) -> GateAnswer
}

enum GateAnswer {
  case go
  /// The registry is asked, by ``Pipeline/wait(at:for:then:orElse:)``.
  case wait
}
