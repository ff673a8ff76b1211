import PushCore
import Reactor

/// Writes one line for each event to standard error, as a JSON object or as text. Escapes values; callers never pass tokens,
/// payloads or credentials. A line that can't be written is dropped and counted: logging never blocks sending.
public struct Log: Sendable {
  public let level: LogLevel
  let format: LogFormat
  /// True if debug lines are written. Check it before expensive preparation of a line.
  package let isDetailed: Bool
  package let shard: Int
  private let output: LogOutput

  /// - Parameter format: nil for text on a terminal and JSON elsewhere.
  public init(level: LogLevel, format: LogFormat? = nil) {
    self.init(level: level, format: format, shard: 0, to: .standardError)
  }

  package init(level: LogLevel, format: LogFormat? = nil, shard: Int, to output: LogOutput) {
    self.level = level
    self.format = format ?? (StandardError.isTerminal ? .text : .json)
    isDetailed = level == .debug
    self.shard = shard
    self.output = output
  }

  /// Names and values of a line, in their order. A `Double` is rounded to a thousandth; it is null if not finite.
  package typealias Fields = JSONObject

  /// The first ten texts. Use it for lists that may have thousands, next to a field with the count.
  package static func first(of texts: [String]) -> [String] { Array(texts.prefix(10)) }

  package func debug(_ message: String, _ fields: @autoclosure () -> Fields = [:]) {
    if isDetailed { write(.debug, message, fields()) }
  }
  package func info(_ message: String, _ fields: Fields = [:]) { write(.info, message, fields) }
  package func warning(_ message: String, _ fields: Fields = [:]) { write(.warning, message, fields) }
  package func error(_ message: String, _ fields: Fields = [:]) { write(.error, message, fields) }

  /// Formats the notice about lines that could not be written like the other lines.
  package func describeDrops() {
    StandardError.describeDrops { [self] in line(.warning, "log lines are missing: they could not be written", ["lines": $0]) }
  }

  private func write(_ level: LogLevel, _ message: String, _ fields: Fields) {
    guard level >= self.level else { return }
    output.write(line(level, message, fields))
  }

  func line(_ level: LogLevel, _ message: String, _ fields: Fields) -> [UInt8] {
    switch format {
    case .json: object(level, message, fields)
    case .text: text(level, message, fields, at: output.clock())
    }
  }

  private func object(_ level: LogLevel, _ message: String, _ fields: Fields) -> [UInt8] {
    var line = Array(#"{"time":""#.utf8)
    Timestamp.append(output.clock(), to: &line)
    line.append(contentsOf: #"","level":""#.utf8)
    line.append(contentsOf: level.rawValue.utf8)
    line.append(contentsOf: #"","shard":"#.utf8)
    line.append(contentsOf: String(shard).utf8)
    line.append(contentsOf: #","message":"#.utf8)
    line.appendSafeJSONString(message)
    for (name, value) in fields.members where !value.isLeftOut {
      line.append(UInt8(ascii: ","))
      line.appendSafeJSONString(name)
      line.append(UInt8(ascii: ":"))
      Self.append(value, to: &line)
    }
    line.append(contentsOf: "}\n".utf8)
    return line
  }

  static func append(_ value: any JSONMember, to line: inout [UInt8]) {
    guard let number = value as? Double else { return value.append(to: &line) }
    line.append(contentsOf: number.isFinite ? "\((number * 1000).rounded() / 1000)".utf8 : "null".utf8)
  }
}

/// The destination and clock of log lines.
package struct LogOutput: Sendable {
  /// Unix milliseconds.
  let clock: @Sendable () -> Int64
  let write: @Sendable ([UInt8]) -> Void

  package init(clock: @escaping @Sendable () -> Int64, write: @escaping @Sendable ([UInt8]) -> Void) {
    self.clock = clock
    self.write = write
  }

  package static let standardError = LogOutput(clock: { SystemClock.unixMilliseconds }, write: { StandardError.write($0) })
}
