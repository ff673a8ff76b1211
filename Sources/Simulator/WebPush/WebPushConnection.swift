import HTTP2
import PushCore

final class WebPushConnection: ServiceConnection<WebPushService>, ServerSessionHandler {
  func requestReceived(_ request: ServerRequest, on session: ServerSession) { answer(request, on: session) }

  func answer(_ request: ServerRequest, on connection: any SimulatedConnection) {
    var entry = JournalEntry(request, connection: number, at: service.time.wallClock)
    if let target = WebPushTarget(entry.path) {
      entry.token = target.id
      let verdict = judge(request, target, &entry)
      let step = service.step(for: target.id)
      perform(step, &entry, on: connection) { _ in Self.answer(verdict, target.vendor, step) }
    } else {
      perform(service.step(for: entry.path), &entry, on: connection) { _ in Self.noSubscription }
    }
    service.journal.note(entry)
  }

  private static let noSubscription = SimulatedAnswer(status: 404, reason: StatusPhrase.of(404))

  /// The vendor's answer without a script.
  private func judge(_ request: ServerRequest, _ target: WebPushTarget, _ entry: inout JournalEntry) -> SimulatedAnswer {
    let authority = request.header(":authority") ?? request.header("host") ?? []
    let origin = WebPushOrigin(Array("https://".utf8) + authority)?.text
    do throws(WebPushRefusal) {
      guard entry.method == Array("POST".utf8) else { throw .wrongMethod }
      guard target.isKnown else { throw .unknownSubscription }
      try authorise(request, target, origin, &entry)
      let headers = try WebPushHeaders(request)
      try target.vendor.check(headers, of: request)
      try decrypt(request.body, target, &entry)
      return target.vendor.accept(entry, headers, origin: origin ?? "", id: service.makeID())
    } catch {
      if let violation = error.usual.violation { entry.violations.append(violation) }
      let (status, reason) = target.vendor.code(of: error)
      return target.vendor.refuse(status, reason ?? target.vendor.usualReason(status))
    }
  }

  private func authorise(
    _ request: ServerRequest, _ target: WebPushTarget, _ origin: String?, _ entry: inout JournalEntry
  ) throws(WebPushRefusal) {
    let given = request.headers.filter { $0.name == Self.authorization }
    guard let header = given.first?.value else {
      if target.vendor.requiresToken { throw .missingToken }
      return
    }
    guard given.count == 1, let token = VAPIDToken(header) else { throw .badToken("expected vapid t=TOKEN, k=KEY") }
    entry.vapid = token.claims
    if let fault = token.fault(origin: origin, now: entry.time / 1000) { throw .badToken(fault) }
    guard target.vendor.accepts(subject: token.claims.subject) else { throw .badToken("sub is not what the service accepts") }
    let point = try service.tokens.verify(token)
    if target.vendor.bindsKeys, !service.tokens.bind(target.path, to: point) { throw .otherKey }
    if target.vendor.limitsRenewals, let violation = service.tokens.noteUse(token) { entry.violations.append(violation) }
  }

  /// Only the simulator can do this: it has the browser's keys.
  private func decrypt(
    _ body: [UInt8], _ target: WebPushTarget, _ entry: inout JournalEntry
  ) throws(WebPushRefusal) {
    guard !body.isEmpty else { return }
    let path = String(decoding: target.path, as: UTF8.self)
    guard let browser = try? SimulatedSubscription(path: path, origin: ""),
      let plaintext = browser.pair.decrypt(body, auth: browser.auth)
    else { throw .undecryptable }
    entry.payload = plaintext
    entry.isJSON = (try? JSONDocument(plaintext)) != nil
  }

  /// A script changes only successful answers.
  private static func answer(_ verdict: SimulatedAnswer, _ vendor: any WebPushVendor, _ step: Step?) -> SimulatedAnswer {
    guard verdict.reason == nil, let step, let status = step.status else { return verdict }
    guard 200..<300 ~= status else { return vendor.refuse(status, step.reason ?? vendor.usualReason(status)) }
    var answer = verdict
    answer.status = status
    return answer
  }

  private static let authorization = Array("authorization".utf8)
}
