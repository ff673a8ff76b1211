import TestSupport
import Testing

@testable import Settings

@Suite("The configuration's JSON5")
struct JSON5ReaderTests {
  @Test("accepts comments, bare keys, both quotes, trailing commas, numbers of every form and all escapes")
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
    ("{ a: 1, 'a': 2 }", "line 1, column 9: the key \"a\" is here a second time"),
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

  @Test("reports an error with its line and column", arguments: faults)
  func fault(_ text: String, _ said: String) throws {
    let fault = try #require(throws: JSON5Reader.Fault.self) { try JSON5Reader.read(text) }
    #expect("\(fault)" == said)
  }

  static let manyFaults: [(text: String, places: [String], isCertain: Bool)] = [
    (
      "{\n a: 01,\n b: 'x\\u12',\n # no\n c: x y z,\n d: [1 2],\n e: 1\n f: 2,\n g:,\n}",
      ["2:5", "3:7", "4:2", "5:5", "6:8", "8:2", "9:4"], true
    ),
    ("{ broker: amqp://h/, prefetch: 01, log: warn }", ["1:11", "1:32", "1:41"], true),
    ("{\n replyTo: one, two,\n log: 'x',\n shards: 01 }", ["2:11", "4:10"], false),
    ("{\n a: 'x,\n b: 01,\n}", ["2:5", "3:5"], false),
    ("{\n key: '-----BEGIN\n AAAA\n BBBB\n -----END',\n b: 01 }", ["2:7"], false),
    ("{\n a: [1, 2,\n b: 3 }", ["3:2"], false), ("{\n a: [ { b: 1 ],\n c: 01 }", ["2:14", "3:5"], false),
    ("{\n a = 1,\n 7: 2,\n c: 3", ["2:4", "3:2"], false), ("{ a: 1 ]\n, b: 01 }", ["1:8", "2:6"], false),
    ("{ a: 1,, b: 2,\n ], c: 01 }", ["1:8", "2:2", "2:8"], false), ("{ a: { b: 1 }", ["1:14"], false),
    ("{ a: 1 } }", ["1:10"], false),
    ("", ["1:1"], false), (String(repeating: "[", count: 70), ["1:65"], false),
  ]

  @Test("reports every error of a document, and none that only follows from another", arguments: manyFaults)
  func readingOn(_ text: String, _ places: [String], _ isCertain: Bool) {
    let reading = JSON5Reader.readOn(text)
    #expect(reading.faults.map { "\($0.line):\($0.column)" } == places, "\(text): \(reading.faults)")
    #expect(reading.isCertain == isCertain)
  }

  @Test("is read correctly after an error")
  func readBehind() {
    let reading = JSON5Reader.readOn("{ a: 01, b: [x, 2 3], c: { d: 'e\\1f' }\n g: true, g: false }")
    #expect(
      reading.value
        == .object([
          "a": .null, "b": .array([.null, .integer(2), .integer(3)]), "c": .object(["d": .string("ef")]), "g": .bool(true),
        ]))
    #expect(reading.broken == ["a", "b[0]"] && reading.faults.count == 6 && reading.isCertain)
  }

  @Test("with nothing but errors ends after at most a hundred")
  func hopeless() {
    for text in [
      String(repeating: "#\n", count: 10_000), "{" + String(repeating: "a: ,\n", count: 10_000),
      String(repeating: "{]}[\"\n", count: 5_000),
    ] {
      #expect((1...101).contains(JSON5Reader.readOn(text).faults.count))
    }
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
    let mutilated = String(String.UnicodeScalarView(text))
    let reading = JSON5Reader.readOn(mutilated)
    do {
      let value = try JSON5Reader.read(mutilated)
      #expect(reading.faults.isEmpty && reading.value == value)
    } catch {
      #expect(reading.faults.first == error && !reading.faults.isEmpty)
    }
  }
}
