import HTTP2
import PushCore

/// Apple's push service for Safari (Apple, "Sending web push notifications in web apps and browsers").
struct ApplePush: WebPushVendor {
  var limitsRenewals: Bool { true }

  /// Seconds.
  private static let longestLife: Int64 = 2_592_000

  func accept(_ push: JournalEntry, _ headers: WebPushHeaders, origin: String, id: [UInt8]) -> SimulatedAnswer {
    SimulatedAnswer(status: 201, headers: [HeaderField(name: Array("apns-id".utf8), value: id)])
  }

  /// Wants an address for mail or an `https` address, and neither at localhost. Decorated addresses are refused.
  func accepts(subject: [UInt8]?) -> Bool {
    guard let subject else { return false }
    let text = String(decoding: subject, as: UTF8.self)
    guard !text.contains(where: { "<> ".contains($0) }) else { return false }
    if text.hasPrefix("mailto:") {
      let parts = text.dropFirst(7).split(separator: "@", omittingEmptySubsequences: false)
      return parts.count == 2 && !parts[0].isEmpty && !parts[1].isEmpty && parts[1] != "localhost"
    }
    guard text.hasPrefix("https://") else { return false }
    let host = text.dropFirst(8).prefix { !"/:?#".contains($0) }
    return !host.isEmpty && host != "localhost"
  }

  /// The topic is decoded as Base64, which has no text of 1, 5, 9, … characters.
  func check(_ headers: WebPushHeaders, of request: ServerRequest) throws(WebPushRefusal) {
    guard headers.timeToLive <= Self.longestLife else { throw .badTTL }
    if let topic = headers.topic, topic.count % 4 == 1 { throw .badTopic }
  }

  func code(of refusal: WebPushRefusal) -> (status: Int, reason: String?) {
    switch refusal {
    case .missingToken, .badToken: (403, "BadJwtToken")
    case .badKey: (403, "BadVapidPublicKey")
    case .otherKey: (403, "VapidPkHashMismatch")
    case .missingTTL, .badTTL: (400, "BadTtl")
    case .badUrgency: (400, "BadUrgency")
    case .badTopic: (400, "BadWebPushTopic")
    default: (refusal.usual.status, nil)
    }
  }

  func usualReason(_ status: Int) -> String { Self.reasons[status] ?? "InternalServerError" }

  private static let reasons = [
    400: "BadWebPushRequest", 403: "BadJwtToken", 404: "BadPath", 405: "MethodNotAllowed", 410: "ExpiredToken",
    413: "PayloadTooLarge", 429: "TooManyRequests", 503: "ServiceUnavailable",
  ]

  func refuse(_ status: Int, _ reason: String) -> SimulatedAnswer {
    SimulatedAnswer(
      status: status, reason: reason, headers: [HeaderField("content-type", "application/json")],
      body: (["reason": reason] as JSONObject).line)
  }
}
