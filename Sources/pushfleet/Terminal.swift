import Foundation
import Reactor

/// Standard output for results, standard error for everything else; colour and bars only where a person looks.
enum Terminal {
  static let isInteractive = isatty(STDERR_FILENO) == 1
  static let isOutputInteractive = isatty(STDOUT_FILENO) == 1

  static func print(_ line: String) { print(Array(line.utf8)) }

  static func print(_ bytes: [UInt8]) { write(bytes + [UInt8(ascii: "\n")]) }

  /// Ends the process when a result can't be written: without a word where its reader has gone, as `head` does when it has enough;
  /// else with status 69. A standard output that was closed from the beginning was not wanted.
  static func write(_ bytes: [UInt8]) {
    do throws(StandardOutput.Failure) { try StandardOutput.write(bytes) } catch {
      switch error {
      case .readerGone: StandardOutput.endForReaderGone()
      case .closed: break
      case .other(let reason):
        complain("standard output can't be written: \(reason)")
        exit(ExitStatus.unavailable.rawValue)
      }
    }
  }

  static func say(_ line: String) { StandardError.write(Array((line + "\n").utf8)) }
  static func complain(_ sentence: String) { say("pushfleet: \(sentence)") }
}

/// A bar on a terminal's last line; silent where nobody looks.
struct ProgressBar {
  private let title: String
  private let total: Int
  private var lastDrawn = -1

  init(_ title: String, total: Int) {
    self.title = title
    self.total = max(total, 1)
  }

  mutating func update(_ done: Int) {
    let percent = done * 100 / total
    guard Terminal.isInteractive, percent != lastDrawn else { return }
    lastDrawn = percent
    let filled = percent * 30 / 100
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 30 - filled)
    StandardError.write(Array("\r\(title) \(bar) \(percent)% (\(done) of \(total))".utf8))
  }

  func finish() {
    if Terminal.isInteractive { Terminal.say("") }
  }

  /// Says something in between: the bar moves on below it.
  mutating func interrupt(_ sentence: String) {
    if Terminal.isInteractive, lastDrawn >= 0 { StandardError.write(Array("\r\u{1B}[K".utf8)) }
    lastDrawn = -1
    Terminal.complain(sentence)
  }
}
