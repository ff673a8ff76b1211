/// Percent-encoding of URLs and forms (RFC 3986 §2.1 and `application/x-www-form-urlencoded`).
package enum PercentEncoding {
  /// Nil if an escape is incomplete or has no digits.
  package static func decode(_ text: ArraySlice<UInt8>, plusIsSpace: Bool = false) -> [UInt8]? {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count)
    var bytes = text.makeIterator()
    while let byte = bytes.next() {
      if byte == UInt8(ascii: "%") {
        guard let high = bytes.next()?.hexValue, let low = bytes.next()?.hexValue else { return nil }
        decoded.append(high << 4 | low)
      } else {
        decoded.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
      }
    }
    return decoded
  }
}
