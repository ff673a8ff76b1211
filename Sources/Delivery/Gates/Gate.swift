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
