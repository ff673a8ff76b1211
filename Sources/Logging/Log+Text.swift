import PushCore

/// Formats a line for people: time of day in UTC, level, shard, message, and the fields as `name=value`.
extension Log {
  func text(_ level: LogLevel, _ message: String, _ fields: Fields, at time: Int64) -> [UInt8] {
    var line: [UInt8] = []
    Timestamp.append(time, to: &line)
    line = Array(line.dropFirst("2026-11-22T".utf8.count).dropLast())
    line.append(contentsOf: " \(level.rawValue.uppercased())".utf8)
    line.append(contentsOf: String(repeating: " ", count: Self.levelWidth - level.rawValue.utf8.count).utf8)
    line.append(contentsOf: "[\(shard)] ".utf8)
    Self.append(message, to: &line)
    for (name, value) in fields.members where !value.isLeftOut {
      line.append(UInt8(ascii: " "))
      line.append(contentsOf: name.utf8)
      line.append(UInt8(ascii: "="))
      let start = line.count
      Self.append(value, to: &line)
      Self.unquote(&line, from: start)
    }
    line.append(UInt8(ascii: "\n"))
    return line
  }

  private static let levelWidth = 8

  /// Appends the text escaped like a JSON string, without its quotes. Terminal control characters become visible.
  private static func append(_ text: String, to line: inout [UInt8]) {
    let start = line.count
    line.appendSafeJSONString(text)
    line.removeLast()
    line.remove(at: start)
  }

  /// Removes the quotes of a single plain word.
  private static func unquote(_ line: inout [UInt8], from start: Int) {
    guard line.count - start > 2, line[start] == UInt8(ascii: "\""),
      line[(start + 1)..<(line.count - 1)].allSatisfy({ (0x21..<0x7F).contains($0) && ![0x22, 0x3D, 0x5C].contains($0) })
    else { return }
    line.removeLast()
    line.remove(at: start)
  }
}
