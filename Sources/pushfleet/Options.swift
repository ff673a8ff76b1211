import Foundation
import PushCore
import Settings

/// A command's parsed words: `--name value`, `--name=value`, flags, and operands.
struct Options {
  private var values: [String: String] = [:]
  private var flags: Set<String> = []
  private(set) var operands: [String] = []
  /// The command's action; empty if it has none.
  var action = ""

  /// - Parameters: the names, without dashes, of options with a value and of flags.
  init(_ words: [String], values valued: Set<String>, flags known: Set<String> = []) throws(CommandFailure) {
    var index = 0
    while index < words.count {
      let word = words[index]
      index += 1
      guard word.hasPrefix("--"), word.count > 2 else {
        operands.append(word)
        continue
      }
      let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      if known.contains(parts[0]), parts.count == 1 {
        flags.insert(parts[0])
      } else if valued.contains(parts[0]) {
        guard values[parts[0]] == nil else { throw CommandFailure(.usage, "--\(parts[0]) is given twice") }
        if parts.count == 2 {
          values[parts[0]] = parts[1]
        } else if index < words.count {
          values[parts[0]] = words[index]
          index += 1
        } else {
          throw CommandFailure(.usage, "--\(parts[0]) needs a value")
        }
      } else {
        let meant = Spelling.nearest(to: parts[0], among: valued.union(known).sorted()).map { ": did you mean --\($0)?" } ?? ""
        let names = (valued.map { "--\($0) VALUE" } + known.map { "--\($0)" }).sorted().joined(separator: ", ")
        throw CommandFailure(
          .usage,
          "unknown option \(SafeText.key("--" + parts[0]))\(meant)\(names.isEmpty ? "" : meant.isEmpty ? "; known: \(names)" : " Known: \(names)")"
        )
      }
    }
  }

  subscript(name: String) -> String? { values[name] }
  func has(_ flag: String) -> Bool { flags.contains(flag) }

  var asJSON: Bool { has("json") }

  func print(_ json: @autoclosure () -> JSONObject, text: @autoclosure () -> String) {
    if asJSON { Terminal.print(json()) } else { Terminal.print(text()) }
  }

  func print(_ lines: @autoclosure () -> [[UInt8]], text: @autoclosure () -> String) {
    if asJSON { lines().forEach(Terminal.print) } else { Terminal.print(text()) }
  }

  /// - Parameter notice: instead of JSON, on standard error.
  func print(_ json: @autoclosure () -> JSONObject, notice: @autoclosure () -> String) {
    if asJSON { Terminal.print(json()) } else { Terminal.notice(notice()) }
  }

  private static let portion = 1_000

  /// Prints a list of any length. Column widths may change slightly from portion to portion.
  /// - Parameter next: returns at most `limit` rows after `last`, which is nil at first.
  func printPortions<Row>(
    _ columns: [(TextTable.Column, (Row) -> String)], json: (Row) -> JSONObject, none: String,
    next: (_ last: Row?, _ limit: Int) throws -> [Row]
  ) throws {
    let width = Terminal.width
    var last: Row?
    repeat {
      let rows = try next(last, Self.portion)
      if asJSON {
        for row in rows { Terminal.print(json(row)) }
      } else if !rows.isEmpty {
        let table = TextTable(columns, of: rows)
        Terminal.print(table.lines(width: width).dropFirst(last == nil ? 0 : 1).joined(separator: "\n"))
        if last == nil { table.note(width: width).forEach(Terminal.say) }
      } else if last == nil {
        Terminal.say(none)
      }
      last = rows.count == Self.portion ? rows.last : nil
    } while last != nil
  }

  func required(_ name: String, _ purpose: String) throws(CommandFailure) -> String {
    guard let value = values[name] else { throw CommandFailure(.usage, "--\(name) is missing: \(purpose)") }
    return value
  }

  func integer(_ name: String, in range: ClosedRange<Int>) throws(CommandFailure) -> Int? {
    guard let text = values[name] else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw CommandFailure(.usage, "--\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// One of the allowed words; nil if the option is missing.
  func choice(_ name: String, of words: [String]) throws(CommandFailure) -> String? {
    guard let word = values[name] else { return nil }
    if words.contains(word) { return word }
    let meant = Spelling.suggestion(for: word, among: words)
    throw CommandFailure(.usage, "--\(name) must be \(words.joined(separator: " or "))\(meant)")
  }

  /// - Parameter count: number of allowed operands.
  func refuseOperands(after count: Int = 0) throws(CommandFailure) {
    guard let first = operands.dropFirst(count).first else { return }
    throw CommandFailure(.usage, "unexpected argument \(SafeText.value(first))")
  }

  /// - Parameter subject: begins the error message.
  static func check(_ word: String, among known: [String], of subject: String = "") throws(CommandFailure) {
    guard !known.contains(word) else { return }
    guard !known.isEmpty else { throw CommandFailure(.usage, "\(subject)the configuration has none") }
    let meant = Spelling.suggestion(for: word, among: known)
    throw CommandFailure(.usage, "\(subject)\(SafeText.value(word)) is not one of \(known.joined(separator: ", "))\(meant)")
  }

  /// The configuration from `--config` or `PUSHFLEET_CONFIG`, overridden by environment variables.
  func configuration() throws(ConfigurationError) -> Configuration {
    try Configuration.load(path: configurationFile, environment: ProcessInfo.processInfo.environment)
  }

  var configurationFile: String? { values["config"] ?? ProcessInfo.processInfo.environment["PUSHFLEET_CONFIG"] }
}
