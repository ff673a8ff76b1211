import PushCore
import TLS

/// A JSON Web Token taken apart (RFC 7519), not yet believed.
struct WebToken {
  let header: JSONDocument
  let claims: JSONDocument
  /// What the signature is over.
  let signed: [UInt8]
  let signature: [UInt8]

  /// Nil unless it is three parts of unpadded base64url, the first two of them JSON objects.
  init?(_ text: [UInt8]) {
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

  func header(_ name: String) -> [UInt8]? { Self.string(name, in: header) }
  func claim(_ name: String) -> [UInt8]? { Self.string(name, in: claims) }

  func integerClaim(_ name: String) -> Int64? {
    guard let node = claims.value(name, of: 0) else { return nil }
    return try? claims.integer(node)
  }

  private static func string(_ name: String, in document: JSONDocument) -> [UInt8]? {
    guard let node = document.value(name, of: 0), document.kind(node) == .string else { return nil }
    return document.string(node)
  }
}
