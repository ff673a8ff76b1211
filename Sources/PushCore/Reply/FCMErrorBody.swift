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
    for detail in Self.elements(document, "details", of: error) {
      let type = Self.text(document, "@type", of: detail) ?? ""
      if type.hasSuffix("FcmError") {
        hasFcmError = true
        if let code = Self.text(document, "errorCode", of: detail), code != "UNSPECIFIED_ERROR" {
          errorCode = ErrorBody.word(Array(code.utf8))
        }
      } else if type.hasSuffix("BadRequest") {
        for violation in Self.elements(document, "fieldViolations", of: detail) {
          let field = Self.text(document, "field", of: violation) ?? ""
          if ["message.token", "token", "message.fid", "fid"].contains(field) { namesToken = true }
        }
      } else if type.hasSuffix("QuotaFailure") {
        for violation in Self.elements(document, "violations", of: detail) {
          let words = ["subject", "description"].compactMap { Self.text(document, $0, of: violation)?.lowercased() }
          if words.contains(where: { $0.contains("device") || $0.contains("token") }) { concernsDevice = true }
        }
      }
    }
    if hasFcmError, message.contains("not a valid fcm registration token") { namesToken = true }
  }

  private static func elements(_ document: JSONDocument, _ name: String, of object: Int) -> [Int] {
    document.value(name, of: object).map { Array(document.elements(of: $0)) } ?? []
  }

  private static func text(_ document: JSONDocument, _ name: String, of object: Int) -> String? {
    document.string(name, of: object).map { String(decoding: $0, as: UTF8.self) }
  }
}
