import Foundation

/// Standard output for results, standard error for everything else; colour and bars only where a person looks.
enum Terminal {
  static let isInteractive = isatty(STDERR_FILENO) == 1
  static let isOutputInteractive = isatty(STDOUT_FILENO) == 1

  static func print(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
  static func print(_ bytes: [UInt8]) { FileHandle.standardOutput.write(Data(bytes + [UInt8(ascii: "\n")])) }
  /// - Throws: what the system says when it can't be written, a closed pipe for one.
  static func write(_ bytes: [UInt8]) throws { try FileHandle.standardOutput.write(contentsOf: Data(bytes)) }
  static func say(_ line: String) { FileHandle.standardError.write(Data((line + "\n").utf8)) }
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
    FileHandle.standardError.write(Data("\r\(title) \(bar) \(percent)% (\(done) of \(total))".utf8))
  }

  func finish() {
    if Terminal.isInteractive { Terminal.say("") }
  }

  /// Says something in between: the bar moves on below it.
  mutating func interrupt(_ sentence: String) {
    if Terminal.isInteractive, lastDrawn >= 0 { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) }
    lastDrawn = -1
    Terminal.complain(sentence)
  }
}
