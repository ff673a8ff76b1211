import HTTP2
import PushCore

/// Performs a step's fault on one stream, after the step's delay.
struct FaultPlayer {
  private let step: Step?
  private let environment: SimulatorEnvironment
  private let session: any SimulatedConnection
  private let stream: Int32

  /// Notes the step's fault and sets its limit of streams.
  init(
    _ step: Step?, _ entry: inout JournalEntry, _ environment: SimulatorEnvironment, _ session: any SimulatedConnection
  ) {
    self.step = step
    self.environment = environment
    self.session = session
    stream = entry.stream
    entry.fault = step?.fault?.name
    if let streams = step?.streams { session.setMaxConcurrentStreams(streams) }
  }

  /// True if the request is answered, with or without a fault.
  var isAnswered: Bool {
    switch step?.fault {
    case nil: true
    case .goAway(let plan): plan.lastStream == .this || plan.lastStream == .max
    case .refuse, .stall, .reset, .close: false
    }
  }

  func play(answer: (() -> Void)? = nil) {
    guard let step, step.delayMilliseconds > 0 else { return act(answer) }
    environment.later(Double(step.delayMilliseconds) / 1000) { act(answer) }
  }

  private func act(_ answer: (() -> Void)?) {
    switch step?.fault {
    case nil, .stall: break
    case .refuse: session.reset(stream, .refusedStream)
    case .reset(let code): session.reset(stream, code)
    case .close: session.abort()
    case .goAway(let plan): sendGoAway(plan)
    }
    answer?()
  }

  private func sendGoAway(_ plan: Step.GoAwayPlan) {
    let debugData = plan.reason.map { reason in JSONObjectWriter.object { $0.set("reason", reason) } } ?? []
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
