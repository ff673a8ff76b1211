import Foundation

/// A progress line on a terminal; nothing elsewhere.
struct Progress {
  private let total: UInt64
  private var done: UInt64 = 0
  private let isShown = isatty(STDERR_FILENO) == 1
  private let began = Date()

  init(total: UInt64) { self.total = total }

  mutating func step(_ failed: Int) {
    done += 1
    guard isShown else { return }
    let left = Date().timeIntervalSince(began) / Double(done) * Double(total - done)
    let filled = Int(30 * done / total)
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 30 - filled)
    write("\r\(bar) \(done) of \(total) seeds, \(failed) failed, \(Int(left)) s left   ")
  }

  func clear() { if isShown { write("\r\u{1B}[K") } }

  private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
