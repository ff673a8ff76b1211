import DeviceRegistry
import PushCore
import StatusHTTP

/// `POST /gcm/send` and `/fcm/send`: requests of GCM and FCM legacy, as JSON or as a form.
enum GCMSend {
  static func take(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    if call.isJSON { return try takeJSON(call, key) }
    guard let form = try GCMForm(call.request.body) else { return call.answer(.text(200, "Error=MissingRegistration\n")) }
    do throws(Rejection) {
      send(try SendRequest.document(form.json, call.applications.limits.json), call, key, isForm: true)
    } catch { refuse(error, call, .form) }
  }

  private static func takeJSON(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let body = call.request.body
    let document: JSONDocument
    do throws(JSONError) { document = try JSONDocument(body, limits: call.applications.limits.json) } catch {
      throw .badRequest(GCMCheck.line(error, body))
    }
    let isGCM = call.path.first?.elementsEqual("gcm".utf8) == true
    if let line = GCMCheck(document: document, isGCM: isGCM).line { throw .badRequest(line) }
    send(document, call, key, isForm: false)
  }

  private static func send(_ document: JSONDocument, _ call: HTTPCall, _ key: GatewayKey, isForm: Bool) {
    let app: GatewayApplications.App
    let request: SendRequest
    do throws(Rejection) {
      app = try call.applications.app(of: key, document)
      request = try SendRequest(document, limits: app.limits)
    } catch {
      return refuse(error, call, isForm ? .form : GCMAnswer.Shape(unread: document))
    }
    let shape = isForm ? .form : GCMAnswer.Shape(request.targets)
    call.parts.send.send(
      SendService.Request(
        app: app.id, key: key, body: document.bytes, isHigh: request.isHigh(orElse: app.defaultPriority),
        idempotencyKey: call.idempotencyKey, traceparent: call.header("traceparent"))
    ) { messageID, outcome in call.answer(GCMAnswer(shape: shape, messageID: messageID).answer(outcome)) }
  }

  private static func refuse(_ error: Rejection, _ call: HTTPCall, _ shape: GCMAnswer.Shape) {
    switch error.code {
    case .invalidParameters, .invalidJSON:
      call.answer(.text(400, "error:\(error.code.rawValue): \(error.reason)\n"))
    default: call.answer(GCMAnswer(shape: shape, messageID: UUIDText.random()).refused(error.code.rawValue))
    }
  }
}

extension SendRequest {
  /// True if the request is published with the routing key `high`, false for `normal`.
  func isHigh(orElse byDefault: Priority) -> Bool {
    if let priority { return priority == .high }
    if let node = android(.priority) { return document.text(node).lowercased() == "high" }
    if let node = apnsHeader(.apnsPriority) { return document.isString(node, "10") }
    return shape == .fcmV1 ? hasNotification : byDefault == .high
  }
}
