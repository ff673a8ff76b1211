import DeviceRegistry
import PushCore
import StatusHTTP

/// `POST /v1/projects/<id>/messages:send`: FCM's HTTP v1.
enum V1Send {
  static func take(_ call: HTTPCall, _ key: GatewayKey) {
    let project = call.path[2]
    guard let app = call.applications.app(ofProject: project, key) else { return call.refuse(.foreignApp) }
    let body = call.request.body
    let request: SendRequest
    do throws(Rejection) {
      request = try SendRequest(try Self.envelope(body, call.applications.limits.json), limits: app.limits)
    } catch {
      return call.answer(Self.error(error))
    }
    call.parts.send.send(
      SendService.Request(
        app: app.id, key: key, body: body, isHigh: request.isHigh(orElse: app.defaultPriority),
        idempotencyKey: call.idempotencyKey, traceparent: call.header("traceparent"))
    ) { messageID, outcome in
      let answer = V1Answer(
        project: project, messageID: messageID, isDryRun: request.isDryRun,
        isAudience: GCMAnswer.Shape(request.targets) == .audience)
      call.answer(answer.answer(outcome))
    }
  }

  /// Accepts FCM v1's shape only; GCM's shape has a separate path.
  private static func envelope(_ body: [UInt8], _ limits: JSONLimits) throws(Rejection) -> JSONDocument {
    let document = try SendRequest.document(body, limits)
    for (name, _) in document.members(of: document.root) {
      let word = document.text(name)
      guard ["message", "validate_only", "validateOnly"].contains(word) else {
        throw Rejection(.invalidParameters, "Unknown name \"\(word.prefix(64))\": Cannot find field.")
      }
    }
    return document
  }

  /// The error for a request of which nothing has been published.
  static func error(_ rejection: Rejection) -> HTTPAnswer {
    switch rejection.code {
    case .invalidJSON:
      return .google(400, "INVALID_ARGUMENT", "Invalid JSON payload received. \(rejection.reason)")
    case .missingRegistration:
      return .google(400, "INVALID_ARGUMENT", "Recipient of the message is not set.", field: "message")
    case .invalidRegistration:
      let field = field(rejection) ?? "message.token"
      // Senders delete the token when they read this message.
      let words =
        field == "message.token" ? "The registration token is not a valid FCM registration token" : rejection.reason
      return .google(400, "INVALID_ARGUMENT", words, fcmCode: "INVALID_ARGUMENT", field: field)
    case .messageTooBig: return .google(400, "INVALID_ARGUMENT", "Message too big: \(rejection.reason)")
    default: return .google(400, "INVALID_ARGUMENT", rejection.reason, field: field(rejection))
    }
  }

  /// The field at the start of a reason.
  private static func field(_ rejection: Rejection) -> String? {
    guard let end = rejection.reason.firstRange(of: ": ")?.lowerBound else { return nil }
    let place = String(rejection.reason[..<end])
    return place.hasPrefix("message") || place.hasPrefix("validate") ? place : nil
  }
}
