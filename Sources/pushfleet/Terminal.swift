import Foundation
import Reactor

/// Standard output for results, standard error for everything else; colour and progress bars only on a terminal.
enum Terminal {
  static let isInteractive = isatty(STDERR_FILENO) == 1
  static let isOutputInteractive = isatty(STDOUT_FILENO) == 1

  /// Whether results may be coloured (https://no-color.org).
  static var hasColour: Bool {
    let environment = ProcessInfo.processInfo.environment
    return isOutputInteractive && environment["NO_COLOR"]?.isEmpty != false && environment["TERM"] != "dumb"
  }

  /// Columns of a result.
  static var width: Int { TerminalWidth.ofOutput ?? .max }

  static func print(_ line: String) { print(Array(line.utf8)) }

  static func print(_ object: JSONObject) { print(object.line) }

  static func print(_ bytes: [UInt8]) { write(bytes + [UInt8(ascii: "\n")]) }

  /// Ends the process when a result can't be written: without a word where its reader has gone, as `head` does when it has enough;
  /// else with status 69.
  static func write(_ bytes: [UInt8]) {
    do throws(StandardOutput.Failure) { try StandardOutput.write(bytes) } catch {
      switch error {
      case .readerGone: StandardOutput.endForReaderGone()
      case .closed: complain("standard output is closed")
      case .other(let reason): complain("standard output can't be written: \(reason)")
      }
      exit(ExitStatus.unavailable.rawValue)
    }
  }

  /// Written when this returns, unless nobody reads standard error: results and sentences come in the order they were made.
  static func say(_ line: String) { show(line + "\n") }

  /// Text that ends no line.
  static func show(_ text: String) {
    StandardError.write(Array(text.utf8))
    StandardError.flush()
  }

  static func complain(_ sentence: String) { say("pushfleet: \(sentence)") }
}

/// A bar on a terminal's last line, never wider than it. There is none where nobody looks, where the total isn't known, and for what is done at
/// once. At its end it becomes a line like any other.
struct ProgressBar {
  private static let longest = 30

  private let title: String
  /// 0 where it isn't known.
  private let total: Int
  private var lastDrawn = -1
  private var isAtEnd = false

  init(_ title: String, total: Int) {
    self.title = title
    self.total = total
  }

  /// Bytes of all files; 0 where one of them is standard input, a pipe, or something else without a length.
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
    // The cursor goes back to the line's beginning: what another process writes there covers the bar, and doesn't follow it.
    Terminal.show("\r\(line(done, width: TerminalWidth.ofErrors ?? 80))\(isAtEnd ? "\n" : "\r")")
  }

  /// What doesn't fit is left out, the figures first. The terminal's last column stays free: some go on to the next line after it.
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

  /// Makes room for another line: the bar moves on below it, where there is more to come.
  mutating func clear() {
    if Terminal.isInteractive, lastDrawn >= 0, !isAtEnd { Terminal.show("\r\u{1B}[K") }
    lastDrawn = -1
  }

  /// Says something in between: the bar moves on below it.
  mutating func interrupt(_ sentence: String) {
    clear()
    Terminal.complain(sentence)
  }
}
