import PushCore
import Wire

/// A compact JSON Web Token (RFC 7515 §3.1): header, claims and signature in base64url, joined by dots.
enum JSONWebToken {
  /// - Parameter sign: gets the ASCII signing input.
  static func make(header: JSONObject, claims: JSONObject, sign: ([UInt8]) throws -> [UInt8]) rethrows -> [UInt8] {
    var token = Base64URL.encode(header.line)
    token.append(UInt8(ascii: "."))
    token += Base64URL.encode(claims.line)
    let signature = try sign(token)
    token.append(UInt8(ascii: "."))
    token += Base64URL.encode(signature)
    return token
  }
}
