/// What a policy does to a queue that messages are lost by.
struct LossyPolicy: Hashable {
  /// The policy's name, and the operator policy's, whichever of them it is.
  var policy: String
  var effect: String

  /// Of a policy's definition.
  ///
  /// A queue's own overflow gives way to a policy's; with a length and no overflow in the policy, publishing is refused and nothing is lost.
  /// - Parameter isList: of what the queue is for, the oldest may go.
  static func effects(of definition: [String: Any], isList: Bool) -> [String] {
    var effects: [String] = []
    let isBounded = definition["max-length"] != nil || definition["max-length-bytes"] != nil
    if let overflow = definition["overflow"] as? String, overflow != "reject-publish", isBounded, !isList {
      effects.append("drops messages beyond a length (overflow \(overflow))")
    }
    if let ttl = definition["message-ttl"] { effects.append("has messages expire (message-ttl \(ttl) ms)") }
    if let expires = definition["expires"] {
      effects.append("deletes queues that nobody uses, with what is in them (expires \(expires) ms)")
    }
    if let limit = definition["delivery-limit"] {
      effects.append("gives up what comes back from workers (delivery-limit \(limit))")
    }
    return effects
  }
}
