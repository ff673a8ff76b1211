/// Percent-encoding of URLs and forms (RFC 3986 §2.1 and `application/x-www-form-urlencoded`).
package enum PercentEncoding {
  /// - Parameter keepsOther: keeps a `%` that begins no escape.
  /// - Returns: nil if another escape is incomplete or has no digits.
  package static func decode(_ text: ArraySlice<UInt8>, plusIsSpace: Bool = false, keepsOther: Bool = false) -> [UInt8]? {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count)
    var at = text.startIndex
    while at < text.endIndex {
      let byte = text[at]
      at += 1
      if byte == UInt8(ascii: "%"), at + 1 < text.endIndex, let high = text[at].hexValue, let low = text[at + 1].hexValue {
        decoded.append(high << 4 | low)
        at += 2
        continue
      }
      guard byte != UInt8(ascii: "%") || keepsOther else { return nil }
      decoded.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
    }
    return decoded
  }
}
