extension [UInt8] {
  /// Appends `text` as a quoted JSON string that is safe to print. Escapes quotes, backslashes, control characters up to
  /// U+009F, line separators (U+2028, U+2029) and marks of direction. Invalid UTF-8 becomes U+FFFD.
  public mutating func appendSafeJSONString(_ span: Span<UInt8>) {
    append(0x22)
    var index = 0
    while index < span.count {
      let start = index
      index = Bytes.endOfPlain(span, from: start)
      if index > start { append(copying: span.extracting(start..<index)) }
      guard index < span.count else { break }
      let byte = span[index]
      if byte < 0x80 {
        appendEscape(byte)
        index &+= 1
        continue
      }
      let length = utf8SequenceLength(span, at: index)
      if length == 0 {
        append(#"\ufffd"#)
        index &+= 1
        continue
      }
      var unit: UInt16 = 0
      if length == 2 { unit = UInt16(byte & 31) &<< 6 | UInt16(span[index &+ 1] & 63) }
      if length == 3 { unit = UInt16(byte) &<< 12 | UInt16(span[index &+ 1] & 63) &<< 6 | UInt16(span[index &+ 2] & 63) }
      if Self.isObeyed(unit) {
        append(contentsOf: [0x5C, 0x75])
        for place: UInt16 in [12, 8, 4, 0] { appendHexDigit(UInt8(unit &>> place & 15)) }
      } else {
        for offset in 0..<length { append(span[index &+ offset]) }
      }
      index &+= length
    }
    append(0x22)
  }

  public mutating func appendSafeJSONString(_ text: [UInt8]) { appendSafeJSONString(text.span) }
  public mutating func appendSafeJSONString(_ text: ArraySlice<UInt8>) { appendSafeJSONString(text.span) }
  public mutating func appendSafeJSONString(_ text: String) { appendSafeJSONString(text.utf8.span) }

  /// C1 controls, line separators and marks of direction (Unicode property Bidi_Control). False for 0.
  private static func isObeyed(_ unit: UInt16) -> Bool {
    switch unit {
    case 0x80...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  private mutating func appendHexDigit(_ digit: UInt8) { append(digit < 10 ? 0x30 &+ digit : 0x57 &+ digit) }

  /// The escape of a quote, a backslash or an ASCII control.
  mutating func appendEscape(_ byte: UInt8) {
    append(0x5C)
    switch byte {
    case 0x22, 0x5C: append(byte)
    case 0x08: append(0x62)
    case 0x09: append(0x74)
    case 0x0A: append(0x6E)
    case 0x0C: append(0x66)
    case 0x0D: append(0x72)
    default:
      append("u00")
      appendHexDigit(byte &>> 4)
      appendHexDigit(byte & 15)
    }
  }
}

/// Bytes of the well-formed UTF-8 sequence at `index` (Unicode, table 3-7); 0 if there is none.
func utf8SequenceLength(_ bytes: borrowing Span<UInt8>, at index: Int) -> Int {
  let first = bytes[index]
  if first < 0x80 { return 1 }
  guard index &+ 1 < bytes.count else { return 0 }
  let second = bytes[index &+ 1]
  if first < 0xE0 { return first >= 0xC2 && second & 0xC0 == 0x80 ? 2 : 0 }
  guard index &+ 2 < bytes.count, bytes[index &+ 2] & 0xC0 == 0x80 else { return 0 }
  if first < 0xF0 {
    let least: UInt8 = first == 0xE0 ? 0xA0 : 0x80
    let most: UInt8 = first == 0xED ? 0x9F : 0xBF
    return second >= least && second <= most ? 3 : 0
  }
  guard first < 0xF5, index &+ 3 < bytes.count, bytes[index &+ 3] & 0xC0 == 0x80 else { return 0 }
  let least: UInt8 = first == 0xF0 ? 0x90 : 0x80
  let most: UInt8 = first == 0xF4 ? 0x8F : 0xBF
  return second >= least && second <= most ? 4 : 0
}
