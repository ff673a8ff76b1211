import HTTP2
import PushCore

/// A push server for UnifiedPush, with ntfy's answers. A reason is ntfy's code: the status and two digits.
struct UnifiedPush: WebPushVendor {
  var requiresToken: Bool { false }

  func accept(_ push: JournalEntry, _ headers: WebPushHeaders, origin: String, id: [UInt8]) -> SimulatedAnswer {
    let json: JSONObject = [
      "id": id, "time": push.time / 1000, "event": "message", "topic": push.token,
    ]
    return SimulatedAnswer(status: 200, headers: Self.headers, body: json.line)
  }

  func code(of refusal: WebPushRefusal) -> (status: Int, reason: String?) {
    (refusal == .unknownSubscription ? 404 : refusal.usual.status, nil)
  }

  func usualReason(_ status: Int) -> String { "\(status)01" }

  func refuse(_ status: Int, _ reason: String) -> SimulatedAnswer {
    let json: JSONObject = [
      "code": Int64(reason) ?? Int64(status) * 100, "http": status,
      "error": Self.messages[reason] ?? StatusPhrase.of(status).lowercased(), "link": "https://ntfy.sh/docs/publish/",
    ]
    return SimulatedAnswer(status: status, reason: reason, headers: Self.headers, body: json.line)
  }

  private static let messages = [
    "42901": "limit reached: too many requests",
    "50701": "cannot publish to UnifiedPush topic without previously active subscriber",
  ]
  private static let headers = [HeaderField("content-type", "application/json")]
}
