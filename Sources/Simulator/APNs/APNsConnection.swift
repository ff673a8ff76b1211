import HTTP2
import PushCore

final class APNsConnection: ServiceConnection<APNsService>, ServerSessionHandler {
  private var tokens: ProviderTokenCheck
  /// True after a request with a valid provider token, which raises the stream limit.
  private var isAuthorised: Bool

  override init(_ service: APNsService, number: Int) {
    tokens = ProviderTokenCheck(key: service.providerKey)
    isAuthorised = service.trustsCertificates
    super.init(service, number: number)
  }

  func requestReceived(_ request: ServerRequest, on session: ServerSession) {
    var entry = JournalEntry(request, connection: number, at: service.time.wallClock)
    entry.token =
      entry.path.starts(with: BroadcastCheck.pathPrefix)
      ? request.header("apns-channel-id") ?? [] : APNsRequestCheck.token(in: entry.path)
    entry.payload = request.body
    if entry.path.starts(with: ChannelManagement.pathPrefix) {
      manageChannels(request, &entry, session)
      return service.journal.note(entry)
    }
    let verdict = judge(request, &entry, session)
    let step = entry.token.isEmpty ? nil : service.step(for: entry.token)
    perform(step, &entry, on: session) { answer(verdict, step, $0) }
    service.journal.note(entry)
  }

  /// The answer of APNs without a script.
  private func judge(_ request: ServerRequest, _ entry: inout JournalEntry, _ session: ServerSession) -> APNsVerdict {
    inspectPayload(request, &entry)
    do throws(APNsVerdict) {
      if entry.path.starts(with: BroadcastCheck.pathPrefix) {
        let check = BroadcastCheck(request: request, topics: service.topics)
        entry.violations += check.violations(entry.isJSON ? try? JSONDocument(request.body) : nil)
        try check.checkTarget()
        try authorise(request, &entry, session)
        try check.checkHeaders(service.channels)
      } else {
        let check = APNsRequestCheck(
          request: request, topics: service.topics, isTopicOptional: service.trustsCertificates)
        try check.checkTarget()
        try authorise(request, &entry, session)
        try check.checkHeaders()
        try check.checkToken()
      }
      if !entry.isJSON { throw .bad("PayloadEmpty") }
    } catch {
      return error
    }
    return .accepted
  }

  private func manageChannels(_ request: ServerRequest, _ entry: inout JournalEntry, _ session: ServerSession) {
    let management = ChannelManagement(request: request, topics: service.topics)
    entry.isJSON = (try? JSONDocument(request.body)).map { $0.kind($0.root) == .object } ?? false
    var answer: SimulatedAnswer
    do throws(APNsVerdict) {
      try management.checkTarget()
      try authorise(request, &entry, session)
      answer = try management.perform(on: &service.channels, id: service.makeChannelID())
    } catch {
      answer = SimulatedAnswer(status: error.status, body: body(error, nil, entry.time))
      answer.headers.append(HeaderField("content-type", "application/json"))
      entry.reason = error.reason
    }
    entry.status = answer.status
    answer.headers.append(HeaderField(name: Self.requestID, value: id(given: Self.requestID, entry)))
    session.respond(request.stream, status: answer.status, headers: answer.headers, body: answer.body)
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
      var check = PayloadCheck(document: document, pushType: request.header("apns-push-type") ?? [])
      check.run()
      entry.violations += check.violations
    } catch {
      entry.violations.append("the payload is not JSON: \(error)")
    }
  }

  private func answer(_ verdict: APNsVerdict, _ step: Step?, _ entry: JournalEntry) -> SimulatedAnswer {
    var verdict = verdict
    if verdict.status == 200, let status = step?.status {
      verdict = APNsVerdict(status: status, reason: step?.reason ?? (status == 200 ? nil : APNsVerdict.usualReason[status]))
    }
    return SimulatedAnswer(
      status: verdict.status, reason: verdict.reason, headers: headers(verdict, entry), body: body(verdict, step, entry.time))
  }

  private func headers(_ answer: APNsVerdict, _ entry: JournalEntry) -> [HeaderField] {
    let name = entry.path.starts(with: BroadcastCheck.pathPrefix) ? Self.requestID : Self.apnsID
    var headers = [HeaderField(name: name, value: id(given: name, entry))]
    if service.configuration.isSandbox {
      headers.append(HeaderField(name: Self.uniqueID, value: service.makeID()))
    }
    if answer.status != 200 { headers.append(HeaderField("content-type", "application/json")) }
    return headers
  }

  /// The id in the request, or a new one.
  private func id(given name: [UInt8], _ entry: JournalEntry) -> [UInt8] {
    let given = entry.headers.first { $0.name == name }?.value
    return given.flatMap { UUIDText.isCanonical($0) ? $0 : nil } ?? service.makeID()
  }

  private func body(_ answer: APNsVerdict, _ step: Step?, _ now: Int64) -> [UInt8] {
    guard let reason = answer.reason else { return [] }
    let timestamp = answer.status == 410 ? step?.timestamp ?? now : nil
    return (["reason": reason, "timestamp": JSONOptional(timestamp)] as JSONObject).line
  }

  private static let apnsID = Array("apns-id".utf8)
  private static let requestID = Array("apns-request-id".utf8)
  private static let uniqueID = Array("apns-unique-id".utf8)
}
