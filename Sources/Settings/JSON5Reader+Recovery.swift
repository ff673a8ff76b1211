/// Going on behind what is wrong, where places are noted: at the next comma, bracket or line. Elsewhere the first fault is thrown on.
extension JSON5Reader {
  /// Throws the fault where it ends the reading.
  mutating func note(_ fault: Fault, _ bearing: JSON5Reading.Bearing) throws(Fault) {
    guard path != nil, !reading.isStopped, reading.note(fault, bearing) else { throw fault }
  }

  /// The fault, after which nothing can be told.
  mutating func stop(_ fault: Fault) -> Fault {
    reading.isStopped = true
    return fault
  }

  /// Behind a value that is none.
  mutating func recover(from fault: Fault) throws(Fault) {
    guard path != nil, !reading.isStopped else { throw fault }
    if let path { reading.broken.insert(ConfigurationSource.name(path)) }
    let isMissing = next == "," || next == open.last
    // A text that goes on behind its line may be a key of many lines, and each of them would be a fault.
    if reading.hasOpenText {
      reading.hasOpenText = false
      guard goesOnBehindLine() else { throw stop(fault) }
      // Its comma, where it has one, is in the text.
      reading.isSeparated = true
      return try note(fault, .guessed)
    }
    try note(fault, isMissing || next.map(Self.closes) != true ? .certain : .guessed)
    skipValue()
  }

  /// Behind what is no key.
  mutating func recoverKey(from fault: Fault) throws(Fault) {
    guard !reading.isStopped else { throw fault }
    reading.hasOpenText = false
    try note(fault, .guessed)
    let start = at
    skipValue()
    if next == "," { at += 1 } else if at == start, next.map(endsOuter) != true { at += 1 }
    try skipSpace()
  }

  /// Where a comma is missing.
  mutating func recoverSeparator(from fault: Fault) throws(Fault) {
    if next == nil || next.map(Self.closes) == true {
      // Of a bracket that ends nothing open, nothing more is made.
      guard next.map(endsOuter) != false else {
        try note(fault, .guessed)
        while let next, Self.closes(next), !endsOuter(next) {
          at += 1
          try skipSpace()
        }
        if next == "," { at += 1 }
        return try skipSpace()
      }
      return try noteEnd(fault)
    }
    if isMemberNext || open.last == "]" && isValueNext { return try note(fault, .certain) }
    try note(fault, .guessed)
    let start = at
    skipValue()
    if next == "," { at += 1 } else if at == start { at += 1 }
    try skipSpace()
  }

  /// Whether what is open ends here without its bracket: with the text, or with the bracket of what it stands in.
  mutating func endsEarly() throws(Fault) -> Bool {
    guard path != nil else { return false }
    guard let next else {
      try noteEnd(expected(open.last == "]" ? "a value" : "a key"))
      return true
    }
    guard endsOuter(next) else { return false }
    try noteEnd(expected(open.last == "]" ? "a value" : "a key"))
    return true
  }

  /// A bracket of what this stands in.
  private func endsOuter(_ scalar: UnicodeScalar) -> Bool { Self.closes(scalar) && open.contains(scalar) }

  /// An end that is missing, or one too many: where something had to be guessed before, that is why.
  mutating func noteEnd(_ fault: Fault) throws(Fault) {
    if path == nil || reading.isCertain { try note(fault, .guessed) }
  }

  // MARK: what comes next

  private static func closes(_ scalar: UnicodeScalar) -> Bool { scalar == "}" || scalar == "]" }

  /// To the comma, the bracket or the end of the line, in text or not.
  private mutating func skipValue() {
    while let next, next != ",", !Self.closes(next), !Self.isLineEnd(next) { at += 1 }
  }

  private var isValueNext: Bool {
    next.map { "{[\"'-+.".unicodeScalars.contains($0) || Self.isDigit($0) || Self.beginsName($0) } == true
  }

  /// A key with its colon.
  private var isMemberNext: Bool {
    var ahead = self
    ahead.path = nil
    do throws(Fault) {
      _ = try ahead.isQuote ? ahead.string() : ahead.name()
      try ahead.skipSpace()
      return ahead.next == ":"
    } catch { return false }
  }

  /// Whether behind the end of this line there is something that a text wouldn't go on with.
  private func goesOnBehindLine() -> Bool {
    var ahead = self
    ahead.path = nil
    do throws(Fault) { try ahead.skipSpace() } catch { return false }
    guard let next = ahead.next else { return false }
    return Self.closes(next) || ahead.isMemberNext || open.last == "]" && ahead.isQuote
  }
}
