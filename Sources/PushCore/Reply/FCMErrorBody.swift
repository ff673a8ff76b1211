/// What counts in the body of an FCM error.
struct FCMErrorBody {
  /// Of `google.firebase.fcm.v1.FcmError`; nil also for `UNSPECIFIED_ERROR`, which says nothing.
  private(set) var errorCode: String?
  /// `error.status`.
  private(set) var status: String?
  /// The token or the installation's id itself is at fault: its field violates, or the words that FCM uses for a malformed one.
  private(set) var namesToken = false
  /// The words that FCM uses for a payload over 4096 bytes ("Android message is too big").
  private(set) var isTooBig = false
  /// `QuotaFailure` speaks of the device, not of the project.
  private(set) var concernsDevice = false

  /// Any body: what can't be read stays nil.
  init(_ body: [UInt8]) {
    guard let document = ErrorBody.document(body), let error = document.value("error", of: document.root) else { return }
    status = Self.text(document, "status", of: error).map { ErrorBody.word(Array($0.utf8)) }
    let message = Self.text(document, "message", of: error)?.lowercased() ?? ""
    isTooBig = message.contains("too big")

    var hasFcmError = false
    if let details = document.value("details", of: error) {
      for detail in document.elements(of: details) {
        let type = Self.text(document, "@type", of: detail) ?? ""
        if type.hasSuffix("FcmError") {
          hasFcmError = true
          if let code = Self.text(document, "errorCode", of: detail), code != "UNSPECIFIED_ERROR" {
            errorCode = ErrorBody.word(Array(code.utf8))
          }
        } else if type.hasSuffix("BadRequest") {
          read(fieldViolations: document, detail)
        } else if type.hasSuffix("QuotaFailure") {
          read(quotaFailure: document, detail)
        }
      }
    }
    if hasFcmError, message.contains("not a valid fcm registration token") { namesToken = true }
  }

  private mutating func read(fieldViolations document: JSONDocument, _ detail: Int) {
    guard let violations = document.value("fieldViolations", of: detail) else { return }
    for violation in document.elements(of: violations) {
      let field = Self.text(document, "field", of: violation)
      switch field {
      case "message.token", "token", "message.fid", "fid": namesToken = true
      default: break
      }
    }
  }

  private mutating func read(quotaFailure document: JSONDocument, _ detail: Int) {
    guard let violations = document.value("violations", of: detail) else { return }
    for violation in document.elements(of: violations) {
      for member in ["subject", "description"] {
        let words = Self.text(document, member, of: violation)?.lowercased() ?? ""
        if words.contains("device") || words.contains("token") { concernsDevice = true }
      }
    }
  }

  private static func text(_ document: JSONDocument, _ name: String, of object: Int) -> String? {
    guard let node = document.value(name, of: object), document.kind(node) == .string else { return nil }
    return document.text(node)
  }
}
