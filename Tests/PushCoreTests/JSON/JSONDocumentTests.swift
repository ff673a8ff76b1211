import PushCore
import Testing

@Suite struct JSONDocumentTests {
  @Test("members and elements come in order, and subtrees are skipped")
  func walking() throws {
    let text = try document(#"{"a":[1,[2,3],{}],"b":{"c":null},"d":true}"#)
    #expect(text.members(of: 0).map { text.text($0.name) } == ["a", "b", "d"])
    #expect(text.members(of: 0).map { text.kind($0.value) } == [.array, .object, .true])
    let array = try #require(text.value("a", of: 0))
    #expect(text.count(array) == 3)
    #expect(text.elements(of: array).map { text.kind($0) } == [.number, .array, .object])
    #expect(text.value("x", of: 0) == nil)
    #expect(text.value("a", of: array) == nil)
    #expect(Array(text.elements(of: 0)).isEmpty)
  }

  @Test(
    "an integer is one in any notation",
    arguments: [
      ("0", 0), ("-0", 0), ("600", 600), ("600.0", 600), ("6e2", 600), ("6.00E+2", 600), ("0.6e3", 600), ("60000e-2", 600),
      ("-1", -1), ("0e999999999999999999999", 0), ("0.000", 0), ("9223372036854775807", .max), ("-9223372036854775808", .min),
      ("9223372036854775807.000", .max), ("922337203685477580.7e1", .max), ("0.00000000000000000000000001e26", 1),
      ("100000000000000000000000000e-26", 1), ("1.00000000000000000000000000", 1), ("-120e-1", -12),
      ("1e18", 1_000_000_000_000_000_000),
    ] as [(String, Int64)])
  func integers(text: String, value: Int64) throws {
    #expect(try document(text).integer(0) == value)
  }

  @Test(
    "other values, and integers out of range, are nil, never traps",
    arguments: [
      "1.5", "1e-1", "-0.1", "1e-999999999999", "1.00000000000000000000000001", "0.1234567890123456789012345", "123e-2",
      "1e999", "-1e999", "9223372036854775808", "-9223372036854775809", "99999999999999999999999999", "1e19",
      "1e99999999999999999999999999", "10000000000000000000000000000001.0", "\"1\"", "true", "null", "[]",
    ])
  func notIntegers(text: String) throws { #expect(try document(text).integer(0) == nil) }

  @Test("a string is the bytes that its escapes encode")
  func strings() throws {
    let text = try document(#"["plain","\u00e9\uD83D\uDE00\"\\\/\b\f\n\r\t",""]"#)
    #expect(text.text(1) == "plain")
    #expect(text.text(2) == "é😀\"\\/\u{8}\u{C}\n\r\t")
    #expect(text.utf8Count(2) == text.string(2).count)
    #expect(text.string(3).isEmpty)
    #expect(text.isString(1, "plain"))
    #expect(!text.isString(1, "plai"))
    #expect(!text.isString(1, "plainer"))
    #expect(text.isString(2, "é😀\"\\/\u{8}\u{C}\n\r\t"))
    #expect(!text.isString(0, ""))
  }

  @Test("a place is named by its path, with unusual names escaped")
  func paths() throws {
    let text = try document(#"{"a":{"b":[0,{"c":1}]},"x.\u0007":2}"#)
    let outer = try #require(text.value("a", of: 0))
    let b = try #require(text.value("b", of: outer))
    let last = try #require(Array(text.elements(of: b)).last)
    let c = try #require(text.value("c", of: last))
    #expect(text.path(to: b) == "a.b")
    #expect(text.path(to: c) == "a.b[1].c")
    #expect(text.path(to: 0) == "")
    let odd = try #require(text.members(of: 0).map(\.value).last)
    #expect(text.path(to: odd) == #""x.\x07""#)
  }
}

@Suite struct JSONWritingTests {
  @Test(
    "a value is written compactly, with numbers digit for digit and strings with the fewest bytes",
    arguments: [
      (" { \"a\" : [ 1.0 , -0 , 1e999 ] , \"b c\" : { } } ", #"{"a":[1.0,-0,1e999],"b c":{}}"#),
      (#"["\u00e9\u96d1\uD83D\uDE00\/\u0041"]"#, #"["é雑😀/A"]"#),
      (#""\u0008\u0009\u000A\u000c\u000D\u0001\u001F\"\\""#, #""\b\t\n\f\r\u0001\u001f\"\\""#),
      ("[\"a b\\\" , : [] {}\", null , true,false]", "[\"a b\\\" , : [] {}\",null,true,false]"),
      (#"{"\u006bey":"v"}"#, #"{"key":"v"}"#),
    ])
  func compact(source: String, expected: String) throws {
    let text = try document(source)
    #expect(String(decoding: emitted(text), as: UTF8.self) == expected)
    #expect(text.compactCount(0) == expected.utf8.count)
  }

  @Test("a part is written alone")
  func part() throws {
    let text = try document(#"{"a":"x","b":[ {"c":"\u0064"} , 2 ]}"#)
    var output: [UInt8] = []
    let node = try #require(text.value("b", of: 0))
    text.append(node, to: &output)
    #expect(String(decoding: output, as: UTF8.self) == #"[{"c":"d"},2]"#)
  }

  @Test("the writer's own integers and strings are written")
  func own() {
    var output: [UInt8] = []
    output.appendJSONString(Array("a\"\u{1}\u{10}é".utf8))
    for value: Int64 in [0, 9, 10, -1, .max, .min] { output.appendDecimal(value) }
    #expect(String(decoding: output, as: UTF8.self) == #""a\"\u0001\u0010é""# + "0910-19223372036854775807-9223372036854775808")
  }
}
