import HTTP2
import PushCore

final class FCMConnection: ServiceConnection<FCMService>, ServerSessionHandler {
  func requestReceived(_ request: ServerRequest, on session: ServerSession) {
    var entry = JournalEntry(request, connection: number, at: service.time.wallClock)
    let isToken = entry.path == Self.tokenPath
    let answer = isToken ? exchange(request, &entry) : send(request, &entry)
    let key = isToken ? Self.tokenPath : entry.token
    let step = key.isEmpty ? nil : service.step(for: key)
    perform(step, &entry, on: session) { _ in Self.scripted(answer, step, isToken: isToken) }
    service.journal.note(entry)
  }

  /// The journal has only the assertion's claims, because the assertion is a credential.
  private func exchange(_ request: ServerRequest, _ entry: inout JournalEntry) -> SimulatedAnswer {
    if entry.method != Array("POST".utf8) { entry.violations.append("the token endpoint takes POST only") }
    if !(request.header("content-type") ?? []).starts(with: "application/x-www-form-urlencoded".utf8) {
      entry.violations.append("the content type is not application/x-www-form-urlencoded")
    }
    let (result, asker) = service.issuer.exchange(request.body, id: service.makeID(), at: entry.time)
    entry.authorization = asker
    return switch result {
    case .success(let body): Self.json(200, nil, body)
    case .failure(let refusal): Self.oauth(400, refusal.error, refusal.description)
    }
  }

  private func send(_ request: ServerRequest, _ entry: inout JournalEntry) -> SimulatedAnswer {
    entry.payload = request.body
    if !(request.header("content-type") ?? []).starts(with: "application/json".utf8) {
      entry.violations.append("the content type is not application/json")
    }
    do throws(FCMError) {
      let project = try project(in: entry.path)
      if entry.method != Array("POST".utf8) { throw Self.notFound }
      // Parse before the checks, so that the journal shows the body and a script can match the target.
      let document: JSONDocument
      do throws(JSONError) { document = try JSONDocument(request.body) } catch { throw .unreadable("", "\(error)") }
      entry.isJSON = true
      guard service.issuer.accepts(request.header("authorization"), at: entry.time) else { throw Self.unauthenticated }
      guard service.configuration.project.map({ project.elementsEqual($0.utf8) }) ?? true else { throw Self.notFound }
      var check = FCMMessageCheck(document: document)
      defer { entry.token = check.scriptKey }
      try check.run()
      let id = check.isValidateOnly ? Array("fake_message_id".utf8) : service.nextMessageID()
      let name = Array("projects/".utf8) + project + Array("/messages/".utf8) + id
      return Self.json(200, nil, (["name": name] as JSONObject).line)
    } catch {
      entry.violations += error.violations.map { "\($0.field): \($0.description)" }
      return Self.json(error.status, error.reason, error.body)
    }
  }

  private func project(in path: [UInt8]) throws(FCMError) -> ArraySlice<UInt8> {
    let (prefix, suffix) = (Array("/v1/projects/".utf8), Array("/messages:send".utf8))
    guard path.starts(with: prefix), path.suffix(suffix.count).elementsEqual(suffix), path.count > prefix.count + suffix.count
    else { throw Self.notFound }
    let project = path[prefix.count..<path.count - suffix.count]
    guard !project.contains(UInt8(ascii: "/")) else { throw Self.notFound }
    return project
  }

  /// A script changes only successful answers.
  private static func scripted(_ answer: SimulatedAnswer, _ step: Step?, isToken: Bool) -> SimulatedAnswer {
    guard answer.reason == nil, let step else { return answer }
    guard isToken else { return FCMError.scripted(step).map { json($0.status, $0.reason, $0.body) } ?? answer }
    guard let status = step.status, status != 200 else { return answer }
    return oauth(status, step.reason ?? (status < 500 ? "invalid_grant" : "internal_failure"), "Scripted.")
  }

  private static func oauth(_ status: Int, _ error: String, _ description: String) -> SimulatedAnswer {
    json(status, error, (["error": error, "error_description": description] as JSONObject).line)
  }

  private static func json(_ status: Int, _ reason: String?, _ body: [UInt8]) -> SimulatedAnswer {
    let headers = [HeaderField("content-type", "application/json; charset=UTF-8")]
    return SimulatedAnswer(status: status, reason: reason, headers: headers, body: body)
  }

  private static let tokenPath = Array("/token".utf8)
  private static let notFound = FCMError(status: 404, code: "NOT_FOUND", message: "Requested entity was not found.")
  private static let unauthenticated = FCMError(
    status: 401, code: "UNAUTHENTICATED",
    message: "Request had invalid authentication credentials. Expected OAuth 2 access token.")
}
