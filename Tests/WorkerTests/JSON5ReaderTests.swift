import TestSupport
import Testing

@testable import Worker

@Suite("The configuration's JSON5")
struct JSON5ReaderTests {
  @Test("takes comments, bare keys, both quotes, trailing commas, numbers of every form and all escapes")
  func everything() throws {
    let text = """
      // one
      { bare: 'single', "double": "d\\"q", $dollar_1: [1, -2, +3, .5, 5., 0x1F, 1e3, Infinity, -Infinity,], /* two
      lines */ nested: { a: null, b: true, c: false, },
        escapes: 'tab\\t nul\\0 hex\\x41 unit\\u00e9 pair\\uD83D\\uDE00 \\q \\
      joined',
      }
      """
    let value = try JSON5Reader.read(text)
    #expect(value["bare"] == .string("single") && value["double"] == .string("d\"q"))
    #expect(
      value["$dollar_1"]
        == .array([
          .integer(1), .integer(-2), .integer(3), .number(0.5), .integer(5), .integer(31), .integer(1000), .number(.infinity),
          .number(-.infinity),
        ]))
    #expect(value["nested"] == .object(["a": .null, "b": .bool(true), "c": .bool(false)]))
    #expect(value["escapes"] == .string("tab\t nul\0 hexA unit\u{e9} pair\u{1F600} q joined"))
  }

  static let faults: [(text: String, said: String)] = [
    ("", "line 1, column 1: the document is empty"),
    ("  // nothing\n", "line 2, column 1: the document is empty"),
    ("{ a: 1\n  b: 2 }", "line 2, column 3: expected ',' or '}', found 'b'"),
    ("{ a: 1", "line 1, column 7: expected ',' or '}', found the end"),
    ("{\r\n  a: [1 2] }", "line 2, column 9: expected ',' or ']', found '2'"),
    ("broker: amqp", "line 1, column 1: expected a value; text must stand in quotes"),
    ("{ broker: amqp://h/ }", "line 1, column 11: expected a value; text must stand in quotes"),
    ("{\n# no\n}", "line 2, column 1: a comment begins with // here"),
    ("{ a: 1, 'a': 2 }", "line 1, column 9: the key \"a\" stands here a second time"),
    (
      "{ key: '-----BEGIN\nX' }",
      "line 1, column 8: the text that begins here doesn't end on its line: write \\n for a line break"
    ),
    ("{ a: 'b }", "line 1, column 6: the text that begins here doesn't end"),
    ("{ a: 1 } b", "line 1, column 10: expected the end, found 'b'"),
    ("{ a: 01 }", "line 1, column 6: is no number"), ("{ a: 1.2.3 }", "line 1, column 6: is no number"),
    ("{ a: '\\u12' }", "line 1, column 7: an escape needs 4 hexadecimal digits"),
    ("{ a: '\\uDC00' }", "line 1, column 7: half a character"), ("{ a: '\\1' }", "line 1, column 7: no such escape"),
    ("{ a /* b", "line 1, column 5: the comment that begins here doesn't end"),
    ("{ a: \u{1} }", "line 1, column 6: expected a value, found a control character"),
    ("{ a 1 }", "line 1, column 5: expected ':' after the key, found '1'"),
    ("[,]", "line 1, column 2: expected a value, found ','"),
    (String(repeating: "[", count: 65), "line 1, column 65: nested deeper than 64 levels"),
  ]

  @Test("says what is wrong with its line and column", arguments: faults)
  func fault(_ text: String, _ said: String) throws {
    let fault = try #require(throws: JSON5Reader.Fault.self) { try JSON5Reader.read(text) }
    #expect("\(fault)" == said)
  }

  @Test("reads or refuses every mutilation of a document", arguments: 0..<200)
  func mutilated(_ seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var text = Array("{ a: [1, -0x1f, 'x\\u0041', .5e-3], \"b\": { c: null, /* d */ e: true } } // f\n".unicodeScalars)
    for _ in 0..<Int.random(in: 1...6, using: &random) {
      let place = Int.random(in: 0..<text.count, using: &random)
      text[place] = ["{", "}", "[", "'", "\"", "\\", "/", "*", "\n", "-", ".", "u", "0", "e", "\u{2028}"].randomElement(
        using: &random)!
    }
    _ = try? JSON5Reader.read(String(String.UnicodeScalarView(text)))
  }
}
