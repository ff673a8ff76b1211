extension APNsReply {
  /// Every reason that Apple documents for sends, broadcasts and channel management ("Handling notification responses from
  /// APNs", "Handling error responses from APNs"), and a few undocumented reasons that clients have seen.
  ///
  /// Apple says not to retry BadDeviceToken, DeviceTokenNotForTopic, Forbidden, ExpiredToken, Unregistered and PayloadTooLarge.
  /// APNs disconnects clients that cause many 4xx answers, mainly BadDeviceToken; 410 doesn't count.
  public static let rows: [ReplyRow] = [
    .init(400, "BadCollapseId", .drop(.invalidParameters), "the collapse id is longer than 64 bytes"),
    .init(
      400, "BadExpirationDate", .drop(.invalidParameters),
      "the expiration is not a Unix time, or it is not 0 for a channel that stores nothing"),
    .init(400, "BadMessageId", .drop(.invalidParameters), "the apns-id is not a canonical UUID"),
    .init(400, "BadPriority", .drop(.invalidParameters), "the priority is not 1, 5 or 10, or it is 10 for a background push"),
    .init(400, "InvalidPushType", .drop(.invalidParameters), "the push type is unknown or doesn't agree with the payload"),
    .init(400, "MissingPushType", .drop(.invalidParameters), "the push type is missing"),
    .init(400, "PayloadEmpty", .drop(.invalidParameters), "the payload is empty"),
    .init(400, "DuplicateHeaders", .drop(.invalidParameters), "a header appears twice"),
    .init(
      400, "BadTopic", .credential(.invalidPackageName), connection: .stopTopic, alarm: true,
      "the topic is invalid: check the app's topic and the push type's suffix"),
    .init(
      400, "MissingTopic", .credential(.invalidPackageName), connection: .stopTopic, alarm: true,
      "the topic is missing and the certificate has several: set the app's topic"),
    .init(
      400, "TopicDisallowed", .credential(.invalidPackageName), connection: .stopTopic, alarm: true,
      "the credential may not send to this topic: check topic, key and team"),
    .init(
      400, "MissingDeviceToken", .drop(.internalServerError), alarm: true, "the path had no token: a fault of this software"),
    .init(
      400, "BadDeviceToken", .suspect(.invalidRegistration),
      "the token is malformed or belongs to the other environment: prune only if you know that the environment is right"),
    .init(
      400, "DeviceTokenNotForTopic", .suspect(.invalidRegistration),
      "the token belongs to another app: check the app's topic, then prune"),
    .init(400, "IdleTimeout", .retry(.connection, .unavailable), connection: .replace, "the connection was idle too long"),
    .init(
      400, "FeatureNotEnabled", .drop(.invalidAPNsCredential), alarm: true,
      "broadcast is not enabled for this app: enable it in the developer account"),
    .init(400, "MissingChannelId", .drop(.invalidParameters), "the channel id is missing"),
    .init(400, "BadChannelId", .drop(.invalidRegistration), "the channel id is malformed"),
    .init(400, "ChannelNotRegistered", .drop(.invalidRegistration), "the channel doesn't exist in this environment"),
    .init(400, "BadRequestParams", .drop(.invalidParameters), "a parameter is wrong"),
    .init(400, "BadRequestPayload", .drop(.invalidParameters), "the request's body is wrong"),
    .init(400, "MissingChannelQueueSize", .drop(.invalidParameters), "the channel's storage policy is wrong (undocumented)"),
    .init(400, "CannotCreateChannelConfig", .drop(.invalidParameters), alarm: true, "the app already has 10,000 channels"),
    .init(
      403, "BadCertificate", .credential(.invalidAPNsCredential), connection: .stopCredential, alarm: true,
      "the certificate is refused: renew it"),
    .init(
      403, "BadCertificateEnvironment", .credential(.invalidAPNsCredential), connection: .stopCredential, alarm: true,
      "the certificate is for the other environment"),
    .init(
      403, "ExpiredProviderToken", .retry(.refreshedToken, .invalidAPNsCredential), connection: .refreshTokenAndReplace,
      "the provider token is older than an hour: sent once more with another token on a new connection; "
        + "check the clock if it comes again"),
    .init(403, "Forbidden", .drop(.invalidAPNsCredential), alarm: true, "the action is not allowed"),
    .init(
      403, "InvalidProviderToken", .credential(.invalidAPNsCredential), connection: .stopCredential, alarm: true,
      "the provider token is refused: check key id, team id, key file and clock"),
    .init(
      403, "MissingProviderToken", .credential(.invalidAPNsCredential), connection: .stopCredential, alarm: true,
      "no certificate and no provider token: check the app's credential"),
    .init(
      403, "UnrelatedKeyIdInToken", .retry(.connection, .invalidAPNsCredential), connection: .replace, alarm: true,
      "the connection belongs to another key"),
    .init(
      403, "BadEnvironmentKeyIdInToken", .credential(.invalidAPNsCredential), connection: .stopCredential, alarm: true,
      "the key is for the other environment"),
    .init(
      403, "BadEnvironmentKeyInToken", .credential(.invalidAPNsCredential), connection: .stopCredential, alarm: true,
      "the key is for the other environment (spelling seen by clients)"),
    .init(403, "TopicMismatch", .drop(.invalidPackageName), alarm: true, "the channel belongs to another app"),
    .init(404, "BadPath", .drop(.internalServerError), alarm: true, "the path is wrong: a fault of this software"),
    .init(405, "MethodNotAllowed", .drop(.internalServerError), alarm: true, "the method is wrong: a fault of this software"),
    .init(
      410, "Unregistered", .gone(.notRegistered),
      "the app is gone from the device: prune what was registered before invalid_since"),
    .init(410, "ExpiredToken", .gone(.notRegistered), "the token has expired: prune"),
    .init(413, "PayloadTooLarge", .drop(.messageTooBig), "the payload is larger than the push type allows"),
    .init(
      429, "TooManyProviderTokenUpdates", .credential(.unavailable), connection: .keepTokenAndWait, alarm: true,
      "provider tokens were made more often than every 20 minutes: check what else uses the key, and the workers' clocks"),
    .init(429, "TooManyRequests", .retry(.perDevice, .deviceMessageRateExceeded), "too many pushes to this one device"),
    .init(500, "InternalServerError", .retry(.outage, .internalServerError), "APNs has a fault"),
    .init(503, "ServiceUnavailable", .retry(.outage, .unavailable), "APNs is not available"),
    .init(503, "Service Unavailable", .retry(.outage, .unavailable), "APNs is not available (broadcast's spelling)"),
    .init(503, "Shutdown", .retry(.connection, .unavailable), connection: .replace, "the server is shutting down"),
  ]

  /// The meaning by status, for a reason that is missing or unknown. The first matching row counts.
  public static let statusRows: [ReplyRow] = [
    .init(403...403, .drop(.invalidAPNsCredential), alarm: true, "refused for an unknown reason: look at the credential"),
    .init(404...405, .drop(.internalServerError), alarm: true, "not APNs' path or method: check the endpoint"),
    .init(408...408, .retry(.connection, .unavailable), connection: .replace, "the server waited too long for the request"),
    .init(410...410, .gone(.notRegistered), "the device is gone"),
    .init(413...413, .drop(.messageTooBig), "the payload is too large"),
    .init(429...429, .retry(.perDevice, .deviceMessageRateExceeded), "too many requests"),
    .init(400...499, .drop(.invalidParameters), "the request is refused for an unknown reason"),
    .init(500...599, .retry(.outage, .unavailable), "the server has a fault"),
    .init(Int.min...Int.max, .drop(.internalServerError), alarm: true, "APNs gives no such answer: check the endpoint"),
  ]
}
