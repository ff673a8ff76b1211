/// A JSON Web Token taken apart (RFC 7519), not yet believed.
public struct WebToken {
  public let header: JSONDocument
  public let claims: JSONDocument
  /// What the signature is over.
  public let signed: [UInt8]
  public let signature: [UInt8]

  /// Nil unless it is three parts of unpadded base64url, the first two of them JSON objects.
  public init?(_ text: [UInt8]) {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.decode(parts[0]), let claims = Self.decode(parts[1]),
      let signature = Self.decode(parts[2]), !signature.isEmpty,
      let headerObject = try? JSONDocument(header), let claimsObject = try? JSONDocument(claims),
      headerObject.kind(0) == .object, claimsObject.kind(0) == .object
    else { return nil }
    self.header = headerObject
    self.claims = claimsObject
    self.signature = signature
    signed = Array(text[..<parts[2].startIndex.advanced(by: -1)])
  }

  public func header(_ name: String) -> [UInt8]? { Self.string(name, in: header) }
  public func claim(_ name: String) -> [UInt8]? { Self.string(name, in: claims) }

  /// Whole seconds since 1970 of a `NumericDate`, which may have a fraction (RFC 7519 §2).
  public func time(_ name: String) -> Int64? {
    claims.value(name, of: 0).flatMap(claims.double).flatMap { abs($0) < 1e15 ? Int64($0) : nil }
  }

  /// The token in the value of a header `Authorization` whose scheme is `Bearer` in any letter case (RFC 9110 §11.1, §11.4).
  public static func bearer(_ header: [UInt8]) -> [UInt8]? { credential(header, behind: "bearer ") }

  /// What stands behind a word, which is given in small letters, and any spaces; nil where nothing does.
  package static func credential(_ header: [UInt8], behind word: String) -> [UInt8]? {
    let rest = header.dropFirst(word.utf8.count).drop { $0 == 0x20 }
    return TextForm.isAnyCase(header.prefix(word.utf8.count), of: word.utf8) && !rest.isEmpty ? Array(rest) : nil
  }

  private static func string(_ name: String, in document: JSONDocument) -> [UInt8]? {
    guard let node = document.value(name, of: 0), document.kind(node) == .string else { return nil }
    return document.string(node)
  }

  /// Base64url without padding (RFC 7515 §2). Nil for anything that isn't exactly that: other characters, padding, stray bits at the end.
  private static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var count = 0
    for character in text {
      guard let value = value(character) else { return nil }
      bits = bits << 6 | value
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return count < 6 && bits & (1 << UInt32(count) - 1) == 0 ? bytes : nil
  }

  private static func value(_ character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - 0x41)
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - 0x61 + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - 0x30 + 52)
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
