import Wire

/// A decoded JSON Web Token (RFC 7519). Its signature is not verified here.
public struct WebToken {
  public let header: JSONDocument
  public let claims: JSONDocument
  public let signed: [UInt8]
  public let signature: [UInt8]

  /// Nil unless the text has three parts of unpadded base64url and the first two are JSON objects.
  public init?(_ text: [UInt8]) {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64URL.decode(parts[0]), let claims = Base64URL.decode(parts[1]),
      let signature = Base64URL.decode(parts[2]), !signature.isEmpty,
      let headerObject = try? JSONDocument(header), let claimsObject = try? JSONDocument(claims),
      headerObject.kind(0) == .object, claimsObject.kind(0) == .object
    else { return nil }
    self.header = headerObject
    self.claims = claimsObject
    self.signature = signature
    signed = Array(text[..<parts[2].startIndex.advanced(by: -1)])
  }

  public func header(_ name: String) -> [UInt8]? { header.string(name) }
  public func claim(_ name: String) -> [UInt8]? { claims.string(name) }

  /// Unix seconds of a `NumericDate`, without its fraction (RFC 7519 §2).
  public func time(_ name: String) -> Int64? {
    claims.value(name, of: 0).flatMap(claims.double).flatMap { abs($0) < 1e15 ? Int64($0) : nil }
  }

  /// The token of an `Authorization` header with the scheme `Bearer` in any letter case (RFC 9110 §11.1, §11.4).
  public static func bearer(_ header: [UInt8]) -> [UInt8]? { credential(header, behind: "bearer ") }

  /// The rest after `word` (in lower case) and any spaces; nil if the header doesn't begin with it or nothing follows.
  package static func credential(_ header: [UInt8], behind word: String) -> [UInt8]? {
    let rest = header.dropFirst(word.utf8.count).drop { $0 == 0x20 }
    return TextForm.isAnyCase(header.prefix(word.utf8.count), of: word.utf8) && !rest.isEmpty ? Array(rest) : nil
  }
}
