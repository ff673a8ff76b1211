import PushCore
import Reactor

/// One JSON object per line on standard error. Values are escaped; callers never pass tokens, payloads or credentials.
///
/// A line that can't be written is dropped and counted: logging never stops sending.
public struct Log: Sendable {
  public let level: LogLevel
  let shard: Int

  public init(level: LogLevel, shard: Int = 0) {
    self.level = level
    self.shard = shard
  }

  func debug(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { write(.debug, message, fields) }
  func info(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { write(.info, message, fields) }
  func warning(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { write(.warning, message, fields) }
  func error(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { write(.error, message, fields) }

  /// Has what is told of lines that could not be written look like the others.
  func describeDrops() {
    StandardError.describeDrops { [self] in
      line(.warning, "log lines are missing: they could not be written", ["lines": "\($0)"])
    }
  }

  private func write(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, String>) {
    guard level >= self.level else { return }
    StandardError.write(line(level, message, fields))
  }

  private func line(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, String>) -> [UInt8] {
    var line = Array(#"{"time":""#.utf8)
    Timestamp.append(SystemClock.unixMilliseconds, to: &line)
    line.append(contentsOf: #"","level":""#.utf8)
    line.append(contentsOf: level.rawValue.utf8)
    line.append(contentsOf: #"","shard":"#.utf8)
    line.append(contentsOf: String(shard).utf8)
    line.append(contentsOf: #","message":"#.utf8)
    line.appendSafeJSONString(message)
    for (key, value) in fields {
      line.append(UInt8(ascii: ","))
      line.appendSafeJSONString(key)
      line.append(UInt8(ascii: ":"))
      line.appendSafeJSONString(value)
    }
    line.append(contentsOf: "}\n".utf8)
    return line
  }
}
