extension Condition {
  /// Limits on nested parentheses and mentioned topics bound the cost of evaluation. Five topics need far less.
  static let deepest = 8
  static let mostTerms = 32

  /// Parses a condition of at most `mostTopics` distinct topics. Keywords in any case; white space is optional.
  public static func parse(_ text: [UInt8], mostTopics: Int = 5) throws(ConditionError) -> Condition {
    var parser = ConditionParser(text: text, mostTopics: min(mostTopics, 32))
    let expression = try parser.sequence(depth: 0)
    parser.skipSpace()
    guard parser.at == text.count else { throw parser.fault("expected && or ||") }
    return Condition(topics: parser.topics, expression: expression)
  }
}

private struct ConditionParser {
  let text: [UInt8]
  let mostTopics: Int
  var at = 0
  var topics: [[UInt8]] = []
  var terms = 0

  func fault(_ reason: String) -> ConditionError { ConditionError(offset: at, reason: reason) }

  mutating func skipSpace() {
    while at < text.count, text[at] == 0x20 || text[at] == 0x09 { at += 1 }
  }

  mutating func sequence(depth: Int) throws(ConditionError) -> Condition.Expression {
    var left = try term(depth: depth)
    while true {
      skipSpace()
      if take("&&") {
        left = .and(left, try term(depth: depth))
      } else if take("||") {
        left = .or(left, try term(depth: depth))
      } else {
        return left
      }
    }
  }

  private mutating func term(depth: Int) throws(ConditionError) -> Condition.Expression {
    skipSpace()
    var negated = false
    while take("!") {
      negated.toggle()
      skipSpace()
    }
    let operand: Condition.Expression
    if take("(") {
      guard depth < Condition.deepest else { throw fault("more than \(Condition.deepest) levels of parentheses") }
      operand = try sequence(depth: depth + 1)
      skipSpace()
      guard take(")") else { throw fault("expected &&, || or )") }
    } else {
      operand = try membership()
    }
    return negated ? .not(operand) : operand
  }

  private mutating func membership() throws(ConditionError) -> Condition.Expression {
    guard take("'") else { throw fault("expected a topic in single quotes") }
    let start = at
    while at < text.count, text[at] != UInt8(ascii: "'") { at += 1 }
    guard at < text.count else { throw fault("a topic's closing quote is missing") }
    let name = text[start..<at]
    guard TextForm.isTopicName(name) else {
      at = start
      throw fault("a topic's name has 1 to 899 of the characters a-z A-Z 0-9 - _ . ~ %")
    }
    at += 1
    skipSpace()
    guard takeWord("in") else { throw fault("expected \"in topics\"") }
    skipSpace()
    guard takeWord("topics") else { throw fault("expected \"in topics\"") }
    terms += 1
    guard terms <= Condition.mostTerms else { throw fault("more than \(Condition.mostTerms) terms") }
    if let known = topics.firstIndex(where: { $0.elementsEqual(name) }) { return .topic(known) }
    guard topics.count < mostTopics else { throw fault("more than \(mostTopics) topics") }
    topics.append(Array(name))
    return .topic(topics.count - 1)
  }

  private mutating func take(_ symbol: String) -> Bool {
    guard text[at...].starts(with: symbol.utf8) else { return false }
    at += symbol.utf8.count
    return true
  }

  private mutating func takeWord(_ word: String) -> Bool {
    let end = at + word.utf8.count
    guard end <= text.count, zip(text[at..<end], word.utf8).allSatisfy({ $0 | 0x20 == $1 }) else { return false }
    guard end == text.count || !Bytes.isAlphanumeric(text[end]) else { return false }
    at = end
    return true
  }
}
