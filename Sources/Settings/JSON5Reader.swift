/// A strict reader of one JSON5 document (spec.json5.org). It refuses duplicate keys. A fault has a line and a column. Its text
/// contains at most a key's name or one character of the document.
struct JSON5Reader {
  struct Fault: Error, Equatable, CustomStringConvertible {
    let line: Int
    /// From 1, in characters.
    let column: Int
    let reason: String

    var description: String { "line \(line), column \(column): \(reason)" }
  }

  private static let deepest = 64

  let text: [UnicodeScalar]
  var at = 0
  /// The closing brackets of the open objects and lists, innermost last.
  var open: [UnicodeScalar] = []
  /// The path of the current value if positions are recorded and reading continues after faults; otherwise nil.
  var path: [String]?
  private var offsets: [String: Int] = [:]
  /// The result so far, if reading continues after faults.
  var reading = JSON5Reading()

  static func read(_ text: String) throws(Fault) -> ConfigurationValue {
    var reader = JSON5Reader(text: Array(text.unicodeScalars))
    return try reader.document()
  }

  /// Reads the document with the positions of all keys, and continues after faults.
  static func readOn(_ text: String) -> JSON5Reading {
    var reader = JSON5Reader(text: Array(text.unicodeScalars))
    reader.path = []
    do throws(Fault) { reader.reading.value = try reader.document() } catch { reader.reading.end(with: error) }
    reader.reading.places = reader.places
    return reader.reading
  }

  private var places: [String: JSON5Reading.Place] {
    var places: [String: JSON5Reading.Place] = [:]
    var place = JSON5Reading.Place()
    var index = 0
    for (name, offset) in offsets.sorted(by: { $0.value < $1.value }) {
      while index < offset {
        if Self.endsLine(text, index) { place = .init(line: place.line + 1) } else { place.column += 1 }
        index += 1
      }
      places[name] = place
    }
    return places
  }

  private mutating func document() throws(Fault) -> ConfigurationValue {
    try skipSpace()
    guard next != nil else { throw fault("the document is empty") }
    let value = try value()
    try skipSpace()
    if let next { try noteEnd(fault("expected the end, found \(Self.words(next))")) }
    return value
  }

  private init(text: [UnicodeScalar]) { self.text = text }

  var next: UnicodeScalar? { at < text.count ? text[at] : nil }

  func fault(_ reason: String, at place: Int? = nil) -> Fault {
    let before = text[..<min(place ?? at, text.count)]
    let line = before.indices.count { Self.endsLine(text, $0) } + 1
    let start = before.indices.last { Self.endsLine(text, $0) }.map { $0 + 1 } ?? 0
    return Fault(line: line, column: before.count - start + 1, reason: reason)
  }

  func expected(_ what: String) -> Fault {
    fault("expected \(what), found \(next.map(Self.words) ?? "the end")")
  }

  private static func words(_ scalar: UnicodeScalar) -> String {
    if isLineEnd(scalar) { return "the end of the line" }
    return scalar.value < 0x20 || scalar.value == 0x7F ? "a control character" : "'\(Character(scalar))'"
  }

  // MARK: values

  private mutating func value() throws(Fault) -> ConfigurationValue {
    do throws(Fault) { return try sound() } catch {
      try recover(from: error)
      return .null
    }
  }

  private mutating func sound() throws(Fault) -> ConfigurationValue {
    switch next {
    case "{": return try nested("}") { (reader) throws(Fault) in try reader.object() }
    case "[": return try nested("]") { (reader) throws(Fault) in try reader.array() }
    case "\"", "'": return .string(try string())
    case .some(let first) where first == "-" || first == "+" || first == "." || Self.isDigit(first): return try number()
    case .some(let first) where Self.beginsName(first): return try word()
    default: throw expected("a value")
    }
  }

  private mutating func nested(
    _ end: UnicodeScalar, _ read: (inout JSON5Reader) throws(Fault) -> ConfigurationValue
  ) throws(Fault) -> ConfigurationValue {
    guard open.count < Self.deepest else { throw stop(fault("nested deeper than \(Self.deepest) levels")) }
    open.append(end)
    at += 1
    try skipSpace()
    let value = try read(&self)
    open.removeLast()
    return value
  }

  private mutating func object() throws(Fault) -> ConfigurationValue {
    var members: [String: ConfigurationValue] = [:]
    while try hasMore() {
      let start = at
      guard let key = try key() else { continue }
      let isSecond = members[key] != nil
      if isSecond { try note(fault("the key \(SafeText.value(key)) is here a second time", at: start), .certain) }
      let value = try placed(key, start)
      if !isSecond { members[key] = value }
      try separator()
    }
    return .object(members)
  }

  /// A key and its colon; nil after an invalid key, if the caller should look for the next one.
  private mutating func key() throws(Fault) -> String? {
    do throws(Fault) {
      let key = try isQuote ? string() : name()
      try skipSpace()
      guard next == ":" else { throw expected("':' after the key") }
      at += 1
      try skipSpace()
      return key
    } catch {
      try recoverKey(from: error)
      return nil
    }
  }

  private mutating func array() throws(Fault) -> ConfigurationValue {
    var elements: [ConfigurationValue] = []
    while try hasMore() {
      elements.append(try placed("[\(elements.count)]", at))
      try separator()
    }
    return .array(elements)
  }

  /// False at the end of the object or list. The closing bracket is then skipped.
  private mutating func hasMore() throws(Fault) -> Bool {
    if next == open.last {
      at += 1
      return false
    }
    return try !endsEarly()
  }

  /// Reads the value of a key, or an element of a list, and records its position.
  private mutating func placed(_ key: String, _ start: Int) throws(Fault) -> ConfigurationValue {
    guard path != nil else { return try value() }
    path?.append(key)
    if let name = path.map(ConfigurationSource.name), offsets[name] == nil { offsets[name] = start }
    let value = try value()
    path?.removeLast()
    return value
  }

  /// Skips a comma. A comma before the closing bracket is allowed.
  private mutating func separator() throws(Fault) {
    try skipSpace()
    let isSeparated = reading.isSeparated
    reading.isSeparated = false
    if next == "," {
      at += 1
      return try skipSpace()
    }
    if isSeparated { return }
    guard let end = open.last, next != end else { return }
    try recoverSeparator(from: expected("',' or '\(Character(end))'"))
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

  var isQuote: Bool { next == "\"" || next == "'" }

  mutating func string() throws(Fault) -> String {
    let start = at
    let quote = text[at]
    at += 1
    var result = String.UnicodeScalarView()
    while let scalar = next, scalar != quote {
      if scalar == "\n" || scalar == "\r" {
        reading.hasOpenText = true
        throw fault(#"the text that begins here doesn't end on its line: write \n for a line break"#, at: start)
      }
      at += 1
      if scalar != "\\" {
        result.append(scalar)
      } else {
        do throws(Fault) { try escape(into: &result) } catch { try note(error, .certain) }
      }
    }
    guard next != nil else { throw stop(fault("the text that begins here doesn't end", at: start)) }
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

  /// A scalar from its hexadecimal digits; two surrogates form one scalar.
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
  mutating func name() throws(Fault) -> String {
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

  static func isDigit(_ scalar: UnicodeScalar) -> Bool { (0x30...0x39).contains(scalar.value) }

  static func beginsName(_ scalar: UnicodeScalar) -> Bool {
    scalar == "$" || scalar == "_" || scalar == "\\" || scalar.properties.isIDStart
  }

  private static func continuesName(_ scalar: UnicodeScalar) -> Bool {
    beginsName(scalar) || scalar.properties.isIDContinue || scalar == "\u{200C}" || scalar == "\u{200D}"
  }

  // MARK: between values

  mutating func skipSpace() throws(Fault) {
    while let scalar = next {
      if Self.isLineEnd(scalar) || Self.isSpace(scalar) {
        at += 1
      } else if scalar == "/", at + 1 < text.count, text[at + 1] == "/" {
        while let next, !Self.isLineEnd(next) { at += 1 }
      } else if scalar == "/", at + 1 < text.count, text[at + 1] == "*" {
        let start = at
        at += 2
        while at + 1 < text.count, text[at] != "*" || text[at + 1] != "/" { at += 1 }
        guard at + 1 < text.count else { throw stop(fault("the comment that begins here doesn't end", at: start)) }
        at += 2
      } else if scalar == "#" {
        try note(fault("a comment begins with // here"), .certain)
        while let next, !Self.isLineEnd(next) { at += 1 }
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

  static func isLineEnd(_ scalar: UnicodeScalar) -> Bool { [0x0A, 0x0D, 0x2028, 0x2029].contains(scalar.value) }

  /// CR LF counts as one line end.
  private static func endsLine(_ text: [UnicodeScalar], _ index: Int) -> Bool {
    isLineEnd(text[index]) && !(text[index] == "\r" && index + 1 < text.count && text[index + 1] == "\n")
  }
}
