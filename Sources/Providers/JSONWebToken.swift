import TLS

/// A compact JSON Web Token (RFC 7515 §3.1): header, claims and signature in base64url, joined by dots.
enum JSONWebToken {
  /// `header` and `claims` are JSON texts; `sign` gets the ASCII signing input.
  static func make(header: String, claims: String, sign: ([UInt8]) throws -> [UInt8]) rethrows -> [UInt8] {
    var token = Base64URL.encode(header.utf8)
    token.append(UInt8(ascii: "."))
    token += Base64URL.encode(claims.utf8)
    let signature = try sign(token)
    token.append(UInt8(ascii: "."))
    token += Base64URL.encode(signature)
    return token
  }

  /// A JSON string literal, quotes included.
  static func quoted(_ text: String) -> String {
    var out = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\":
        out.unicodeScalars.append("\\")
        out.unicodeScalars.append(scalar)
      case "\u{0}"..."\u{1F}":
        let hex = String(scalar.value, radix: 16)
        out += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out + "\""
  }
}
