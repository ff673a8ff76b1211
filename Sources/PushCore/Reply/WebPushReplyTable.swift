extension WebPushReply {
  /// The words of Apple, of Google's pages, of Mozilla (`errno`) and of WNS. `VapidPkHashMismatch` comes with 400 and with 403.
  public static let rows: [ReplyRow] = [
    .init(400, "BadWebPushRequest", .drop(.invalidParameters), "Apple can't read the request"),
    .init(400, "BadTtl", .drop(.invalidParameters), "Apple doesn't accept the TTL"),
    .init(400, "BadUrgency", .drop(.invalidParameters), "Apple doesn't accept the Urgency"),
    .init(400, "BadWebPushTopic", .drop(.invalidParameters), "Apple doesn't accept the Topic"),
    .init(400, "VapidPkHashMismatch", .suspect(.mismatchSenderID), otherKey),
    .init(
      403, "BadJwtToken", .retry(.refreshedToken, .invalidAPNsCredential), connection: .refreshToken,
      "the VAPID token is refused: sent once more with another one; check the clock and subject if it comes again"),
    .init(
      403, "BadVapidPublicKey", .retry(.refreshedToken, .invalidAPNsCredential), connection: .refreshToken,
      "the VAPID key is refused: sent once more; check the key if it comes again"),
    .init(413, "PayloadTooLarge", .drop(.messageTooBig), "the push is larger than Apple allows"),
    .init(400, "UnauthorizedRegistration", .suspect(.mismatchSenderID), otherKey),
    .init(410, "NotRegistered", .gone(.notRegistered), gone),
    .init(400, "errno 101", .drop(.invalidParameters), "Mozilla finds no keys of the encryption"),
    .init(400, "errno 108", .drop(.invalidParameters), "the endpoint names a bridge that Mozilla doesn't know"),
    .init(400, "errno 110", .drop(.invalidParameters), "Mozilla doesn't accept the keys of the encryption"),
    .init(400, "errno 111", .drop(.invalidParameters), "Mozilla misses a header"),
    .init(400, "errno 112", .drop(.invalidParameters), "Mozilla doesn't accept the TTL"),
    .init(400, "errno 113", .drop(.invalidParameters), "Mozilla doesn't accept the Topic"),
    .init(400, "errno 114", .drop(.invalidParameters), "Mozilla doesn't accept the TTL"),
    .init(401, "errno 109", .suspect(.mismatchSenderID), connection: .refreshToken, unauthorised),
    .init(404, "errno 102", .gone(.notRegistered), gone),
    .init(410, "errno 103", .gone(.notRegistered), "the subscription has expired: prune"),
    .init(410, "errno 105", .gone(.notRegistered), "the subscription ended during the request: prune"),
    .init(410, "errno 106", .gone(.notRegistered), gone),
    .init(413, "errno 104", .drop(.messageTooBig), "the push is larger than Mozilla allows, or its bridge to Android"),
    .init(503, "errno 201", .retry(.fcm, .unavailable), "Mozilla's push service is overloaded"),
    .init(503, "errno 202", .retry(.connection, .unavailable), "Mozilla asks for the push again at once"),
    throttled,
  ]

  static let throttled = ReplyRow(
    406, "channelthrottled", .retry(.perDevice, .deviceMessageRateExceeded), "too many pushes to this one browser (WNS)")

  /// Google's answers in plain text, by words that they contain, in lower case.
  public static let textRows: [ReplyRow] = [
    .init(
      403, "invalid jwt", .retry(.refreshedToken, .invalidAPNsCredential), connection: .refreshToken,
      "the VAPID token is refused: sent once more with another one; check the clock and subject if it comes again"),
    .init(
      403, "do not correspond to the credentials used to create the subscription", .suspect(.mismatchSenderID), otherKey),
  ]

  /// The meaning by status, for a word that is missing or unknown. The first matching row counts.
  public static let statusRows: [ReplyRow] = [
    .init(
      300...399, .drop(.internalServerError), alarm: true, "a redirect, which is never followed: look at the push service"),
    .init(401...401, .suspect(.mismatchSenderID), connection: .refreshToken, unauthorised),
    .init(
      403...403, .suspect(.mismatchSenderID), alarm: true,
      "the subscription probably belongs to another key; if all are refused, look at key, subject and clock"),
    .init(404...404, .gone(.notRegistered), gone),
    .init(405...405, .drop(.internalServerError), alarm: true, "no push service is at the endpoint"),
    .init(406...406, .retry(.perDevice, .deviceMessageRateExceeded), "too many pushes to this one browser"),
    .init(408...408, .retry(.connection, .unavailable), connection: .replace, "the server waited too long for the request"),
    .init(410...410, .gone(.notRegistered), gone),
    .init(413...413, .drop(.messageTooBig), "the push is too large"),
    .init(429...429, .retry(.perDevice, .deviceMessageRateExceeded), "too many pushes to this one browser"),
    .init(400...499, .drop(.invalidParameters), "the push is refused for an unknown reason"),
    .init(507...507, .retry(.perDevice, .unavailable), "nobody has fetched this subscription's pushes lately"),
    .init(500...599, .retry(.fcm, .unavailable), "the push service has a fault"),
    .init(Int.min...Int.max, .drop(.internalServerError), alarm: true, "no push service gives such an answer"),
  ]

  private static let gone = "the subscription has ended: prune"
  private static let otherKey =
    "the subscription was made with another VAPID key: load that key too, or let the browser subscribe again"
  private static let unauthorised =
    "the VAPID token is refused: sent once more with another one; if others are accepted, the subscription was made with another key"
}
