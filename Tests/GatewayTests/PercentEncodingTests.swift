import Testing
import Wire

@testable import Gateway

@Suite("Percent encoding")
struct PercentEncodingTests {
  @Test("decodes valid escapes and refuses others")
  func decode() {
    #expect(PercentEncoding.decode(Array("a%2Fb+%c3%A9".utf8)[...]) == Array("a/b+é".utf8))
    #expect(PercentEncoding.decode(Array("a+b".utf8)[...], plusIsSpace: true) == Array("a b".utf8))
    #expect(PercentEncoding.decode(Array("%%41%4%4g%".utf8)[...], keepsOther: true) == Array("%A%4%4g%".utf8))
    for text in ["%", "%4", "%g0", "a%2"] { #expect(PercentEncoding.decode(Array(text.utf8)[...]) == nil) }
  }

  @Test("accepts a thousand fields and not one more")
  func fields() {
    let fields = PercentEncoding.fields(Array("a=1&b&&c=x=y".utf8))
    #expect(fields?.map { String(decoding: $0.name, as: UTF8.self) } == ["a", "b", "c"])
    #expect(fields?.last?.value == Array("x=y".utf8))
    #expect(PercentEncoding.fields(Array(String(repeating: "a=1&", count: 1_000).utf8))?.count == 1_000)
    #expect(PercentEncoding.fields(Array(String(repeating: "a=1&", count: 1_001).utf8)) == nil)
  }

  @Test("refuses bytes that aren't UTF-8", arguments: ["a=%ff", "%C3=1", "a=b&c=%ed%a0%80"])
  func notUTF8(text: String) {
    #expect(PercentEncoding.fields(Array(text.utf8)) == nil)
  }
}
