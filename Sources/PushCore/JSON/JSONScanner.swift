import Wire

/// Scans the scalar tokens of RFC 8259 §3, §6, §7. Each function starts at the first byte of a token and returns its end.
enum JSONScanner {
  /// Scans to the closing quote. Validates escapes and UTF-8 (RFC 3629 §4: no overlong form or surrogate, at most U+10FFFF).
  @inline(__always)
  static func string(_ bytes: borrowing Span<UInt8>, from start: Int) throws(JSONError) -> (end: Int, flags: UInt32) {
    let at = Bytes.endOfPlain(bytes, from: start)
    guard at < bytes.count else { throw JSONError(offset: at, reason: "the body ends inside a string") }
    return bytes[at] == 0x22 ? (at, 0) : try stringSlowly(bytes, from: at)
  }

  /// Continues ``string(_:from:)`` at the first byte that isn't plain.
  @inline(never)
  private static func stringSlowly(
    _ bytes: borrowing Span<UInt8>, from start: Int
  ) throws(JSONError) -> (end: Int, flags: UInt32) {
    let length = bytes.count
    var at = start
    var flags: UInt32 = 0
    while at < length {
      let byte = bytes[at]
      if byte >= 0x80 {
        let size = utf8SequenceLength(bytes, at: at)
        guard size > 0 else { throw JSONError(offset: at, reason: "invalid UTF-8") }
        at &+= size
      } else if byte == 0x22 {
        return (at, flags)
      } else if byte == 0x5C {
        flags |= JSONNode.escaped
        at = try escape(bytes, at).end
      } else if byte >= 0x20 {
        at &+= 1
      } else {
        throw JSONError(offset: at, reason: "a control character (\(JSONReader.describe(byte))) inside a string, escape it")
      }
    }
    throw JSONError(offset: length, reason: "the body ends inside a string")
  }

  /// One escape sequence, from its backslash. A surrogate pair counts as one.
  static func escape(_ bytes: borrowing Span<UInt8>, _ at: Int) throws(JSONError) -> (scalar: UInt32, end: Int) {
    guard at &+ 1 < bytes.count else { throw JSONError(offset: bytes.count, reason: "the body ends inside a string") }
    switch bytes[at &+ 1] {
    case UInt8(ascii: "\""): return (0x22, at &+ 2)
    case UInt8(ascii: "\\"): return (0x5C, at &+ 2)
    case UInt8(ascii: "/"): return (0x2F, at &+ 2)
    case UInt8(ascii: "b"): return (0x08, at &+ 2)
    case UInt8(ascii: "f"): return (0x0C, at &+ 2)
    case UInt8(ascii: "n"): return (0x0A, at &+ 2)
    case UInt8(ascii: "r"): return (0x0D, at &+ 2)
    case UInt8(ascii: "t"): return (0x09, at &+ 2)
    case UInt8(ascii: "u"): break
    default: throw JSONError(offset: at, reason: "unknown escape")
    }
    let unit = try hex4(bytes, at &+ 2)
    if unit < 0xD800 || unit > 0xDFFF { return (unit, at &+ 6) }
    guard unit < 0xDC00, at &+ 7 < bytes.count, bytes[at &+ 6] == 0x5C, bytes[at &+ 7] == UInt8(ascii: "u") else {
      throw JSONError(offset: at, reason: "a lone surrogate")
    }
    let second = try hex4(bytes, at &+ 8)
    guard second >= 0xDC00, second <= 0xDFFF else { throw JSONError(offset: at, reason: "a lone surrogate") }
    return (0x10000 &+ ((unit &- 0xD800) << 10) &+ (second &- 0xDC00), at &+ 12)
  }

  private static func hex4(_ bytes: borrowing Span<UInt8>, _ at: Int) throws(JSONError) -> UInt32 {
    var value: UInt32 = 0
    var index = at
    while index < at &+ 4 {
      guard index < bytes.count else { throw JSONError(offset: bytes.count, reason: "the body ends inside a string") }
      let byte = bytes[index]
      guard let digit = byte.hexValue else {
        throw JSONError(offset: index, reason: "expected a hexadecimal digit, found \(JSONReader.describe(byte))")
      }
      value = value << 4 | UInt32(digit)
      index &+= 1
    }
    return value
  }

  /// RFC 8259 §6. Computes no value, so none can overflow.
  static func number(_ bytes: borrowing Span<UInt8>, from start: Int) throws(JSONError) -> (end: Int, flags: UInt32) {
    var at = start
    var flags: UInt32 = 0
    if bytes[at] == UInt8(ascii: "-") { at &+= 1 }
    if at < bytes.count, bytes[at] == UInt8(ascii: "0") {
      at &+= 1
      if at < bytes.count, Bytes.isDigit(bytes[at]) { throw JSONError(offset: at, reason: "a number with a leading zero") }
    } else {
      at = try digits(bytes, at)
    }
    if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
      flags = JSONNode.fractional
      at = try digits(bytes, at &+ 1)
    }
    if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
      flags = JSONNode.fractional
      at &+= 1
      if at < bytes.count, bytes[at] == UInt8(ascii: "+") || bytes[at] == UInt8(ascii: "-") { at &+= 1 }
      at = try digits(bytes, at)
    }
    return (at, flags)
  }

  private static func digits(_ bytes: borrowing Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
    var at = start
    while at < bytes.count, Bytes.isDigit(bytes[at]) { at &+= 1 }
    guard at == start else { return at }
    guard at < bytes.count else { throw JSONError(offset: at, reason: "the body ends inside a number") }
    throw JSONError(offset: at, reason: "expected a digit, found \(JSONReader.describe(bytes[at]))")
  }

  static func literal(_ bytes: borrowing Span<UInt8>, from at: Int) throws(JSONError) -> (kind: JSONKind, end: Int) {
    if spells(bytes, at, "true") { return (.true, at &+ 4) }
    if spells(bytes, at, "false") { return (.false, at &+ 5) }
    if spells(bytes, at, "null") { return (.null, at &+ 4) }
    throw JSONError(offset: at, reason: "expected a value, found \(JSONReader.describe(bytes[at]))")
  }

  @inline(__always)
  private static func spells(_ bytes: borrowing Span<UInt8>, _ start: Int, _ word: String) -> Bool {
    var at = start
    for byte in word.utf8 {
      guard at < bytes.count, bytes[at] == byte else { return false }
      at &+= 1
    }
    return true
  }
}
