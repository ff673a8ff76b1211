extension FCMReply {
  /// `google.firebase.fcm.v1.FcmError.errorCode` (Firebase, "ErrorCode"). Takes precedence over the other tables.
  public static let errorCodeRows: [ReplyRow] = [
    .init(
      400, "INVALID_ARGUMENT", .drop(.invalidParameters),
      "the message is malformed; the token is suspect only if the answer names it"),
    .init(
      401, "THIRD_PARTY_AUTH_ERROR", .drop(.invalidAPNsCredential), alarm: true,
      "the project's APNs or Web Push credential is bad: upload it anew"),
    .init(
      401, "APNS_AUTH_ERROR", .drop(.invalidAPNsCredential), alarm: true, "the project's APNs credential is bad (old name)"),
    .init(403, "SENDER_ID_MISMATCH", .suspect(.mismatchSenderID), "the token belongs to another sender: check the project"),
    .init(404, "UNREGISTERED", .gone(.notRegistered), "the app instance is gone: prune"),
    .init(
      429, "QUOTA_EXCEEDED", .retry(.quota, .unavailable),
      "a quota is used up: the project's, or the device's if the answer says so"),
    .init(500, "INTERNAL", .retry(.fcm, .internalServerError), "FCM has a fault"),
    .init(503, "UNAVAILABLE", .retry(.fcm, .unavailable), "FCM is overloaded"),
  ]

  /// `error.status` (google.rpc.Code). Used if errorCode is missing or `UNSPECIFIED_ERROR`.
  public static let statusWordRows: [ReplyRow] = [
    .init(
      400, "INVALID_ARGUMENT", .drop(.invalidParameters),
      "a field of the message is wrong; the token is suspect only if the answer names its field"),
    .init(400, "FAILED_PRECONDITION", .drop(.invalidParameters), "the project can't send this"),
    .init(400, "OUT_OF_RANGE", .drop(.invalidParameters), "a field is out of range"),
    .init(
      401, "UNAUTHENTICATED", .retry(.refreshedToken, .unavailable), connection: .refreshToken,
      "the access token is refused: sent once more with a new one"),
    .init(
      403, "PERMISSION_DENIED", .credential(.internalServerError), connection: .stopCredential, alarm: true,
      "the API is disabled or the service account lacks the role: the token is not judged"),
    .init(
      404, "NOT_FOUND", .credential(.internalServerError), connection: .stopProject, alarm: true,
      "no such project: check project_id; the token is not judged"),
    .init(409, "ABORTED", .retry(.fcm, .unavailable), "FCM gave up the request"),
    .init(429, "RESOURCE_EXHAUSTED", .retry(.quota, .unavailable), "a quota is used up"),
    .init(499, "CANCELLED", .retry(.fcm, .unavailable), "FCM gave up the request"),
    .init(500, "INTERNAL", .retry(.fcm, .internalServerError), "FCM has a fault"),
    .init(500, "UNKNOWN", .retry(.fcm, .internalServerError), "FCM has a fault"),
    .init(503, "UNAVAILABLE", .retry(.fcm, .unavailable), "FCM is overloaded"),
    .init(504, "DEADLINE_EXCEEDED", .retry(.fcm, .unavailable), "FCM was too slow"),
  ]

  /// By HTTP status, for an answer with neither. The first matching row counts.
  public static let statusRows: [ReplyRow] = [
    .init(
      401...401, .retry(.refreshedToken, .unavailable), connection: .refreshToken,
      "the access token is refused: sent once more with a new one"),
    .init(
      403...403, .drop(.internalServerError), alarm: true,
      "refused for an unknown reason: look at the service account and the endpoint"),
    .init(404...405, .drop(.internalServerError), alarm: true, "no such path or project: the token is not judged"),
    .init(408...408, .retry(.connection, .unavailable), connection: .replace, "the server waited too long for the request"),
    .init(413...413, .drop(.messageTooBig), "the message is too large"),
    .init(429...429, .retry(.quota, .unavailable), "too many requests"),
    .init(400...499, .drop(.invalidParameters), "the message is refused for an unknown reason"),
    .init(500...599, .retry(.fcm, .unavailable), "the server has a fault"),
    .init(Int.min...Int.max, .drop(.internalServerError), alarm: true, "FCM gives no such answer: check the endpoint"),
  ]
}
