import Wire

/// A compact JSON Web Token (RFC 7515 §3.1): header, claims and signature in base64url, joined by dots.
enum JSONWebToken {
  /// `header` and `claims` are JSON objects; `sign` gets the ASCII signing input.
  static func make(header: [UInt8], claims: [UInt8], sign: ([UInt8]) throws -> [UInt8]) rethrows -> [UInt8] {
    var token = Base64URL.encode(header)
    token.append(UInt8(ascii: "."))
    token += Base64URL.encode(claims)
    let signature = try sign(token)
    token.append(UInt8(ascii: "."))
    token += Base64URL.encode(signature)
    return token
  }
}
