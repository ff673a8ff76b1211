import StatusHTTP

/// `/v1/fleet/apps/<app>/trace`: the story of a request, or the pushes to a device, as `pushfleet trace` shows them. Confined to the
/// loop's thread.
final class FleetTraces {
  private let worker: any LetterWorker
  private let side: LoopSide<FleetTraces>
  private var running: [Int: HTTPCall] = [:]
  private var lastNumber = 0

  /// Each one reads the whole trace.
  private static let mostRunning = 2

  init(_ context: GatewayContext) {
    worker = context.letters
    side = LoopSide(context.loop.mailbox)
    side.handler = self
  }

  func take(_ call: HTTPCall, app: [UInt8]) {
    let given = TraceOrder.Kind.allCases.compactMap { kind in call.query(kind.rawValue).map { (kind, $0) } }
    guard given.count == 1, let (kind, text) = given.first, !text.isEmpty else {
      return call.refuse(.badRequest("expected one of id, token, user and installation"))
    }
    guard running.count < Self.mostRunning else {
      return call.refuse(.unavailable("others read the trace: try again in some seconds"))
    }
    lastNumber += 1
    running[lastNumber] = call
    let order = TraceOrder(kind, String(decoding: text, as: UTF8.self), app: String(decoding: app, as: UTF8.self))
    worker.trace(order) { [side, number = lastNumber] outcome in
      side.note { $0.running.removeValue(forKey: number)?.answer(outcome) }
    }
  }
}

extension HTTPCall {
  /// Answers with the details of an order.
  func answer(_ outcome: LetterOutcome) {
    if let failure = outcome.failure { return answer(ErrorFormat.own.answer(.unavailable(failure))) }
    answer(.json(200, line: outcome.details))
  }
}
