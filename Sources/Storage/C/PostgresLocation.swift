import CPostgres

/// What libpq reads from a location (postgresql.org/docs/current/libpq-connect.html, "Connection URIs").
enum PostgresLocation {
  /// Refuses what libpq would misread, in words of our own: libpq's repeat the text, and with it the password.
  static func check(_ text: String) throws(StoreError) {
    guard let options = PQconninfoParse(text, nil) else {
      throw .unusable(
        .badLocation, "can't be parsed: are the parameters libpq's, and special characters of the password percent-encoded?")
    }
    defer { PQconninfoFree(options) }
    let place = text.prefix { $0 != "?" }.drop { $0 != "/" }.dropFirst(2)
    let authority = place.prefix { $0 != "/" }
    guard authority.count(where: { $0 == "@" }) <= 1, !place.dropFirst(authority.count).contains("@"),
      value("port", options).utf8.allSatisfy({ (48...57).contains($0) || $0 == UInt8(ascii: ",") })
    else {
      throw .unusable(.badLocation, "names no host: special characters of the password are to be percent-encoded")
    }
  }

  private static func value(_ keyword: String, _ options: UnsafePointer<PQconninfoOption>) -> String {
    var option = options
    while let name = option.pointee.keyword {
      if String(cString: name) == keyword { return option.pointee.val.map { String(cString: $0) } ?? "" }
      option += 1
    }
    return ""
  }
}
