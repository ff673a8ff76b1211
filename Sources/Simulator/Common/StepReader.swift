import HTTP2
import PushCore

/// Reads one step from its JSON object. Refuses unknown keys, so that a misspelt key is not ignored.
struct StepReader {
  let document: JSONDocument

  func step(_ node: Int) throws(ScriptError) -> Step {
    guard document.kind(node) == .object else { throw wrong(node, "an object") }
    var step = Step()
    for (name, value) in document.members(of: node) {
      switch document.text(name) {
      case "status": step.status = Int(try integer(value, 100...999))
      case "reason": step.reason = try text(value)
      case "timestamp": step.timestamp = try integer(value, 0...Int64.max)
      case "retry_after": step.retryAfter = document.kind(value) == .number ? document.text(value) : try text(value)
      case "body": step.body = try text(value)
      case "streams": step.streams = Int(try integer(value, 0...Int64(Int32.max)))
      case "delay_ms": step.delayMilliseconds = try integer(value, 0...86_400_000)
      case "times": step.times = Int(try integer(value, 0...Int64(Int32.max)))
      case "every": step.every = Int(try integer(value, 1...Int64(Int32.max)))
      case "goaway": step.fault = try goAway(value) ?? step.fault
      case "refuse": if try flag(value) { step.fault = .refuse }
      case "stall": if try flag(value) { step.fault = .stall }
      case "close": if try flag(value) { step.fault = .close }
      case "reset":
        if document.kind(value) == .number {
          step.fault = .reset(ErrorCode(rawValue: UInt32(try integer(value, 0...Int64(UInt32.max)))))
        } else if try flag(value) {
          step.fault = .reset(.internalError)
        }
      default: throw ScriptError("\(document.path(to: value)): no step has this key")
      }
    }
    return step
  }

  /// Accepts `true`, a reason, or `{"last": "this", "code": 0, "reason": "Shutdown"}`.
  private func goAway(_ node: Int) throws(ScriptError) -> Step.Fault? {
    var plan = Step.GoAwayPlan()
    switch document.kind(node) {
    case .false: return nil
    case .true: break
    case .string: plan.reason = document.text(node)
    case .object:
      for (name, value) in document.members(of: node) {
        switch document.text(name) {
        case "reason": plan.reason = try text(value)
        case "code": plan.code = ErrorCode(rawValue: UInt32(try integer(value, 0...Int64(UInt32.max))))
        case "last":
          guard let last = Step.GoAwayPlan.LastStream(rawValue: try text(value)) else {
            throw wrong(value, "one of this, previous, none, max")
          }
          plan.lastStream = last
        default: throw ScriptError("\(document.path(to: value)): no goaway has this key")
        }
      }
    default: throw wrong(node, "true, a reason or an object")
    }
    return .goAway(plan)
  }

  private func text(_ node: Int) throws(ScriptError) -> String {
    guard document.kind(node) == .string else { throw wrong(node, "a string") }
    return document.text(node)
  }

  private func flag(_ node: Int) throws(ScriptError) -> Bool {
    guard let value = document.bool(node) else { throw wrong(node, "true or false") }
    return value
  }

  private func integer(_ node: Int, _ range: ClosedRange<Int64>) throws(ScriptError) -> Int64 {
    guard let value = document.integer(node), range.contains(value) else {
      throw wrong(node, "an integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  private func wrong(_ node: Int, _ wanted: String) -> ScriptError {
    ScriptError("\(document.path(to: node)) is \(document.kind(node).words), not \(wanted)")
  }
}
