import Foundation
import Synchronization

/// Says which seed it was where the code of a worker ends the process.
enum CrashNote {
  /// The seed that runs.
  static let seed = Atomic<UInt64>(0)

  /// The signals of traps, which come on the thread that has caused them.
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
