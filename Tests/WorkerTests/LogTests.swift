import Foundation
import Testing

@testable import Worker

@Suite("A line of the log")
struct LogTests {
  @Test("is one JSON object, in which numbers and truth values are JSON's own and texts can't break out")
  func types() throws {
    let log = Log(level: .debug, shard: 3, to: .standardError)
    let hostile = "x\r\n\u{1B}[31m\u{2028}\"\\"
    let line = log.line(
      .warning, "what \(hostile)",
      [
        "text": hostile, "bytes": [UInt8]([0xFF, 0x41]), "count": 42, "big": Int64.max, "seconds": 0.49306299417715543,
        "endless": Double.infinity, "cancelled": false, "pools": LogList(["a", "b\"c"]),
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

  @Test("of level debug costs nothing where it isn't written")
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
