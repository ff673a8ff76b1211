import HTTP2

/// A push service's own rules, and the form of its answers.
protocol WebPushVendor: Sendable {
  /// True if a push without a VAPID token is refused.
  var requiresToken: Bool { get }
  /// True if a subscription belongs to one VAPID key.
  var bindsKeys: Bool { get }
  /// True if VAPID tokens may be renewed once an hour at most.
  var limitsRenewals: Bool { get }
  func accepts(subject: [UInt8]?) -> Bool
  func check(_ headers: WebPushHeaders, of request: ServerRequest) throws(WebPushRefusal)

  func accept(_ push: WebPushAcceptance) -> SimulatedAnswer
  /// The status and the vendor's own name of a refusal.
  func code(of refusal: WebPushRefusal) -> (status: Int, reason: String)
  /// The reason for a scripted status without one.
  func usualReason(_ status: Int) -> String
  func refuse(_ status: Int, _ reason: String) -> SimulatedAnswer
}

extension WebPushVendor {
  var requiresToken: Bool { true }
  var bindsKeys: Bool { true }
  var limitsRenewals: Bool { false }
  func accepts(subject: [UInt8]?) -> Bool { true }
  func check(_ headers: WebPushHeaders, of request: ServerRequest) throws(WebPushRefusal) {}

  func answer(to refusal: WebPushRefusal) -> SimulatedAnswer {
    let (status, reason) = code(of: refusal)
    return refuse(status, reason)
  }
}

/// A push that a vendor accepts.
struct WebPushAcceptance {
  let headers: WebPushHeaders
  let origin: String
  let subscription: [UInt8]
  /// A new UUID.
  let messageID: [UInt8]
  /// Unix milliseconds.
  let time: Int64
}
