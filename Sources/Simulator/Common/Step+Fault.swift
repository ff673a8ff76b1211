import HTTP2
import PushCore

extension Step.Fault {
  /// True if the request is answered after the fault.
  var hasAnswer: Bool {
    guard case .goAway(let plan) = self else { return false }
    return plan.lastStream == .this || plan.lastStream == .max
  }

  func strike(_ connection: any SimulatedConnection, _ stream: Int32) {
    switch self {
    case .stall: break
    case .refuse: connection.reset(stream, .refusedStream)
    case .reset(let code): connection.reset(stream, code)
    case .close: connection.abort()
    case .goAway(let plan):
      let last: Int32 =
        switch plan.lastStream {
        case .this: stream
        case .previous: max(stream - 2, 0)
        case .none: 0
        case .max: .max
        }
      let debugData = plan.reason.map { (["reason": $0] as JSONObject).line } ?? []
      connection.goAway(lastStreamID: last, code: plan.code, debugData: debugData)
    }
  }
}
