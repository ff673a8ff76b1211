import StatusHTTP

/// `/v1/fleet/apps/<app>/trace`: what happened to a request, or what was sent to a device, as `pushfleet trace` shows it. Confined
/// to the loop's thread.
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
    side.desk = self
  }

  func take(_ call: HTTPCall, app: [UInt8]) {
    let given = TraceOrder.Kind.allCases.compactMap { kind in call.query(kind.rawValue).map { (kind, $0) } }
    guard given.count == 1, let (kind, text) = given.first, !text.isEmpty else {
      return call.answer(ErrorFormat.own.answer(.badRequest("expected one of id, token, user and installation")))
    }
    guard running.count < Self.mostRunning else {
      return call.answer(ErrorFormat.own.answer(.unavailable("others read the trace: try again in some seconds")))
    }
    lastNumber += 1
    running[lastNumber] = call
    let order = TraceOrder(app: String(decoding: app, as: UTF8.self), kind: kind, text: String(decoding: text, as: UTF8.self))
    worker.trace(order) { [side, number = lastNumber] result in side.note { $0.answer(number, result) } }
  }

  private func answer(_ number: Int, _ result: Result<[UInt8], TraceFailure>) {
    guard let call = running.removeValue(forKey: number) else { return }
    switch result {
    case .success(let body): call.answer(HTTPAnswer(status: 200, contentType: HTTPAnswer.jsonType, body: body))
    case .failure(let failure): call.answer(ErrorFormat.own.answer(.unavailable(failure.reason)))
    }
  }
}
