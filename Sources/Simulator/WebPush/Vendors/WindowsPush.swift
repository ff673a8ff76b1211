import HTTP2

/// The Windows Push Notification Services (WNS), for Edge. Their answers have headers only.
struct WindowsPush: WebPushVendor {
  /// A push that must not be kept has to say so twice.
  func check(_ headers: WebPushHeaders, of request: ServerRequest) throws(WebPushRefusal) {
    guard headers.timeToLive == 0 else { return }
    guard request.header("x-wns-cache-policy") == Array("no-cache".utf8) else { throw .badTTL }
  }

  func accept(_ push: JournalEntry, _ headers: WebPushHeaders, origin: String, id: [UInt8]) -> SimulatedAnswer {
    SimulatedAnswer(
      status: 201,
      headers: Self.headers("received") + [HeaderField(name: Array("x-wns-msg-id".utf8), value: id)])
  }

  func code(of refusal: WebPushRefusal) -> (status: Int, reason: String?) {
    switch refusal {
    case .missingToken: (401, "The authorization header is missing")
    case .missingTTL: (400, "The TTL header is missing")
    case .badTTL: (400, "The value of TTL conflicts with X-WNS-Cache-Policy")
    case .badUrgency: (400, "The value of Urgency is invalid")
    case .badTopic: (400, "The value of Topic is invalid")
    case .badEncoding, .undecryptable: (400, "The content encoding is invalid")
    default: (refusal.usual.status, nil)
    }
  }

  func usualReason(_ status: Int) -> String { Self.reasons[status] ?? StatusPhrase.of(status) }

  private static let reasons = [
    401: "The JWT token is invalid", 403: "The application server key does not match the channel",
    404: "The channel URI is invalid", 406: "The channel is throttled", 410: "The channel has expired",
    413: "The payload exceeds the size limit",
  ]

  func refuse(_ status: Int, _ reason: String) -> SimulatedAnswer {
    SimulatedAnswer(
      status: status, reason: reason,
      headers: Self.headers(status == 406 ? "channelthrottled" : "dropped")
        + [HeaderField("x-wns-error-description", reason)])
  }

  private static func headers(_ state: String) -> [HeaderField] {
    [HeaderField("x-wns-status", state), HeaderField("x-wns-notificationstatus", state)]
  }
}
