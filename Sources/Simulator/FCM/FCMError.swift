import PushCore

/// An error answer of FCM v1 in the format of Google's APIs (Google, "ErrorCode"; google.rpc.Status).
struct FCMError: Error, Equatable {
  var status: Int
  var code: String
  var message: String
  /// `errorCode` of the FcmError detail; nil for no such detail.
  var errorCode: String?
  var violations: [FieldViolation] = []

  struct FieldViolation: Equatable, Sendable {
    var field: String
    var description: String
  }

  /// Errors by the `reason` of a script. Those above the blank line have an FcmError detail, those below don't.
  static let table: [String: FCMError] = {
    func row(_ status: Int, _ code: String, _ errorCode: String?, _ message: String) -> FCMError {
      FCMError(status: status, code: code, message: message, errorCode: errorCode)
    }
    return [
      "INVALID_ARGUMENT": row(
        400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token"),
      "UNREGISTERED": row(404, "NOT_FOUND", "UNREGISTERED", "Requested entity was not found."),
      "SENDER_ID_MISMATCH": row(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "SenderId mismatch"),
      "QUOTA_EXCEEDED": row(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", "Resource has been exhausted (e.g. check quota)."),
      "THIRD_PARTY_AUTH_ERROR": row(
        401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", "Auth error from APNS or Web Push Service"),
      "APNS_AUTH_ERROR": row(401, "UNAUTHENTICATED", "APNS_AUTH_ERROR", "Auth error from APNS"),
      "INTERNAL": row(500, "INTERNAL", "INTERNAL", "Internal error encountered."),
      "UNAVAILABLE": row(503, "UNAVAILABLE", "UNAVAILABLE", "The service is currently unavailable."),
      "UNSPECIFIED_ERROR": row(500, "UNKNOWN", "UNSPECIFIED_ERROR", "Unknown error."),

      "BAD_REQUEST": FCMError(
        status: 400, code: "INVALID_ARGUMENT", message: "Request contains an invalid argument.",
        violations: [FieldViolation(field: "message.android.ttl", description: "Illegal duration format")]),
      "UNAUTHENTICATED": row(401, "UNAUTHENTICATED", nil, "Request had invalid authentication credentials."),
      "PERMISSION_DENIED": row(403, "PERMISSION_DENIED", nil, "Permission denied on resource project."),
      "NOT_FOUND": row(404, "NOT_FOUND", nil, "Requested entity was not found."),
      "RESOURCE_EXHAUSTED": row(429, "RESOURCE_EXHAUSTED", nil, "Resource has been exhausted (e.g. check quota)."),
    ]
  }()

  /// The reason for a scripted status without one.
  static let usualReason: [Int: String] = [
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "SENDER_ID_MISMATCH", 404: "UNREGISTERED", 429: "QUOTA_EXCEEDED",
    500: "INTERNAL", 503: "UNAVAILABLE",
  ]

  /// The error of a scripted step. A reason that isn't in the table is used unchanged, with an FcmError detail.
  static func scripted(_ step: Step) -> FCMError? {
    let reason = step.reason ?? step.status.flatMap { usualReason[$0] }
    guard step.status != 200, step.status != nil || reason != nil else { return nil }
    var error =
      reason.flatMap { table[$0] }
      ?? FCMError(status: 500, code: "UNKNOWN", message: "Scripted.", errorCode: step.reason)
    error.status = step.status ?? error.status
    return error
  }

  /// The error for a request that can't be parsed as a message.
  static func unreadable(_ field: String, _ description: String) -> FCMError {
    FCMError(
      status: 400, code: "INVALID_ARGUMENT", message: "Invalid JSON payload received.",
      violations: [FieldViolation(field: field, description: description)])
  }

  /// The reason in the journal: FCM's code if there is one, otherwise the status.
  var reason: String { errorCode ?? code }

  var body: [UInt8] {
    var details: [JSONObject] = []
    if let errorCode {
      details.append(["@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": errorCode])
    }
    if !violations.isEmpty {
      let fields = violations.map { ["field": $0.field, "description": $0.description] as JSONObject }
      details.append(["@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields])
    }
    let error: JSONObject = [
      "code": status, "message": message, "status": code, "details": JSONOptional(details.isEmpty ? nil : details),
    ]
    return (["error": error] as JSONObject).line
  }
}
