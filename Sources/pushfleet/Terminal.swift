import Foundation
import PushCore
import Reactor

/// Standard output for results, standard error for the rest; colour and progress bars only on a terminal.
enum Terminal {
  static let isInteractive = isatty(STDERR_FILENO) == 1
  static let isOutputInteractive = isatty(STDOUT_FILENO) == 1

  /// True if standard output is a terminal that knows control codes.
  static var hasControls: Bool {
    isOutputInteractive && !["", "dumb"].contains(ProcessInfo.processInfo.environment["TERM"] ?? "")
  }

  /// True if results may be coloured (https://no-color.org).
  static var hasColour: Bool { hasControls && ProcessInfo.processInfo.environment["NO_COLOR"]?.isEmpty != false }

  static var width: Int { TerminalWidth.ofOutput ?? .max }

  static func print(_ line: String) { print(Array(line.utf8)) }

  static func print(_ object: JSONObject) { print(object.line) }

  static func print(_ bytes: [UInt8]) { write(bytes + [UInt8(ascii: "\n")]) }

  /// Ends the process if writing fails: silently if the reader has gone, as `head` does; otherwise with status 69.
  static func write(_ bytes: [UInt8]) {
    do throws(StandardOutput.Failure) { try StandardOutput.write(bytes) } catch {
      notice(words(for: error))
      exit(ExitStatus.unavailable.rawValue)
    }
  }

  /// Ends the process if there is nobody to tell.
  static func words(for failure: StandardOutput.Failure) -> String {
    switch failure {
    case .readerGone: StandardOutput.endForReaderGone()
    case .closed: "standard output is closed"
    case .other(let reason): "standard output can't be written: \(reason)"
    }
  }

  /// Prints a line on standard error and flushes it, so that results and messages keep their order.
  static func say(_ line: String) { show(line + "\n") }

  /// Prints text without a line end.
  static func show(_ text: String) {
    StandardError.write(Array(text.utf8))
    StandardError.flush()
  }

  /// True if somebody can answer a question.
  static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && isInteractive }

  static func confirms(_ question: String) -> Bool {
    show("\(question) [y/N] ")
    return ["y", "yes"].contains(readLine()?.trimmingCharacters(in: .whitespaces).lowercased())
  }

  static func notice(_ sentence: String) { say("pushfleet: \(sentence)") }
}

/// A progress bar on the terminal's last line, for work of known total that takes time. At the end it becomes an ordinary line.
struct ProgressBar {
  private static let longest = 30

  private let title: String
  /// 0 if unknown.
  private let total: Int
  private var lastDrawn = -1
  private var isAtEnd = false

  init(_ title: String, total: Int) {
    self.title = title
    self.total = total
  }

  /// Bytes of all files; 0 if one has no known length, such as standard input or a pipe.
  static func total(of files: [String]) -> Int {
    var total = 0
    for file in files {
      let path = URL(fileURLWithPath: file).resolvingSymlinksInPath().path
      let facts = try? FileManager.default.attributesOfItem(atPath: path)
      guard file != "-", facts?[.type] as? FileAttributeType == .typeRegular, let size = facts?[.size] as? Int else { return 0 }
      total += size
    }
    return total
  }

  mutating func update(_ done: Int) {
    let percent = percent(done)
    guard Terminal.isInteractive, total > 0, !isAtEnd, percent != lastDrawn else { return }
    isAtEnd = percent == 100
    if isAtEnd, lastDrawn < 0 { return }
    lastDrawn = percent
    // The cursor returns to the line's start, so that another process's output replaces the bar instead of following it.
    Terminal.show("\r\(line(done, width: TerminalWidth.ofErrors ?? 80))\(isAtEnd ? "\n" : "\r")")
  }

  /// Leaves out what doesn't fit, the figures first. The last column stays free, because some terminals wrap after it.
  func line(_ done: Int, width: Int) -> String {
    let percent = percent(done)
    let figures = " (\(clamped(done)) of \(total))"
    let ends = "\(title)  \(percent)%"
    let withFigures = width > ends.count + figures.count + Self.longest / 3
    let room = min(Self.longest, width - 1 - ends.count - (withFigures ? figures.count : 0))
    guard room > 0 else { return String("\(percent)%".prefix(max(0, width - 1))) }
    let bar = Self.bar(percent * room / 100, of: room)
    return "\(title) \(bar) \(percent)%\(withFigures ? figures : "")"
  }

  static func bar(_ filled: Int, of length: Int) -> String {
    String(repeating: "█", count: filled) + String(repeating: "░", count: length - filled)
  }

  /// A file may grow while it is read.
  private func clamped(_ done: Int) -> Int { max(0, min(done, total)) }

  private func percent(_ done: Int) -> Int { total > 0 ? clamped(done) * 100 / total : 0 }

  /// Erases the bar, so that a line can be printed; the next update draws it again.
  mutating func clear() {
    if Terminal.isInteractive, lastDrawn >= 0, !isAtEnd { Terminal.show("\r\u{1B}[K") }
    lastDrawn = -1
  }

  mutating func interrupt(_ sentence: String) {
    clear()
    Terminal.notice(sentence)
  }
}
