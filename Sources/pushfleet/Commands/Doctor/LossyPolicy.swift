/// A policy that makes a queue lose messages.
struct LossyPolicy: Hashable {
  /// The name of the policy or operator policy; both names if there are both.
  var policy: String
  var effect: String

  /// The effects of a policy's definition that lose messages. A policy's overflow replaces the queue's own. A length limit
  /// without an overflow in the policy only refuses publications.
  /// - Parameter isList: true for a queue that may drop its oldest messages.
  static func effects(of definition: [String: Any], isList: Bool) -> [String] {
    var effects: [String] = []
    let isBounded = definition["max-length"] != nil || definition["max-length-bytes"] != nil
    if let overflow = definition["overflow"] as? String, overflow != "reject-publish", isBounded, !isList {
      effects.append("drops messages beyond a length (overflow \(overflow))")
    }
    if let ttl = definition["message-ttl"] { effects.append("lets messages expire (message-ttl \(ttl) ms)") }
    if let expires = definition["expires"] {
      effects.append("deletes unused queues with their messages (expires \(expires) ms)")
    }
    if let limit = definition["delivery-limit"] {
      effects.append("gives up messages that workers return (delivery-limit \(limit))")
    }
    return effects
  }
}
