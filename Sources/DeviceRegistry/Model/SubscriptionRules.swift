import PushCore

/// The configuration's rules for new subscriptions to web push.
public struct SubscriptionRules: Sendable {
  /// Returns the rules of an application, or of its sender; nil if it has no web push.
  public typealias LookUp = (_ app: [UInt8], _ sender: [UInt8]?) -> SubscriptionRules?

  /// The id of the VAPID key for subscriptions that name none, 8 bytes.
  public let keyID: [UInt8]
  /// Whether an endpoint may be at the origin.
  let allows: @Sendable (WebPushOrigin) -> Bool

  public init(keyID: [UInt8], allows: @escaping @Sendable (WebPushOrigin) -> Bool) {
    self.keyID = keyID
    self.allows = allows
  }
}

extension RegistryChange {
  /// Checks the push service of a subscription, and names the VAPID key of a new one that names none. Other changes stay as they
  /// are.
  public func following(_ rules: SubscriptionRules.LookUp) -> Result<RegistryChange, ChangeRefusal> {
    guard case .register(var registration) = self, registration.platform == .webpush,
      let rules = rules(registration.app, registration.sender)
    else { return .success(self) }
    guard let origin = WebPushOrigin(WebPushSubscription.origin(of: registration.token[...])), rules.allows(origin) else {
      return .failure(
        ChangeRefusal(
          .invalidRegistration, "subscription.endpoint: its host or port isn't allowed by the application's webpush.hosts"))
    }
    registration.newKeyID = rules.keyID
    return .success(.register(registration))
  }
}
