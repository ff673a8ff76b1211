import HTTP2
import PushCore

/// Performs a step's fault on one stream, after the step's delay.
struct FaultPlayer {
  let environment: SimulatorEnvironment
  let session: any SimulatedConnection
  let stream: Int32

  /// True if the request is answered, with or without a fault.
  func isAnswered(_ fault: Step.Fault?) -> Bool {
    switch fault {
    case nil: true
    case .goAway(let plan): plan.lastStream == .this || plan.lastStream == .max
    case .refuse, .stall, .reset, .close: false
    }
  }

  func play(_ step: Step?, answer: (() -> Void)? = nil) {
    guard let step, step.delayMilliseconds > 0 else { return act(step?.fault, answer) }
    environment.later(Double(step.delayMilliseconds) / 1000) { act(step.fault, answer) }
  }

  private func act(_ fault: Step.Fault?, _ answer: (() -> Void)?) {
    switch fault {
    case nil, .stall: break
    case .refuse: session.reset(stream, .refusedStream)
    case .reset(let code): session.reset(stream, code)
    case .close: session.abort()
    case .goAway(let plan): sendGoAway(plan)
    }
    answer?()
  }

  private func sendGoAway(_ plan: Step.GoAwayPlan) {
    var debugData: [UInt8] = []
    if let reason = plan.reason {
      var json = JSONObjectWriter()
      json.set("reason", reason)
      debugData = json.closed()
    }
    let last: Int32 =
      switch plan.lastStream {
      case .this: stream
      case .previous: max(stream - 2, 0)
      case .none: 0
      case .max: .max
      }
    session.goAway(lastStreamID: last, code: plan.code, debugData: debugData)
  }
}
