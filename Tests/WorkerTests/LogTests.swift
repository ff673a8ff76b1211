import Foundation
import Testing

@testable import Logging

@Suite("A line of the log")
struct LogTests {
  @Test("is one JSON object with numbers and booleans as such, and texts can't break out of it")
  func types() throws {
    let log = Log(level: .debug, format: .json, shard: 3, to: .standardError)
    let hostile = "x\r\n\u{1B}[31m\u{2028}\"\\"
    let line = log.line(
      .warning, "what \(hostile)",
      [
        "text": hostile, "bytes": [UInt8]([0xFF, 0x41]), "count": 42, "big": Int64.max, "seconds": 0.49306299417715543,
        "endless": Double.infinity, "cancelled": false, "pools": ["a", "b\"c"],
      ])
    #expect(line.last == UInt8(ascii: "\n") && line.dropLast().allSatisfy { $0 >= 0x20 })
    let object = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
    #expect(object["shard"] as? Int == 3 && object["level"] as? String == "warning")
    #expect(object["message"] as? String == "what \(hostile)" && object["text"] as? String == hostile)
    #expect(object["bytes"] as? String == "\u{FFFD}A" && object["count"] as? Int == 42 && object["big"] as? Int64 == .max)
    #expect(object["seconds"] as? Double == 0.493 && object["endless"] is NSNull)
    #expect(object["cancelled"] as? Bool == false && object["pools"] as? [String] == ["a", "b\"c"])
    #expect(String(decoding: line, as: UTF8.self).contains(#""count":42,"#))
  }

  @Test("for people quotes unusual words, and has no terminal control characters")
  func text() {
    let output = LogOutput(clock: { 1_763_829_001_123 }, write: { _ in })
    let log = Log(level: .debug, format: .text, shard: 0, to: output)
    let line = log.line(
      .warning, "provider unreachable",
      ["pool": "com.a/apns", "reason": "no answer", "seconds": 1.5, "empty": "", "esc": "\u{1B}[31m", "held": true, "a": "b=c"])
    #expect(
      String(decoding: line, as: UTF8.self)
        == #"16:30:01.123 WARNING [0] provider unreachable pool=com.a/apns reason="no answer" seconds=1.5 empty="" "#
        + #"esc="\u001b[31m" held=true a="b=c""# + "\n")
  }

  @Test("of level debug costs nothing if that level is off")
  func debugIsLazy() {
    var asked = 0
    func fields() -> Log.Fields {
      asked += 1
      return [:]
    }
    Log(level: .info).debug("nothing", fields())
    #expect(asked == 0)
  }
}
