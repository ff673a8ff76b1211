import PushCore

/// A line for people: time of day in UTC, level, shard, message, and the fields as `name=value`.
extension Log {
  func text(_ level: LogLevel, _ message: String, _ fields: Fields, at time: Int64) -> [UInt8] {
    var line: [UInt8] = []
    Timestamp.append(time, to: &line)
    // Of `2026-11-22T16:30:01.123Z`, the time of day.
    line = Array(line.dropFirst("2026-11-22T".utf8.count).dropLast())
    line.append(contentsOf: " \(level.rawValue.uppercased())".utf8)
    line.append(contentsOf: String(repeating: " ", count: Self.levelWidth - level.rawValue.utf8.count).utf8)
    line.append(contentsOf: "[\(shard)] ".utf8)
    Self.append(message, to: &line)
    for (key, value) in fields {
      line.append(UInt8(ascii: " "))
      line.append(contentsOf: key.utf8)
      line.append(UInt8(ascii: "="))
      let start = line.count
      value.append(to: &line)
      Self.unquote(&line, from: start)
    }
    line.append(UInt8(ascii: "\n"))
    return line
  }

  private static let levelWidth = 8

  /// Escaped as a JSON string is, without its quotes: what a terminal would obey, it shows.
  private static func append(_ text: String, to line: inout [UInt8]) {
    let start = line.count
    line.appendSafeJSONString(text)
    line.removeLast()
    line.remove(at: start)
  }

  /// A string that is one plain word needs no quotes.
  private static func unquote(_ line: inout [UInt8], from start: Int) {
    guard line.count - start > 2, line[start] == UInt8(ascii: "\""),
      line[(start + 1)..<(line.count - 1)].allSatisfy({ (0x21..<0x7F).contains($0) && ![0x22, 0x3D, 0x5C].contains($0) })
    else { return }
    line.removeLast()
    line.remove(at: start)
  }
}
