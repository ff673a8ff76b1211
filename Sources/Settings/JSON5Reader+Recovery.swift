/// With `path` set, reading continues after a fault at the next comma, bracket or line; otherwise the fault is thrown.
extension JSON5Reader {
  /// Records the fault, or throws it if reading must end.
  mutating func note(_ fault: Fault, _ bearing: JSON5Reading.Bearing) throws(Fault) {
    guard path != nil, !reading.isStopped, reading.note(fault, bearing) else { throw fault }
  }

  /// Marks the fault as one after which reading can't continue.
  mutating func stop(_ fault: Fault) -> Fault {
    reading.isStopped = true
    return fault
  }

  /// Continues after an invalid value.
  mutating func recover(from fault: Fault) throws(Fault) {
    guard path != nil, !reading.isStopped else { throw fault }
    if let path { reading.broken.insert(ConfigurationSource.name(path)) }
    let isMissing = next == "," || next == open.last
    // If the next lines don't look like JSON5, this text may be a key of many lines, and each of them would be a fault.
    if reading.hasOpenText {
      reading.hasOpenText = false
      guard goesOnBehindLine() else { throw stop(fault) }
      // The unclosed text may include the comma.
      reading.isSeparated = true
      return try note(fault, .guessed)
    }
    try note(fault, isMissing || next.map(Self.closes) != true ? .certain : .guessed)
    skipValue()
  }

  /// Continues after an invalid key.
  mutating func recoverKey(from fault: Fault) throws(Fault) {
    guard !reading.isStopped else { throw fault }
    reading.hasOpenText = false
    try note(fault, .guessed)
    let start = at
    skipValue()
    if next == "," { at += 1 } else if at == start, next.map(endsOuter) != true { at += 1 }
    try skipSpace()
  }

  /// Continues after a missing comma.
  mutating func recoverSeparator(from fault: Fault) throws(Fault) {
    if next == nil || next.map(Self.closes) == true {
      // Skip closing brackets that match no open one.
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

  /// True if the object or list ends without its own bracket: at the end of the text, or at an outer bracket.
  mutating func endsEarly() throws(Fault) -> Bool {
    guard path != nil, next.map(endsOuter) != false else { return false }
    try noteEnd(expected(open.last == "]" ? "a value" : "a key"))
    return true
  }

  /// True for the bracket of an enclosing object or list.
  private func endsOuter(_ scalar: UnicodeScalar) -> Bool { Self.closes(scalar) && open.contains(scalar) }

  /// Records a missing or surplus end, unless an earlier guess explains it.
  mutating func noteEnd(_ fault: Fault) throws(Fault) {
    if path == nil || reading.isCertain { try note(fault, .guessed) }
  }

  // MARK: looking ahead

  private static func closes(_ scalar: UnicodeScalar) -> Bool { scalar == "}" || scalar == "]" }

  /// Skips to the comma, the bracket or the end of the line, inside text or not.
  private mutating func skipValue() {
    while let next, next != ",", !Self.closes(next), !Self.isLineEnd(next) { at += 1 }
  }

  private var isValueNext: Bool {
    next.map { "{[\"'-+.".unicodeScalars.contains($0) || Self.isDigit($0) || Self.beginsName($0) } == true
  }

  /// True if a key and its colon come next.
  private var isMemberNext: Bool {
    var ahead = self
    ahead.path = nil
    do throws(Fault) {
      _ = try ahead.isQuote ? ahead.string() : ahead.name()
      try ahead.skipSpace()
      return ahead.next == ":"
    } catch { return false }
  }

  /// True if the next line can't be a continuation of an unclosed text.
  private func goesOnBehindLine() -> Bool {
    var ahead = self
    ahead.path = nil
    do throws(Fault) { try ahead.skipSpace() } catch { return false }
    guard let next = ahead.next else { return false }
    return Self.closes(next) || ahead.isMemberNext || open.last == "]" && ahead.isQuote
  }
}
