/// The parts of an FCM error body that decide its meaning.
struct FCMErrorBody {
  /// The code of `google.firebase.fcm.v1.FcmError`; nil also for `UNSPECIFIED_ERROR`.
  private(set) var errorCode: String?
  private(set) var status: String?
  /// True if FCM blames the token or installation id: by a field violation, or by its text for a malformed token.
  private(set) var namesToken = false
  /// True if the message is FCM's text for a payload over 4096 bytes ("Android message is too big").
  private(set) var isTooBig = false
  /// True if `QuotaFailure` concerns the device, not the project.
  private(set) var concernsDevice = false

  /// Accepts any body; unreadable parts stay nil.
  init(_ body: [UInt8]) {
    guard let document = ErrorBody.document(body), let error = document.value("error", of: document.root) else { return }
    status = document.string("status", of: error).map(ErrorBody.word)
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
      let field = Self.text(document, "field", of: violation) ?? ""
      if ["message.token", "token", "message.fid", "fid"].contains(field) { namesToken = true }
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
    document.string(name, of: object).map { String(decoding: $0, as: UTF8.self) }
  }
}
