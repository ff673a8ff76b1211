import CPostgres

/// Maps PostgreSQL's error codes to registry errors (postgresql.org/docs/current/errcodes-appendix.html).
enum PostgresFault {
  /// Nil if the result is no error. Uses the server's primary message only, because its detail contains values.
  static func error(_ result: OpaquePointer) -> RegistryError? {
    switch PQresultStatus(result) {
    case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: break
    default: return nil
    }
    let message =
      field(result, Int32(UInt8(ascii: "M"))) ?? PQresultErrorMessage(result).map { firstLine(String(cString: $0)) } ?? ""
    return error(field(result, Int32(UInt8(ascii: "C"))) ?? "08006", message)
  }

  /// The error of a failed connection attempt. The text contains its code: `FATAL:  28P01: password authentication failed …`.
  /// A code has a digit; the severity before it has none.
  static func connecting(_ message: String) -> RegistryError {
    for part in message.split(separator: ": ") {
      let code = part.drop { $0 == " " }
      if code.utf8.count == 5, code.utf8.allSatisfy({ ($0 >= 48 && $0 <= 57) || ($0 >= 65 && $0 <= 90) }),
        code.contains(where: \.isNumber)
      {
        return error(String(code), message)
      }
    }
    // libpq's messages about an invalid location.
    if message.hasPrefix("invalid ") || message.contains("missing \"=\"") || message.contains("not supported") {
      return .unusable(.badLocation, message)
    }
    return .unavailable(.down, message)
  }

  /// True if the server closes the connection after this error, or the connection is unusable.
  static func endsConnection(_ result: OpaquePointer) -> Bool {
    guard let code = field(result, Int32(UInt8(ascii: "C"))) else { return true }
    return code.hasPrefix("57P") || code.hasPrefix("08") || code == "26000" || code == "0A000" || code == "25P03"
      || code == "25006"
  }

  static func error(_ code: String, _ message: String) -> RegistryError {
    let words = "\(message) (\(code))"
    if let kind = temporary.first(where: { code.hasPrefix($0.code) })?.kind { return .unavailable(kind, words) }
    if let kind = permanent.first(where: { code.hasPrefix($0.code) })?.kind { return .unusable(kind, words) }
    return refusals.contains { code.hasPrefix($0) } ? .refused(words) : .unusable(.broken, words)
  }

  /// A wrong value, a violated constraint, and a value that is too large for an index.
  private static let refusals = ["22", "23", "54"]
  private static let temporary: [(code: String, kind: RegistryError.Unavailability)] = [
    ("08", .down), ("57014", .slow), ("57P", .down), ("53100", .full), ("53", .overloaded), ("55P03", .locked), ("40", .locked),
    ("25006", .readOnly), ("25P03", .down), ("26000", .down), ("0A000", .down), ("58", .down), ("25P02", .down),
  ]
  private static let permanent: [(code: String, kind: RegistryError.Unusability)] = [
    ("28", .accessDenied), ("42501", .accessDenied), ("3D000", .badLocation), ("XX001", .corrupt), ("XX002", .corrupt),
  ]

  private static func field(_ result: OpaquePointer, _ code: Int32) -> String? {
    PQresultErrorField(result, code).map { String(cString: $0) }
  }

  static func firstLine(_ text: String) -> String { String(text.prefix { $0 != "\n" }) }
}
