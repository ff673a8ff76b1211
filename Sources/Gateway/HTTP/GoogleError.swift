import PushCore
import StatusHTTP

/// An error in the format of Google's APIs (AIP-193), with FCM's error code if there is one.
struct GoogleError {
  var status: Int
  /// The name of a google.rpc.Code.
  var code: String
  var message: String
  var fcmCode: String?
  /// The wrong field.
  var field: String?

  init(_ status: Int, _ code: String, _ message: String, fcmCode: String? = nil, field: String? = nil) {
    self.status = status
    self.code = code
    self.message = message
    self.fcmCode = fcmCode
    self.field = field
  }

  init(_ fault: Fault) {
    let code =
      switch fault {
      case .badTarget, .badRequest, .badGrant, .wrongMethod, .badEncoding, .reused: "INVALID_ARGUMENT"
      case .noSuchPlace: "NOT_FOUND"
      case .noKey, .wrongKey: "UNAUTHENTICATED"
      case .notAllowed, .foreign: "PERMISSION_DENIED"
      case .tooMany: "RESOURCE_EXHAUSTED"
      case .unavailable: "UNAVAILABLE"
      }
    let fcmCode: String? =
      switch fault {
      case .tooMany: "QUOTA_EXCEEDED"
      case .unavailable: "UNAVAILABLE"
      default: nil
      }
    self.init(fault.status, code, fault.words, fcmCode: fcmCode)
  }

  func answer(headers: [String: String] = [:]) -> HTTPAnswer {
    let details = details
    return .json(
      status, headers: headers,
      [
        "error": [
          "code": status, "message": message, "status": code, "details": JSONOptional(details.isEmpty ? nil : details),
        ] as JSONObject
      ])
  }

  private var details: [JSONObject] {
    var details: [JSONObject] = []
    if let fcmCode {
      details.append(["@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": fcmCode])
    }
    if let field {
      let violations: [JSONObject] = [["field": field, "description": message]]
      details.append(["@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations])
    }
    return details
  }
}
