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

  /// - Parameter id: a new UUID.
  func accept(_ push: JournalEntry, _ headers: WebPushHeaders, origin: String, id: [UInt8]) -> SimulatedAnswer
  /// The status and the vendor's own name of a refusal; nil for the status' usual reason.
  func code(of refusal: WebPushRefusal) -> (status: Int, reason: String?)
  /// The reason for a status without one.
  func usualReason(_ status: Int) -> String
  func refuse(_ status: Int, _ reason: String) -> SimulatedAnswer
}

extension WebPushVendor {
  var requiresToken: Bool { true }
  var bindsKeys: Bool { true }
  var limitsRenewals: Bool { false }
  func accepts(subject: [UInt8]?) -> Bool { true }
  func check(_ headers: WebPushHeaders, of request: ServerRequest) throws(WebPushRefusal) {}
}
