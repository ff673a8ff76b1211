import PushCore
import Testing

@Suite struct ConditionTests {
  func condition(_ text: String) throws -> Condition { try Condition.parse(Array(text.utf8)) }

  func fault(_ text: String) -> ConditionError? {
    do throws(ConditionError) {
      _ = try Condition.parse(Array(text.utf8))
      return nil
    } catch {
      return error
    }
  }

  @Test("&& and || are applied strictly from left to right")
  func leftToRight() throws {
    // With the usual precedence a alone would be enough.
    let both = try condition("'a' in topics || 'b' in topics && 'c' in topics")
    #expect(both.topics == [Array("a".utf8), Array("b".utf8), Array("c".utf8)])
    #expect(both.expression == .and(.or(.topic(0), .topic(1)), .topic(2)))
    #expect(!both.matches(0b001))
    #expect(both.matches(0b101))
    #expect(both.matches(0b110))
  }

  @Test("parentheses come first, ! binds to what follows it")
  func grouping() throws {
    let grouped = try condition("'a' in topics || ('b' in topics && 'c' in topics)")
    #expect(grouped.expression == .or(.topic(0), .and(.topic(1), .topic(2))))
    #expect(grouped.matches(0b001))
    let negated = try condition("!'a' in topics && !( 'b' in topics || 'c' in topics )")
    #expect(negated.expression == .and(.not(.topic(0)), .not(.or(.topic(1), .topic(2)))))
    #expect(negated.matches(0))
    #expect(!negated.matches(0b010))
    #expect(try condition("!!'a' in topics").expression == .topic(0))
  }

  @Test("keywords in any case, free white space, and a repeated topic counts once")
  func leniency() throws {
    #expect(try condition("  'a'IN Topics&&'b'  in\tTOPICS  ").expression == .and(.topic(0), .topic(1)))
    #expect(try condition("'a' in topics || 'a' in topics").topics.count == 1)
  }

  @Test("five topics are accepted, a sixth is refused; eight levels of parentheses, a ninth is refused")
  func bounds() {
    func topics(_ count: Int) -> String { (0..<count).map { "'t\($0)' in topics" }.joined(separator: " || ") }
    func nested(_ levels: Int) -> String {
      String(repeating: "(", count: levels) + "'a' in topics" + String(repeating: ")", count: levels)
    }
    #expect(fault(topics(5)) == nil)
    #expect(fault(topics(6))?.reason == "more than 5 topics")
    #expect(fault(nested(8)) == nil)
    #expect(fault(nested(9))?.reason == "more than 8 levels of parentheses")
    #expect(fault(nested(10_000)) != nil)
    let same = Array(repeating: "'a' in topics", count: 32).joined(separator: "&&")
    #expect(fault(same) == nil)
    #expect(fault(same + "&&'a' in topics") != nil)
  }

  @Test(
    "anything else is refused, with its position",
    arguments: [
      ("'a'", 3), ("'a' in", 6), ("'a' in topic", 7), ("'a' in topicsx", 7), ("a in topics", 0), ("\"a\" in topics", 0),
      ("'a in topics", 12),
      ("'' in topics", 1), ("'a b' in topics", 1), ("'a' in topics &&", 16), ("'a' in topics & 'b' in topics", 14),
      ("&& 'a' in topics", 0),
      ("('a' in topics", 14), ("'a' in topics)", 13), ("()", 1), ("!", 1), ("'a' in topics 'b' in topics", 14),
      ("'/topics/a' in topics", 1), ("   ", 3),
    ])
  func refused(text: String, offset: Int) {
    #expect(fault(text)?.offset == offset)
  }
}
