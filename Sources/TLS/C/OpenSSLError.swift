import COpenSSL

/// OpenSSL's per-thread error queue as words for people.
enum OpenSSLError {
  static func clear() { ERR_clear_error() }

  /// The reason of the first error, in OpenSSL's own words ("wrong version number"), and the queue emptied.
  static func take() -> (reason: Int32, text: String)? {
    let code = ERR_get_error()
    guard code != 0 else { return nil }
    ERR_clear_error()
    let text = ERR_reason_error_string(code).map { String(cString: $0) } ?? "OpenSSL error \(code)"
    return (ERR_GET_REASON(code), text)
  }

  static func text() -> String { take()?.text ?? "no reason given" }
}

/// A credential, CA or TLS setting that cannot be used. Names the file and the rule, never contents.
public struct CredentialError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file's path, where the bytes came from a file.
  public let file: String?
  public let reason: String

  public init(file: String?, reason: String) {
    self.file = file
    self.reason = reason
  }

  public var description: String { file.map { "\($0): \(reason)" } ?? reason }
}
