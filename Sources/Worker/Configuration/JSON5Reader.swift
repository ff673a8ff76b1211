/// Reads one JSON5 document (spec.json5.org), strictly: what is wrong is said with its line and column, and a key that stands
/// twice is refused. What it says never repeats more than a key's name or one character of the text.
struct JSON5Reader {
  struct Fault: Error, CustomStringConvertible {
    let line: Int
    /// In characters, from 1.
    let column: Int
    let reason: String

    var description: String { "line \(line), column \(column): \(reason)" }
  }

  /// Objects and lists within each other.
  private static let deepest = 64

  private let text: [UnicodeScalar]
  private var at = 0
  private var depth = 0

  static func read(_ text: String) throws(Fault) -> ConfigurationValue {
    var reader = JSON5Reader(text: Array(text.unicodeScalars))
    try reader.skipSpace()
    guard reader.next != nil else { throw reader.fault("the document is empty") }
    let value = try reader.value()
    try reader.skipSpace()
    if let next = reader.next { throw reader.fault("expected the end, found \(Self.words(next))") }
    return value
  }

  private init(text: [UnicodeScalar]) { self.text = text }

  private var next: UnicodeScalar? { at < text.count ? text[at] : nil }

  private func fault(_ reason: String, at place: Int? = nil) -> Fault {
    let before = text[..<min(place ?? at, text.count)]
    let line = before.indices.count { Self.endsLine(text, $0) } + 1
    let start = before.indices.last { Self.endsLine(text, $0) }.map { $0 + 1 } ?? 0
    return Fault(line: line, column: before.count - start + 1, reason: reason)
  }

  private func expected(_ what: String) -> Fault {
    fault("expected \(what), found \(next.map(Self.words) ?? "the end")")
  }

  private static func words(_ scalar: UnicodeScalar) -> String {
    if isLineEnd(scalar) { return "the end of the line" }
    return scalar.value < 0x20 || scalar.value == 0x7F ? "a control character" : "'\(Character(scalar))'"
  }

  // MARK: values

  private mutating func value() throws(Fault) -> ConfigurationValue {
    switch next {
    case "{": return try nested { (reader) throws(Fault) in try reader.object() }
    case "[": return try nested { (reader) throws(Fault) in try reader.array() }
    case "\"", "'": return .string(try string())
    case .some(let first) where first == "-" || first == "+" || first == "." || Self.isDigit(first): return try number()
    case .some(let first) where Self.beginsName(first): return try word()
    default: throw expected("a value")
    }
  }

  private mutating func nested(_ read: (inout JSON5Reader) throws(Fault) -> ConfigurationValue) throws(Fault)
    -> ConfigurationValue
  {
    guard depth < Self.deepest else { throw fault("nested deeper than \(Self.deepest) levels") }
    depth += 1
    at += 1
    try skipSpace()
    let value = try read(&self)
    depth -= 1
    return value
  }

  private mutating func object() throws(Fault) -> ConfigurationValue {
    var members: [String: ConfigurationValue] = [:]
    while next != "}" {
      let start = at
      let key = next == "\"" || next == "'" ? try string() : try name()
      guard members[key] == nil else { throw fault("the key \(Shown.value(key)) stands here a second time", at: start) }
      try skipSpace()
      guard next == ":" else { throw expected("':' after the key") }
      at += 1
      try skipSpace()
      members[key] = try value()
      try separator("}")
    }
    at += 1
    return .object(members)
  }

  private mutating func array() throws(Fault) -> ConfigurationValue {
    var elements: [ConfigurationValue] = []
    while next != "]" {
      elements.append(try value())
      try separator("]")
    }
    at += 1
    return .array(elements)
  }

  /// A comma, which may stand before the end as well, or the end.
  private mutating func separator(_ end: UnicodeScalar) throws(Fault) {
    try skipSpace()
    if next == "," {
      at += 1
      return try skipSpace()
    }
    guard next == end else { throw expected("',' or '\(Character(end))'") }
  }

  private mutating func word() throws(Fault) -> ConfigurationValue {
    let start = at
    switch try name() {
    case "null": return .null
    case "true": return .bool(true)
    case "false": return .bool(false)
    case "Infinity": return .number(.infinity)
    case "NaN": return .number(.nan)
    default: throw fault("expected a value; text must stand in quotes", at: start)
    }
  }

  private mutating func number() throws(Fault) -> ConfigurationValue {
    let start = at
    var digits = ""
    while let next, Self.continuesName(next) || next == "." || "+-".unicodeScalars.contains(next) {
      digits.unicodeScalars.append(next)
      at += 1
    }
    let isNegative = digits.hasPrefix("-")
    let body = digits.drop { $0 == "+" || $0 == "-" }
    guard digits.count - body.count <= 1 else { throw fault("is no number", at: start) }
    if body == "Infinity" { return .number(isNegative ? -.infinity : .infinity) }
    if body == "NaN" { return .number(.nan) }
    if body.lowercased().hasPrefix("0x") {
      guard let value = Int(body.dropFirst(2), radix: 16), body.dropFirst(2).first?.isHexDigit == true else {
        throw fault("is no number", at: start)
      }
      return .integer(isNegative ? -value : value)
    }
    guard body.utf8.allSatisfy({ (48...57).contains($0) || [0x2B, 0x2D, 0x2E, 0x45, 0x65].contains($0) }),
      !(body.count > 1 && body.hasPrefix("0") && body.dropFirst().first?.isNumber == true), body != ".",
      let value = Double((body.hasPrefix(".") ? "0" : "") + body + (body.hasSuffix(".") ? "0" : ""))
    else { throw fault("is no number", at: start) }
    if let whole = Int(exactly: isNegative ? -value : value), abs(value) < 1e15 { return .integer(whole) }
    return .number(isNegative ? -value : value)
  }

  // MARK: texts

  private mutating func string() throws(Fault) -> String {
    let start = at
    let quote = text[at]
    at += 1
    var result = String.UnicodeScalarView()
    while let scalar = next, scalar != quote {
      if scalar == "\n" || scalar == "\r" {
        throw fault(#"the text that begins here doesn't end on its line: write \n for a line break"#, at: start)
      }
      at += 1
      if scalar == "\\" { try escape(into: &result) } else { result.append(scalar) }
    }
    guard next != nil else { throw fault("the text that begins here doesn't end", at: start) }
    at += 1
    return String(result)
  }

  private mutating func escape(into result: inout String.UnicodeScalarView) throws(Fault) {
    guard let scalar = next else { return }
    at += 1
    switch scalar {
    case "b": result.append("\u{8}")
    case "f": result.append("\u{C}")
    case "n": result.append("\n")
    case "r": result.append("\r")
    case "t": result.append("\t")
    case "v": result.append("\u{B}")
    case "x": result.append(try unit(digits: 2))
    case "u": result.append(try unit(digits: 4))
    case "\r": if next == "\n" { at += 1 }
    case "\n", "\u{2028}", "\u{2029}": break
    case "0" where next.map(Self.isDigit) != true: result.append("\0")
    case _ where Self.isDigit(scalar): throw fault("no such escape", at: at - 2)
    default: result.append(scalar)
    }
  }

  /// A scalar by its hexadecimal digits; two surrogates stand for one.
  private mutating func unit(digits: Int) throws(Fault) -> UnicodeScalar {
    let start = at - 2
    let first = try hexadecimal(digits, start)
    if let scalar = UnicodeScalar(first) { return scalar }
    guard first < 0xDC00, next == "\\", at + 1 < text.count, text[at + 1] == "u" else {
      throw fault("half a character", at: start)
    }
    at += 2
    let second = try hexadecimal(4, start)
    guard (0xDC00...0xDFFF).contains(second),
      let scalar = UnicodeScalar(0x1_0000 + (first - 0xD800) << 10 + (second - 0xDC00))
    else { throw fault("half a character", at: start) }
    return scalar
  }

  private mutating func hexadecimal(_ digits: Int, _ start: Int) throws(Fault) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<digits {
      guard let digit = next.flatMap({ Character($0).isASCII ? Character($0).hexDigitValue : nil }) else {
        throw fault("an escape needs \(digits) hexadecimal digits", at: start)
      }
      value = value << 4 | UInt32(digit)
      at += 1
    }
    return value
  }

  /// A key without quotes.
  private mutating func name() throws(Fault) -> String {
    var result = String.UnicodeScalarView()
    while let scalar = next, result.isEmpty ? Self.beginsName(scalar) : Self.continuesName(scalar) {
      at += 1
      if scalar != "\\" {
        result.append(scalar)
      } else {
        guard next == "u" else { throw fault("no such escape", at: at - 1) }
        at += 1
        result.append(try unit(digits: 4))
      }
    }
    guard !result.isEmpty else { throw expected("a key") }
    return String(result)
  }

  private static func isDigit(_ scalar: UnicodeScalar) -> Bool { (0x30...0x39).contains(scalar.value) }

  private static func beginsName(_ scalar: UnicodeScalar) -> Bool {
    scalar == "$" || scalar == "_" || scalar == "\\" || scalar.properties.isIDStart
  }

  private static func continuesName(_ scalar: UnicodeScalar) -> Bool {
    beginsName(scalar) || scalar.properties.isIDContinue || scalar == "\u{200C}" || scalar == "\u{200D}"
  }

  // MARK: between values

  private mutating func skipSpace() throws(Fault) {
    while let scalar = next {
      if Self.isLineEnd(scalar) || Self.isSpace(scalar) {
        at += 1
      } else if scalar == "/", at + 1 < text.count, text[at + 1] == "/" {
        while let next, !Self.isLineEnd(next) { at += 1 }
      } else if scalar == "/", at + 1 < text.count, text[at + 1] == "*" {
        let start = at
        at += 2
        while at + 1 < text.count, text[at] != "*" || text[at + 1] != "/" { at += 1 }
        guard at + 1 < text.count else { throw fault("the comment that begins here doesn't end", at: start) }
        at += 2
      } else if scalar == "#" {
        throw fault("a comment begins with // here")
      } else {
        return
      }
    }
  }

  private static func isSpace(_ scalar: UnicodeScalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0B, 0x0C, 0x20, 0xA0, 0xFEFF: true
    default: scalar.properties.generalCategory == .spaceSeparator
    }
  }

  private static func isLineEnd(_ scalar: UnicodeScalar) -> Bool { [0x0A, 0x0D, 0x2028, 0x2029].contains(scalar.value) }

  /// CR LF is one end.
  private static func endsLine(_ text: [UnicodeScalar], _ index: Int) -> Bool {
    isLineEnd(text[index]) && !(text[index] == "\r" && index + 1 < text.count && text[index + 1] == "\n")
  }
}
