import HTTP2

/// FCM's endpoints for browsers. Errors are pages of HTML, or plain text about the VAPID token.
struct GooglePush: WebPushVendor {
  func accept(_ push: JournalEntry, _ headers: WebPushHeaders, origin: String, id: [UInt8]) -> SimulatedAnswer {
    let message = String(decoding: id.filter { $0 != UInt8(ascii: "-") }, as: UTF8.self)
    return SimulatedAnswer(status: 201, headers: [HeaderField("location", "\(origin)/0:\(push.time)%\(message)")])
  }

  func code(of refusal: WebPushRefusal) -> (status: Int, reason: String?) {
    switch refusal {
    case .missingToken: (400, "UnauthorizedRegistration")
    case .badToken, .badKey: (403, "permission denied: invalid JWT provided")
    case .missingTTL, .badTTL: (400, "InvalidTtl")
    case .badUrgency: (400, "InvalidUrgency")
    case .badTopic: (400, "InvalidTopic")
    case .badEncoding, .undecryptable: (400, "InvalidEncryption")
    default: (refusal.usual.status, nil)
    }
  }

  func usualReason(_ status: Int) -> String {
    switch status {
    case 401: "invalid push subscription endpoint"
    case 403:
      "the VAPID credentials in the authorization header do not correspond to the credentials used to create the subscriptions."
    case 404, 410: "NotRegistered"
    default: StatusPhrase.of(status)
    }
  }

  func refuse(_ status: Int, _ reason: String) -> SimulatedAnswer {
    let isText = status == 401 || status == 403
    let page = """
      <HTML>
      <HEAD>
      <TITLE>\(reason)</TITLE>
      </HEAD>
      <BODY BGCOLOR="#FFFFFF" TEXT="#000000">
      <H1>\(reason)</H1>
      <H2>Error \(status)</H2>
      </BODY>
      </HTML>

      """
    return SimulatedAnswer(
      status: status, reason: reason,
      headers: [HeaderField("content-type", isText ? "text/plain; charset=utf-8" : "text/html; charset=UTF-8")],
      body: Array((isText ? reason + "\n" : page).utf8))
  }
}
