extension [UInt8] {
  /// Appends `text` as a quoted JSON string. Quote, backslash and control characters (ESC and DEL among them, so that a terminal
  /// shows what it prints) are escaped, and U+2028 and U+2029, which end lines in JavaScript; what is not UTF-8 becomes U+FFFD.
  public mutating func appendSafeJSONString(_ text: [UInt8]) { appendSafeJSONString(text[...]) }

  public mutating func appendSafeJSONString(_ text: ArraySlice<UInt8>) {
    append(0x22)
    let span = text.span
    var index = 0
    while index < span.count {
      let start = index
      while index < span.count, Self.isPlain(span[index]) { index &+= 1 }
      if index > start { append(contentsOf: text[text.startIndex + start..<text.startIndex + index]) }
      guard index < span.count else { break }
      let byte = span[index]
      if byte < 0x80 {
        appendEscape(byte)
        index &+= 1
        continue
      }
      let length = utf8SequenceLength(span, at: index)
      if length == 0 {
        append(contentsOf: #"\ufffd"#.utf8)
        index &+= 1
        continue
      }
      if length == 3, byte == 0xE2, span[index &+ 1] == 0x80, span[index &+ 2] & 0xFE == 0xA8 {
        append(contentsOf: (span[index &+ 2] == 0xA8 ? #"\u2028"# : #"\u2029"#).utf8)
      } else {
        for offset in 0..<length { append(span[index &+ offset]) }
      }
      index &+= length
    }
    append(0x22)
  }

  public mutating func appendSafeJSONString(_ text: String) { appendSafeJSONString([UInt8](text.utf8)) }

  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte < 0x7F && byte != 0x22 && byte != 0x5C
  }

  private mutating func appendEscape(_ byte: UInt8) {
    append(0x5C)
    switch byte {
    case 0x22, 0x5C: append(byte)
    case 0x08: append(0x62)
    case 0x09: append(0x74)
    case 0x0A: append(0x6E)
    case 0x0C: append(0x66)
    case 0x0D: append(0x72)
    default:
      append(contentsOf: "u00".utf8)
      append(0x30 &+ byte &>> 4)
      append(byte & 15 < 10 ? 0x30 &+ byte & 15 : 0x57 &+ byte & 15)
    }
  }
}

/// Bytes of the well-formed UTF-8 sequence at `index` (Unicode, table 3-7); 0 when there is none.
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
