import PushCore
import Testing

@Suite struct JSONReaderTests {
  @Test(
    "a valid text is a document",
    arguments: [
      "null", "true", "false", "0", "-0", "1e999", "-12.50E-3", "\"\"", "[]", "{}", " \t\r\n[ 1 , 2 ]\n", "[[],{}]",
      #"{"":0," ":1,"a":{"a":{"a":[]}}}"#, #""\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00""#, "\"é雑😀\u{7F}\u{10FFFF}\"",
      "99999999999999999999999999999999", #"{"a":1,"A":2,"\u0062":3}"#,
    ])
  func accepted(text: String) {
    #expect(fault(text) == nil)
  }

  @Test(
    "a text that breaks RFC 8259 is refused at the byte that breaks it",
    arguments: [
      ("", 0), ("   ", 3), ("{", 1), ("[", 1), ("[1", 2), ("[1,", 3), ("[1,]", 3), ("[,1]", 1), ("{\"a\"", 4), ("{\"a\":", 5),
      ("{\"a\":1,}", 7), ("{\"a\" 1}", 5), ("{a:1}", 1), ("{1:1}", 1), ("[1}", 2), ("{\"a\":1]", 6), ("]", 0), ("nul", 0),
      ("nullx", 4), ("True", 0), ("NaN", 0), ("Infinity", 0), ("-", 1), ("-a", 1), ("01", 1), ("-01", 2), ("1.", 2), ("1.x", 2),
      (".5", 0), ("+1", 0), ("1e", 2), ("1e+", 3), ("1ex", 2), ("0x10", 1), ("\"", 1), ("\"ab", 3), ("\"\\", 2), ("\"\\u12", 5),
      ("\"\\x\"", 1), ("\"\\u12g4\"", 5), ("'a'", 0), ("\"a\nb\"", 2), ("\"a\u{0}b\"", 2), ("\"a\u{1B}b\"", 2), ("[1] x", 4),
      ("{} {}", 3), ("[1 2]", 3), ("/*c*/1", 0), ("[1,//\n2]", 3), ("\u{A0}1", 0), ("{\"a\":1,\"b\"}", 10),
    ])
  func refused(text: String, offset: Int) {
    #expect(fault(text)?.offset == offset)
  }

  @Test(
    "bytes that aren't UTF-8 are refused where they begin",
    arguments: [
      [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80],
      [0xED, 0xBF, 0xBF],
      [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xFE],
      [0xC3], [0xE3, 0x81], [0xF0, 0x9F, 0x98], [0xC3, 0x28], [0xE3, 0x28, 0x81], [0xF0, 0x9F, 0x28, 0x80],
    ] as [[UInt8]])
  func invalidUTF8(bytes: [UInt8]) {
    let error = fault(Array("{\"k\":\"ab".utf8) + bytes + Array("\"}".utf8))
    #expect(error?.offset == 8)
    #expect(error?.reason == "invalid UTF-8")
    #expect(fault(Array("\"".utf8) + bytes)?.offset == 1)
  }

  @Test("the first and last scalar of each length of UTF-8 are accepted")
  func validUTF8() {
    for value: UInt32 in [0x20, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF] {
      #expect(fault("\"\(Unicode.Scalar(value)!)\"") == nil)
    }
  }

  @Test("a byte-order mark, UTF-16 and UTF-32 are named as such")
  func foreignEncodings() {
    #expect(fault([0xEF, 0xBB, 0xBF] + Array("{}".utf8))?.reason.contains("byte-order mark") == true)
    let foreign: [[UInt8]] = [
      [0xFF, 0xFE, 0x7B, 0, 0x7D, 0], [0xFE, 0xFF, 0, 0x7B, 0, 0x7D], [0x7B, 0, 0x7D, 0], [0, 0x7B, 0, 0x7D],
      [0x7B, 0, 0, 0, 0x7D, 0, 0, 0], [0, 0, 0, 0x7B, 0, 0, 0, 0x7D], [0, 0, 0xFE, 0xFF], [0xFF, 0xFE, 0, 0],
    ]
    for bytes in foreign { #expect(fault(bytes)?.reason.contains("UTF-16") == true) }
  }

  @Test(
    "a lone surrogate escape is refused at its backslash",
    arguments: [
      #""\uD800""#, #""\uDFFF""#, #""\uD800\u0041""#, #""\uD800\uD800""#, #""\uDC00\uD800""#, #""\uD800x""#, #""\uD83D"#,
    ])
  func loneSurrogates(text: String) {
    #expect(fault(text)?.reason == "a lone surrogate")
    #expect(fault(text)?.offset == 1)
  }

  @Test("NUL may be written as an escape")
  func nul() throws {
    let text = try document(#"["a\u0000b","ab"]"#)
    #expect(text.string(1) == [0x61, 0, 0x62])
  }

  @Test("the last level allowed is accepted, the next one refused at its bracket, whatever follows")
  func depth() {
    func nested(_ levels: Int) -> String { String(repeating: "[", count: levels) + String(repeating: "]", count: levels) }
    #expect(fault(nested(32)) == nil)
    for levels in [33, 512, 100_000] {
      #expect(fault(nested(levels))?.offset == 32)
      #expect(fault(String(repeating: "[", count: levels))?.offset == 32)
      let objects = String(repeating: "{\"a\":", count: levels)
      #expect(fault(objects)?.offset == 32 * 5)
    }
    #expect(fault("[]", limits: JSONLimits(depth: 1)) == nil)
    #expect(fault("[[]]", limits: JSONLimits(depth: 1))?.offset == 1)
    #expect(fault(nested(10_000), limits: JSONLimits(depth: 10_000)) == nil)
  }

  @Test("names and values are counted together, and the bytes of the whole body")
  func sizes() {
    #expect(fault("[1,2]", limits: JSONLimits(nodes: 3)) == nil)
    #expect(fault("[1,2,3]", limits: JSONLimits(nodes: 3))?.offset == 5)
    #expect(fault(#"{"a":1}"#, limits: JSONLimits(nodes: 2))?.offset == 5)
    #expect(fault("[1,2]", limits: JSONLimits(bytes: 5)) == nil)
    #expect(fault("[1,2] ", limits: JSONLimits(bytes: 5))?.offset == 5)
    #expect(fault(String(repeating: "[],", count: 200_000))?.reason.isEmpty == false)
  }

  @Test(
    "a repeated name in one object is refused at the second, in any notation",
    arguments: [
      (#"{"to":1,"to":2}"#, 8), (#"{"to":1,"\u0074o":2}"#, 8), (#"{"\u0074o":1,"to":2}"#, 13),
      (#"{"a":{"b":1,"c":2,"b":3}}"#, 18),
      (#"{"é":1,"\u00e9":2}"#, 8), (#"{"":1,"":2}"#, 6), (#"[{"a":1},{"a":1,"a":1}]"#, 16),
    ])
  func duplicates(text: String, offset: Int) {
    #expect(fault(text)?.offset == offset)
    #expect(fault(text)?.reason.hasPrefix("duplicate key") == true)
  }

  @Test("duplicates are found in objects of any size, at any place")
  func duplicatesAnywhere() {
    for size in [2, 15, 16, 17, 18, 40, 1000] {
      let names = (0..<size).map { "\"name\($0 * 7919)\":0" }
      #expect(fault("{" + names.joined(separator: ",") + "}") == nil)
      for repeated in [0, size / 2, size - 1] {
        let error = fault("{" + (names + ["\"name\(repeated * 7919)\":1"]).joined(separator: ",") + "}")
        #expect(error?.reason == "duplicate key \"name\(repeated * 7919)\"")
      }
    }
  }

  @Test("200,000 similar names cost no more than a pass over them", .timeLimit(.minutes(1)))
  func manyNames() {
    let limits = JSONLimits(bytes: 1 << 24, nodes: 1 << 20)
    let plain = (0..<200_000).map { "\"\($0 + 1_000_000)\":0" }.joined(separator: ",")
    #expect(fault("{\(plain)}", limits: limits) == nil)
    let escaped = (0..<50_000).map { "\"\\u0061\($0 + 1_000_000)\":0" }.joined(separator: ",")
    #expect(fault("{\(escaped)}", limits: limits) == nil)
    #expect(fault("{\(plain),\"1000000\":0}", limits: limits)?.reason == "duplicate key \"1000000\"")
  }

  @Test("a reason holds at most a short and escaped piece of the input")
  func excerpts() {
    let name = String(repeating: "n", count: 100)
    #expect(fault("{\"\(name)\":1,\"\(name)\":2}")?.reason == "duplicate key \"\(String(repeating: "n", count: 32))...\"")
    #expect(fault(#"{"\u001b\u202e":1,"\u001b\u202e":2}"#)?.reason == #"duplicate key "\x1b\xe2\x80\xae""#)
    #expect(fault([0x1B])?.reason == "expected a value, found byte 0x1b")
  }
}
