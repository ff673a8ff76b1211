import Foundation
import TestSupport

/// Another program that holds a lock on an SQLite registry until `end`.
final class LockHolder {
  private let input = Pipe()
  private let child: ChildProcess

  init(_ path: String, _ lock: String = "EXCLUSIVE") throws {
    let script = """
      import sqlite3, sys
      registry = sqlite3.connect("\(path)", isolation_level=None, timeout=30)
      registry.execute("BEGIN \(lock)")
      print("ready")
      sys.stdin.read()
      """
    child = try ChildProcess(
      ["/usr/bin/python3", "-uc", script], environment: ["PATH": "/usr/bin:/bin"], output: nil,
      input: input.fileHandleForReading)
    guard child.waitForOutput("ready", seconds: 90) else { throw Broken("no holder: \(child.outputSoFar)") }
  }

  func end() {
    try? input.fileHandleForWriting.close()
    _ = child.wait()
  }
}
