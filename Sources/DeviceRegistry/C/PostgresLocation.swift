import CPostgres

/// libpq's parsing of a location (postgresql.org/docs/current/libpq-connect.html, "Connection URIs").
enum PostgresLocation {
  /// Refuses locations that libpq would misread. It uses its own error texts, because libpq's contain the password.
  static func check(_ text: String) throws(RegistryError) {
    guard let options = PQconninfoParse(text, nil) else {
      throw .unusable(
        .badLocation, "can't be parsed: use libpq's parameters, and percent-encode the special characters of the password")
    }
    defer { PQconninfoFree(options) }
    let place = text.prefix { $0 != "?" }.drop { $0 != "/" }.dropFirst(2)
    let authority = place.prefix { $0 != "/" }
    guard authority.count(where: { $0 == "@" }) <= 1, !place.dropFirst(authority.count).contains("@"),
      (values(options)["port"] ?? "").utf8.allSatisfy({ (48...57).contains($0) || $0 == UInt8(ascii: ",") })
    else {
      throw .unusable(.badLocation, "names no host: percent-encode the special characters of the password")
    }
  }

  static func parameters(_ text: String) -> [String: String] {
    guard let options = PQconninfoParse(text, nil) else { return [:] }
    defer { PQconninfoFree(options) }
    return values(options)
  }

  private static func values(_ options: UnsafePointer<PQconninfoOption>) -> [String: String] {
    var found: [String: String] = [:]
    var option = options
    while let name = option.pointee.keyword {
      if let value = option.pointee.val { found[String(cString: name)] = String(cString: value) }
      option += 1
    }
    return found
  }
}
