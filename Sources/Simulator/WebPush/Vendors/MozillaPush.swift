import HTTP2
import PushCore

/// Mozilla's autopush. A reason is its `errno` (autopush, "Error codes").
struct MozillaPush: WebPushVendor {
  /// False for endpoints of version 1, whose subscriptions have no key.
  let bindsKeys: Bool
  var requiresToken: Bool { bindsKeys }

  /// Seconds; a longer life is cut.
  private static let longestLife: Int64 = 2_592_000

  func accept(_ push: JournalEntry, _ headers: WebPushHeaders, origin: String, id: [UInt8]) -> SimulatedAnswer {
    SimulatedAnswer(
      status: 201,
      headers: [
        HeaderField("location", "\(origin)/m/\(String(decoding: id, as: UTF8.self))"),
        HeaderField("ttl", String(min(headers.timeToLive, Self.longestLife))),
      ])
  }

  func code(of refusal: WebPushRefusal) -> (status: Int, reason: String?) {
    switch refusal {
    case .unknownSubscription: (404, nil)
    case .otherKey: (401, nil)
    case .missingTTL: (400, "111")
    case .badTTL: (400, "112")
    case .badTopic: (400, "113")
    case .badUrgency: (400, "999")
    default: (refusal.usual.status, nil)
    }
  }

  func usualReason(_ status: Int) -> String { Self.reasons[status] ?? "999" }

  private static let reasons = [400: "110", 401: "109", 404: "102", 410: "106", 413: "104", 502: "900", 503: "201"]

  func refuse(_ status: Int, _ reason: String) -> SimulatedAnswer {
    let json: JSONObject = [
      "code": status, "errno": Int64(reason) ?? 999, "error": StatusPhrase.of(status),
      "message": Self.messages[reason] ?? reason,
      "more_info": "http://autopush.readthedocs.io/en/latest/http.html#error-codes",
    ]
    var headers = [HeaderField("content-type", "application/json")]
    if status == 410 { headers.append(HeaderField("cache-control", "max-age=86400")) }
    return SimulatedAnswer(status: status, reason: reason, headers: headers, body: json.line)
  }

  private static let messages = [
    "102": "Request did not validate: invalid token", "103": "Expired URL endpoint", "104": "Data payload too large",
    "105": "Endpoint became unavailable during request", "106": "Invalid subscription", "109": "Invalid authentication",
    "110": "Invalid crypto headers", "111": "Missing TTL header", "112": "Invalid TTL header value",
    "113": "Invalid topic header value", "201": "Use exponential back-off for retries", "202": "Immediate retry ok",
    "900": "The bridge is not available", "999": "Unknown error",
  ]
}
