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

  /// Keys and values of a line, in their order.
  package struct Fields: ExpressibleByDictionaryLiteral {
    let members: [(key: String, value: any LogValue)]

    package init(_ members: [(key: String, value: any LogValue)]) { self.members = members }
    package init(dictionaryLiteral members: (String, any LogValue)...) { self.init(members.map { ($0, $1) }) }

    package static func + (one: Fields, other: Fields) -> Fields { Fields(one.members + other.members) }
  }

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
    for (key, value) in fields.members {
      line.append(UInt8(ascii: ","))
      line.appendSafeJSONString(key)
      line.append(UInt8(ascii: ":"))
      value.append(to: &line)
    }
    line.append(contentsOf: "}\n".utf8)
    return line
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

/// A value of a log field; written as JSON.
package protocol LogValue {
  func append(to line: inout [UInt8])
}

extension String: LogValue {
  package func append(to line: inout [UInt8]) { line.appendSafeJSONString(self) }
}

/// May be invalid UTF-8.
extension [UInt8]: LogValue {
  package func append(to line: inout [UInt8]) { line.appendSafeJSONString(self) }
}

extension Int: LogValue {
  package func append(to line: inout [UInt8]) { line.append(contentsOf: String(self).utf8) }
}

extension Int64: LogValue {
  package func append(to line: inout [UInt8]) { line.append(contentsOf: String(self).utf8) }
}

/// Rounded to a thousandth; null if not finite.
extension Double: LogValue {
  package func append(to line: inout [UInt8]) {
    line.append(contentsOf: isFinite ? "\((self * 1000).rounded() / 1000)".utf8 : "null".utf8)
  }
}

extension Bool: LogValue {
  package func append(to line: inout [UInt8]) { line.append(contentsOf: (self ? "true" : "false").utf8) }
}

package struct LogList: LogValue {
  let texts: [String]

  package init(_ texts: [String]) { self.texts = texts }

  /// The first ten texts. Use it for lists that may have thousands, next to a field with the count.
  package static func first(of texts: [String]) -> LogList { LogList(Array(texts.prefix(10))) }

  package func append(to line: inout [UInt8]) {
    line.append(UInt8(ascii: "["))
    for (index, text) in texts.enumerated() {
      if index > 0 { line.append(UInt8(ascii: ",")) }
      line.appendSafeJSONString(text)
    }
    line.append(UInt8(ascii: "]"))
  }
}
