import PushCore

/// The name of a token, registration or user in the trace: a stable one-way hash.
public enum RequestTraceName {
  private static let namespace = DeviceIdentity(messageID: Array("pushfleet.trace".utf8))

  public static func of(_ token: ArraySlice<UInt8>) -> [UInt8] { namespace.apnsID(token: token.span) }

  /// Nil for a target that is neither a device nor a user.
  public static func of(_ target: Target, app: [UInt8]) -> [UInt8]? {
    switch target {
    case .apns(let id), .fcm(let id), .fcmTopics(let id), .channel(let id): of(id)
    case .registration(let id): of(id[...])
    case .webpush(let token): WebPushSubscription.name(of: token)
    case .user(let user): of((app + Array("/users/".utf8) + user)[...])
    case .topic, .all, .group, .invalid: nil
    }
  }
}
