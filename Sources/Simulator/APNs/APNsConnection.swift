import HTTP2
import PushCore
import Wire

/// One client's connection to the APNs simulator.
final class APNsConnection: ServerSessionHandler {
  private unowned let service: APNsService
  private let number: Int
  private var tokens: ProviderTokenCheck
  /// A request with a valid provider token has come: the stream limit has been raised.
  private var isAuthorised: Bool

  init(_ service: APNsService, number: Int) {
    self.service = service
    self.number = number
    tokens = ProviderTokenCheck(key: service.providerKey)
    isAuthorised = service.trustsCertificates
  }

  func requestReceived(_ request: ServerRequest, on session: ServerSession) {
    let path = request.header(":path") ?? []
    var entry = JournalEntry(
      time: service.environment.wallClock(), connection: number, stream: request.stream,
      method: request.header(":method") ?? [], path: path)
    entry.token = APNsRequestCheck.token(in: path)
    entry.headers = request.headers.filter { $0.name.first != UInt8(ascii: ":") && $0.name != Self.authorization }
    entry.payload = request.body
    let verdict = judge(request, &entry, session)
    let step = entry.token.isEmpty ? nil : service.decide?(entry.token) ?? service.player.next(entry.token)
    perform(verdict, step, &entry, request.stream, session)
    service.journal.note(entry)
  }

  /// What APNs would say, were there no script.
  private func judge(_ request: ServerRequest, _ entry: inout JournalEntry, _ session: ServerSession) -> APNsVerdict {
    let check = APNsRequestCheck(
      request: request, topics: service.topics, isTopicOptional: service.trustsCertificates)
    inspectPayload(request, &entry)
    do throws(APNsVerdict) {
      try check.checkTarget()
      try authorise(request, &entry, session)
      try check.checkHeaders()
      try check.checkToken()
      if !entry.isJSON { throw .bad("PayloadEmpty") }
    } catch {
      return error
    }
    return .accepted
  }

  private func authorise(_ request: ServerRequest, _ entry: inout JournalEntry, _ session: ServerSession) throws(APNsVerdict) {
    guard !service.trustsCertificates else { return }
    let former = tokens.current?.text
    let (authorization, refusal) = tokens.judge(request.header("authorization"), at: entry.time)
    entry.authorization = authorization
    if let refusal { throw refusal }
    if let current = tokens.current, current.text != former,
      let violation = service.keyTokens.note(current.authorization, current.text)
    {
      entry.violations.append(violation)
    }
    if !isAuthorised {
      isAuthorised = true
      session.setMaxConcurrentStreams(service.configuration.maxConcurrentStreams)
    }
  }

  private func inspectPayload(_ request: ServerRequest, _ entry: inout JournalEntry) {
    if let id = request.header("apns-expiration"), let seconds = APNsRequestCheck.seconds(id), seconds > 100_000_000_000 {
      entry.violations.append("apns-expiration is in milliseconds")
    }
    guard request.bodySize > 0 else { return }
    do throws(JSONError) {
      let document = try JSONDocument(request.body)
      entry.isJSON = document.kind(document.root) == .object
      guard entry.isJSON else {
        entry.violations.append("the payload is \(document.kind(document.root).words), not an object")
        return
      }
      var check = PayloadCheck(document, pushType: request.header("apns-push-type") ?? [])
      check.run()
      entry.violations += check.violations
    } catch {
      entry.violations.append("the payload is not JSON: \(error)")
    }
  }

  private func perform(
    _ verdict: APNsVerdict, _ step: Step?, _ entry: inout JournalEntry, _ stream: Int32, _ session: ServerSession
  ) {
    entry.fault = step?.fault?.name
    if let streams = step?.streams { session.setMaxConcurrentStreams(streams) }
    let player = FaultPlayer(environment: service.environment, session: session, stream: stream)
    guard player.isAnswered(step?.fault) else { return player.play(step) }
    var answer = verdict
    if answer.status == 200, let status = step?.status {
      answer = APNsVerdict(status: status, reason: step?.reason ?? (status == 200 ? nil : APNsVerdict.usualReason[status]))
    }
    entry.status = answer.status
    entry.reason = answer.reason
    let headers = headers(answer, step, entry)
    let body = body(answer, step, entry.time)
    player.play(step) { session.respond(stream, status: answer.status, headers: headers, body: body) }
  }

  private func headers(_ answer: APNsVerdict, _ step: Step?, _ entry: JournalEntry) -> [HeaderField] {
    let given = entry.headers.first { $0.name == Self.apnsID }?.value
    let id = given.flatMap { UUIDText.isCanonical($0) ? $0 : nil } ?? service.environment.makeUUID()
    var headers = [HeaderField(name: Self.apnsID, value: id)]
    if service.configuration.isSandbox {
      headers.append(HeaderField(name: Self.uniqueID, value: service.environment.makeUUID()))
    }
    if answer.status != 200 { headers.append(HeaderField("content-type", "application/json")) }
    if let retryAfter = step?.retryAfter { headers.append(HeaderField("retry-after", retryAfter)) }
    return headers
  }

  private func body(_ answer: APNsVerdict, _ step: Step?, _ now: Int64) -> [UInt8] {
    if let body = step?.body { return Array(body.utf8) }
    guard let reason = answer.reason else { return [] }
    var json = JSONObjectWriter()
    json.set("reason", reason)
    if answer.status == 410 { json.set("timestamp", step?.timestamp ?? now) }
    return json.closed()
  }

  func protocolViolated(_ what: String, on session: ServerSession) {
    service.journal.noteViolation(what, connection: number, at: service.environment.wallClock())
  }

  func sessionEnded(_ reason: TransportEnd, of session: ServerSession) { service.connectionEnded(number) }

  private static let authorization = Array("authorization".utf8)
  private static let apnsID = Array("apns-id".utf8)
  private static let uniqueID = Array("apns-unique-id".utf8)
}
