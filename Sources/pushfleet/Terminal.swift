import Foundation
import Reactor

/// Standard output for results, standard error for everything else; colour and bars only where a person looks.
enum Terminal {
  static let isInteractive = isatty(STDERR_FILENO) == 1
  static let isOutputInteractive = isatty(STDOUT_FILENO) == 1

  static func print(_ line: String) { print(Array(line.utf8)) }

  /// Ends the process with status 69 when standard output can't be written: nobody gets the result.
  static func print(_ bytes: [UInt8]) {
    do { try write(bytes + [UInt8(ascii: "\n")]) } catch {
      complain("standard output can't be written: \(error.localizedDescription)")
      exit(ExitStatus.unavailable.rawValue)
    }
  }

  /// - Throws: what the system says when it can't be written, a closed pipe for one.
  static func write(_ bytes: [UInt8]) throws { try FileHandle.standardOutput.write(contentsOf: Data(bytes)) }
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
