import COpenSSL

/// OpenSSL's per-thread error queue as text for people.
enum OpenSSLError {
  static func clear() { ERR_clear_error() }

  /// Returns the first error's reason in OpenSSL's words (such as "wrong version number"), and empties the queue.
  static func take() -> (reason: Int32, text: String)? {
    let code = ERR_get_error()
    guard code != 0 else { return nil }
    ERR_clear_error()
    let text = ERR_reason_error_string(code).map { String(cString: $0) } ?? "OpenSSL error \(code)"
    return (ERR_GET_REASON(code), text)
  }

  static func text() -> String { take()?.text ?? "no reason given" }
}

/// A credential, CA or TLS setting that can't be used. Names the file and the rule, never secret content.
public struct CredentialError: Error, Equatable, Sendable, CustomStringConvertible {
  public let file: String?
  public let reason: String

  public init(file: String?, reason: String) {
    self.file = file
    self.reason = reason
  }

  public var description: String { file.map { "\($0): \(reason)" } ?? reason }
}
