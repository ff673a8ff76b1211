import Foundation
import Synchronization

/// Prints the seed when the code of a worker crashes the process.
enum CrashNote {
  static let seed = Atomic<UInt64>(0)

  /// Handles the signals of crashes, which arrive on the thread that caused them.
  static func install() {
    for number in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE] {
      signal(number) { number in
        signal(number, SIG_DFL)
        let seed = CrashNote.seed.load(ordering: .relaxed)
        FileHandle.standardError.write(
          Data("fleetsim: seed \(seed) ended the process; again: fleetsim --seed \(seed) --trace\n".utf8))
        raise(number)
      }
    }
  }
}
