import PushCore
import Settings

/// One JSON object per platform, or a single one for a request that is refused as a whole.
extension Explanation {
  /// `{"platform":"apns","path":…,"headers":{…},"payload":{…},"bytes":181,"limit":4096,"losses":[…]}`, or
  /// `{"platform":…,"error":"MessageTooBig","reason":…}`, with `hint` if there is one.
  var jsonLines: [[UInt8]] {
    if let rejection { return [json(rejection).line] }
    return views.map { view in
      let platform: JSONObject = ["platform": view.way.platform.word]
      return switch view.outcome {
      case .failure(let rejection): (platform + json(rejection)).line
      case .success(let sending): (platform + Self.json(sending)).line
      }
    }
  }

  /// The explanation of a request that comes to the gateway now.
  static func explain(_ configuration: Configuration, _ app: String, _ body: [UInt8]) -> (isRefused: Bool, json: [UInt8]) {
    let question = ExplainQuestion(
      body: body, coversBothProviders: false, app: ExplainedApp(configuration: configuration, id: app), now: RegistrySession.now
    )
    let explanation = question.answer()
    let lines = explanation.jsonLines
    guard explanation.rejection == nil else { return (true, lines.first ?? []) }
    return (false, JSONObjectWriter.array(lines))
  }

  private func json(_ rejection: Rejection) -> JSONObject {
    ["error": rejection.code.rawValue, "reason": rejection.reason, "hint": JSONOptional(hint)]
  }

  private static func json(_ sending: Sending) -> JSONObject {
    [
      "path": sending.path, "headers": JSONObject(sending.headers.map { ($0.name, $0.value) }),
      "payload": JSONRaw(sending.payload), "bytes": sending.bytes, "limit": sending.limit,
      "losses": JSONRaw(sending.losses.json),
    ]
  }
}
