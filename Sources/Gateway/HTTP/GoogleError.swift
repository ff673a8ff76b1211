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
    .json(status, headers: headers) { body in
      body.set(
        "error",
        object: { error in
          error.set("code", Int64(status))
          error.set("message", message)
          error.set("status", code)
          guard fcmCode != nil || field != nil else { return }
          error.set("details", objects: details)
        })
    }
  }

  private var details: [(inout JSONObjectWriter) -> Void] {
    var details: [(inout JSONObjectWriter) -> Void] = []
    if let fcmCode {
      details.append { detail in
        detail.set("@type", "type.googleapis.com/google.firebase.fcm.v1.FcmError")
        detail.set("errorCode", fcmCode)
      }
    }
    if let field {
      details.append { [message] detail in
        detail.set("@type", "type.googleapis.com/google.rpc.BadRequest")
        detail.set(
          "fieldViolations",
          objects: [
            {
              $0.set("field", field)
              $0.set("description", message)
            }
          ])
      }
    }
    return details
  }
}
